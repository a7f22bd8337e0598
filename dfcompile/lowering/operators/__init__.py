"""The canonical operators, the vocabulary of level 1: what each computes and the fields it has."""

from collections.abc import Mapping
from types import MappingProxyType

from dfcompile.lowering.expressions import Reduction as Reduction
from dfcompile.lowering.operators.base import CanonicalOperator as CanonicalOperator
from dfcompile.lowering.operators.base import Contraction as Contraction
from dfcompile.lowering.operators.convolution import Col2im as Col2im
from dfcompile.lowering.operators.convolution import Convolution as Convolution
from dfcompile.lowering.operators.convolution import Im2col as Im2col
from dfcompile.lowering.operators.convolution import TransposedConvolution as TransposedConvolution
from dfcompile.lowering.operators.convolution import Window as Window
from dfcompile.lowering.operators.elements import Elementwise as Elementwise
from dfcompile.lowering.operators.elements import Nest as Nest
from dfcompile.lowering.operators.elements import Reduce as Reduce
from dfcompile.lowering.operators.field_kinds import AtLeast as AtLeast
from dfcompile.lowering.operators.field_kinds import Axes as Axes
from dfcompile.lowering.operators.field_kinds import Axis as Axis
from dfcompile.lowering.operators.field_kinds import Count as Count
from dfcompile.lowering.operators.field_kinds import Extents as Extents
from dfcompile.lowering.operators.linear_algebra import Eliminate as Eliminate
from dfcompile.lowering.operators.linear_algebra import Factor as Factor
from dfcompile.lowering.operators.linear_algebra import Lapack as Lapack
from dfcompile.lowering.operators.linear_algebra import MatMul as MatMul
from dfcompile.lowering.operators.linear_algebra import TriangularSolve as TriangularSolve
from dfcompile.lowering.operators.movement import Concat as Concat
from dfcompile.lowering.operators.movement import Copy as Copy
from dfcompile.lowering.operators.movement import Gather as Gather
from dfcompile.lowering.operators.movement import Lookup as Lookup
from dfcompile.lowering.operators.movement import LookupElements as LookupElements
from dfcompile.lowering.operators.movement import Pad as Pad
from dfcompile.lowering.operators.movement import PadMode as PadMode
from dfcompile.lowering.operators.movement import Sample as Sample
from dfcompile.lowering.operators.movement import Scatter as Scatter
from dfcompile.lowering.operators.movement import Update as Update

_OPERATORS = (one for one in tuple(globals().values()) if isinstance(one, type) and issubclass(one, CanonicalOperator))
SHIPPED: Mapping[str, type[CanonicalOperator]] = MappingProxyType(
    {one.__name__: one for one in sorted(_OPERATORS, key=lambda one: one.__name__) if one is not CanonicalOperator}
)
