"""Frontend: a PyTorch or ONNX model becomes a program of ONNX operators."""

from dfcompile.frontend.file_kind import FileKind
from dfcompile.frontend.model import Answer, Array, Model, Reference, reference_answer
from dfcompile.frontend.options import ReadOptions
from dfcompile.frontend.program import AppliedPass, ChosenExpansion, Coverage, Level, ModelNode, Port, Program
from dfcompile.frontend.reading import FILE_KINDS, ReadModel, read_model
from dfcompile.frontend.sdfg.element_copies import NodeCopies, Prototype, untyped_connectors
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
    "FILE_KINDS",
    "ONNX",
    "Answer",
    "AppliedPass",
    "Array",
    "AttributeValue",
    "ChosenExpansion",
    "Coverage",
    "FileKind",
    "Level",
    "Model",
    "ModelNode",
    "NodeCopies",
    "OperatorNode",
    "Port",
    "Program",
    "Prototype",
    "ReadModel",
    "ReadOptions",
    "Reference",
    "WholeMemlets",
    "input_connector",
    "output_connector",
    "read_model",
    "reference_answer",
    "untyped_connectors",
]
