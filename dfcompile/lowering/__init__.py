"""Lowering: ONNX operators to canonical operators to map scopes, one named expansion per node."""

from typing import TYPE_CHECKING

from dfcompile.lowering.alternatives.known import KnownAlternatives, OperatorAlternatives, known_alternatives
from dfcompile.lowering.canonical_fragment import CanonicalFragment
from dfcompile.lowering.choice_check import addressed, check_choices, operator_origins
from dfcompile.lowering.expansion import Expansion, ExpansionTable, expansion, onnx_expansion, parametric_expansion
from dfcompile.lowering.expressions import Reduction
from dfcompile.lowering.levels import lower_to_canonical, lower_to_maps, lower_to_nests
from dfcompile.lowering.lowering_pass import ChosenPasses, LoweringPass, apply_passes, choose_passes, lowering_pass
from dfcompile.lowering.map_fragment import MapFragment
from dfcompile.lowering.node import CanonicalNode, Operator
from dfcompile.lowering.operators import CanonicalOperator
from dfcompile.lowering.registry import registered_expansions, registered_passes
from dfcompile.lowering.tensor import Tensor
from dfcompile.options import Choice

if TYPE_CHECKING:
    from dfcompile.lowering.rewriter import ProgramRewriter

__all__ = [
    "CanonicalFragment",
    "CanonicalNode",
    "CanonicalOperator",
    "Choice",
    "ChosenPasses",
    "Expansion",
    "ExpansionTable",
    "KnownAlternatives",
    "LoweringPass",
    "MapFragment",
    "Operator",
    "OperatorAlternatives",
    "ProgramRewriter",
    "Reduction",
    "Tensor",
    "addressed",
    "apply_passes",
    "check_choices",
    "choose_passes",
    "expansion",
    "known_alternatives",
    "lower_to_canonical",
    "lower_to_maps",
    "lower_to_nests",
    "lowering_pass",
    "onnx_expansion",
    "operator_origins",
    "parametric_expansion",
    "registered_expansions",
    "registered_passes",
]


def __getattr__(name: str) -> object:
    if name == "ProgramRewriter":
        from dfcompile.lowering.rewriter import ProgramRewriter  # needs DaCe, which takes half a second

        return ProgramRewriter
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
