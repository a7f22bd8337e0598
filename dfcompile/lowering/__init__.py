"""Lowering: ONNX operators to canonical operators to map scopes, one named expansion per node."""

from dfcompile.lowering.alternatives.known import OperatorAlternatives, known_alternatives
from dfcompile.lowering.canonical_fragment import CanonicalFragment
from dfcompile.lowering.expansion import Expansion, expansion, onnx_expansion
from dfcompile.lowering.levels import check_choices, lower_to_canonical, lower_to_maps
from dfcompile.lowering.lowering_pass import LoweringPass, apply_passes, lowering_pass
from dfcompile.lowering.map_fragment import MapFragment
from dfcompile.lowering.node import CanonicalNode
from dfcompile.lowering.operator import Operator
from dfcompile.lowering.operators import CanonicalOperator
from dfcompile.lowering.reduction import Reduction
from dfcompile.lowering.registry import registered_expansions, registered_passes
from dfcompile.lowering.selection import Choice, ExpansionTable
from dfcompile.lowering.tensor import Tensor

__all__ = [
    "CanonicalFragment",
    "CanonicalNode",
    "CanonicalOperator",
    "Choice",
    "Expansion",
    "ExpansionTable",
    "LoweringPass",
    "MapFragment",
    "Operator",
    "OperatorAlternatives",
    "Reduction",
    "Tensor",
    "apply_passes",
    "check_choices",
    "expansion",
    "known_alternatives",
    "lower_to_canonical",
    "lower_to_maps",
    "lowering_pass",
    "onnx_expansion",
    "registered_expansions",
    "registered_passes",
]
