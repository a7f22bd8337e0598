"""Frontend: a PyTorch or ONNX model becomes a program of ONNX operators."""

import importlib
from typing import TYPE_CHECKING, Final

from dfcompile.frontend.element_kind import (
    CODED_REALS,
    NARROW_REALS,
    PACKED_BITS,
    POWERS_OF_TWO,
    element_kind,
    integer_limits,
    is_number,
    largest_real,
    real_epsilon,
)
from dfcompile.frontend.model import Answer, Array, FileKind, Model, ReadOptions, Reference, reference_answer
from dfcompile.frontend.program import AppliedPass, ChosenExpansion, Coverage, Level, ModelNode, Port, Program
from dfcompile.frontend.reading import FILE_KINDS, ReadModel, files_of_data, read_model
from dfcompile.frontend.sdfg.dialects import CANONICAL, ONNX, AttributeValue, input_connector, output_connector

if TYPE_CHECKING:
    from dfcompile.frontend.sdfg.element_copies import NodeCopies, Prototype, WholeMemlets, untyped_connectors
    from dfcompile.frontend.sdfg.operator_node import OperatorNode, scalar_type

__all__ = [
    "CANONICAL",
    "CODED_REALS",
    "FILE_KINDS",
    "NARROW_REALS",
    "ONNX",
    "PACKED_BITS",
    "POWERS_OF_TWO",
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
    "element_kind",
    "files_of_data",
    "input_connector",
    "integer_limits",
    "is_number",
    "largest_real",
    "output_connector",
    "read_model",
    "real_epsilon",
    "reference_answer",
    "scalar_type",
    "untyped_connectors",
]

# Where the names are that need DaCe, which takes half a second: it is imported when one of them is first used.
_PLACES: Final = {
    **dict.fromkeys(("NodeCopies", "Prototype", "WholeMemlets", "untyped_connectors"), "element_copies"),
    **dict.fromkeys(("OperatorNode", "scalar_type"), "operator_node"),
}


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"dfcompile.frontend.sdfg.{_PLACES[name]}"), name)
