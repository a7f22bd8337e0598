"""Lowering: ONNX operators to canonical operators to map scopes, one named expansion per node."""

from typing import TYPE_CHECKING

from dfcompile.lowering.alternatives.known import KnownAlternatives as KnownAlternatives
from dfcompile.lowering.alternatives.known import OperatorAlternatives as OperatorAlternatives
from dfcompile.lowering.alternatives.known import known_alternatives as known_alternatives
from dfcompile.lowering.canonical_fragment import CanonicalFragment as CanonicalFragment
from dfcompile.lowering.choice_check import addressed as addressed
from dfcompile.lowering.choice_check import check_choices as check_choices
from dfcompile.lowering.choice_check import operator_origins as operator_origins
from dfcompile.lowering.expansion import Expansion as Expansion
from dfcompile.lowering.expansion import ExpansionTable as ExpansionTable
from dfcompile.lowering.expansion import expansion as expansion
from dfcompile.lowering.expansion import onnx_expansion as onnx_expansion
from dfcompile.lowering.expansion import parametric_expansion as parametric_expansion
from dfcompile.lowering.expansion import registered_expansions as registered_expansions
from dfcompile.lowering.expressions import Reduction as Reduction
from dfcompile.lowering.levels import lower_to_canonical as lower_to_canonical
from dfcompile.lowering.levels import lower_to_maps as lower_to_maps
from dfcompile.lowering.levels import lower_to_nests as lower_to_nests
from dfcompile.lowering.lowering_pass import ChosenPasses as ChosenPasses
from dfcompile.lowering.lowering_pass import LoweringPass as LoweringPass
from dfcompile.lowering.lowering_pass import apply_passes as apply_passes
from dfcompile.lowering.lowering_pass import choose_passes as choose_passes
from dfcompile.lowering.lowering_pass import lowering_pass as lowering_pass
from dfcompile.lowering.lowering_pass import registered_passes as registered_passes
from dfcompile.lowering.map_fragment import MapFragment as MapFragment
from dfcompile.lowering.node import CanonicalNode as CanonicalNode
from dfcompile.lowering.node import Operator as Operator
from dfcompile.lowering.operators import CanonicalOperator as CanonicalOperator
from dfcompile.lowering.tensor import Tensor as Tensor
from dfcompile.options import Choice as Choice

if TYPE_CHECKING:
    from dfcompile.lowering.rewriter import ProgramRewriter as ProgramRewriter


def __getattr__(name: str) -> object:
    if name == "ProgramRewriter":
        from dfcompile.lowering.rewriter import (
            ProgramRewriter as ProgramRewriter,  # needs DaCe, which takes half a second
        )

        return ProgramRewriter
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
