"""Frontend: a PyTorch or ONNX model becomes a program of ONNX operators."""

from dfcompile.frontend.operator_node import (
    CANONICAL,
    ONNX,
    AttributeValue,
    OperatorNode,
    input_connector,
    output_connector,
)
from dfcompile.frontend.program import Coverage, Level, ModelNode, Port, Program

__all__ = [
    "CANONICAL",
    "ONNX",
    "AttributeValue",
    "Coverage",
    "Level",
    "ModelNode",
    "OperatorNode",
    "Port",
    "Program",
    "input_connector",
    "output_connector",
]
