"""Frontend: a PyTorch or ONNX model becomes a program of ONNX operators."""

from dfcompile.frontend.file_kind import FileKind
from dfcompile.frontend.model import Answer, Model, Reference, Tensor, reference_answer
from dfcompile.frontend.options import ReadOptions
from dfcompile.frontend.program import ChosenExpansion, Coverage, Level, ModelNode, Port, Program
from dfcompile.frontend.reading import ReadModel, file_kind_plugins, read_model
from dfcompile.frontend.sdfg.operator_node import (
    CANONICAL,
    ONNX,
    AttributeValue,
    OperatorNode,
    input_connector,
    output_connector,
)
from dfcompile.frontend.sdfg.whole_memlets import WholeMemlets

__all__ = [
    "CANONICAL",
    "ONNX",
    "Answer",
    "AttributeValue",
    "ChosenExpansion",
    "Coverage",
    "FileKind",
    "Level",
    "Model",
    "ModelNode",
    "OperatorNode",
    "Port",
    "Program",
    "ReadModel",
    "ReadOptions",
    "Reference",
    "Tensor",
    "WholeMemlets",
    "file_kind_plugins",
    "input_connector",
    "output_connector",
    "read_model",
    "reference_answer",
]
