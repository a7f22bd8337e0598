"""The contributed operators that can be compiled, by the name that drafts have for them."""

from collections.abc import Mapping
from types import MappingProxyType

from dfcompile.frontend.onnx.contributed.attentions import ATTENTIONS
from dfcompile.frontend.onnx.contributed.layers import LAYERS
from dfcompile.frontend.onnx.contributed.quantised import QUANTISED
from dfcompile.frontend.onnx.contributed_operator import ContributedOperator

CONTRIBUTED: Mapping[str, ContributedOperator] = MappingProxyType(
    {operator.op_type: operator for operator in (*LAYERS, *ATTENTIONS, *QUANTISED)}
)
