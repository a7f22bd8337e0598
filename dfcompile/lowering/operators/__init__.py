"""The canonical operators, the vocabulary of level 1: what each computes and the fields it has."""

from collections.abc import Mapping
from types import MappingProxyType

from dfcompile.lowering.expressions import Reduction
from dfcompile.lowering.operators.base import CanonicalOperator, Contraction
from dfcompile.lowering.operators.convolution import Col2im, Convolution, Im2col, TransposedConvolution, Window
from dfcompile.lowering.operators.elementwise import Elementwise
from dfcompile.lowering.operators.field_kinds import AtLeast, Axes, Axis, Count, Extents
from dfcompile.lowering.operators.indexed import Gather, Lookup, LookupElements, Sample, Scatter, Update
from dfcompile.lowering.operators.linear_algebra import Eliminate, Factor, Lapack, TriangularSolve
from dfcompile.lowering.operators.matmul import MatMul
from dfcompile.lowering.operators.movement import Concat, Copy, Pad, PadMode
from dfcompile.lowering.operators.nest import Nest
from dfcompile.lowering.operators.reduce import Reduce

__all__ = [
    "SHIPPED",
    "AtLeast",
    "Axes",
    "Axis",
    "CanonicalOperator",
    "Col2im",
    "Concat",
    "Contraction",
    "Convolution",
    "Copy",
    "Count",
    "Elementwise",
    "Eliminate",
    "Extents",
    "Factor",
    "Gather",
    "Im2col",
    "Lapack",
    "Lookup",
    "LookupElements",
    "MatMul",
    "Nest",
    "Pad",
    "PadMode",
    "Reduce",
    "Reduction",
    "Sample",
    "Scatter",
    "TransposedConvolution",
    "TriangularSolve",
    "Update",
    "Window",
]

_OFFERED = (globals()[name] for name in __all__ if name not in ("SHIPPED", "CanonicalOperator"))
SHIPPED: Mapping[str, type[CanonicalOperator]] = MappingProxyType(
    {one.__name__: one for one in _OFFERED if isinstance(one, type) and issubclass(one, CanonicalOperator)}
)
