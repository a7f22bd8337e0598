"""The table of contributed operators."""

from collections.abc import Mapping
from types import MappingProxyType

from dfcompile.frontend.onnx.contributed.activations import ACTIVATIONS
from dfcompile.frontend.onnx.contributed.attentions import ATTENTIONS
from dfcompile.frontend.onnx.contributed.fused_products import FUSED_PRODUCTS
from dfcompile.frontend.onnx.contributed.mixtures import MIXTURES
from dfcompile.frontend.onnx.contributed.normalisations import NORMALISATIONS
from dfcompile.frontend.onnx.contributed.quantised import QUANTISED
from dfcompile.frontend.onnx.contributed_operator import ContributedOperator

CONTRIBUTED: Mapping[str, ContributedOperator] = MappingProxyType(
    {
        operator.op_type: operator
        for operator in (*ACTIVATIONS, *ATTENTIONS, *FUSED_PRODUCTS, *MIXTURES, *NORMALISATIONS, *QUANTISED)
    }
)  # fmt: skip
