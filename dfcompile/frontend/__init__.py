"""Frontend: a PyTorch or ONNX model becomes a program of ONNX operators."""

import importlib
from typing import TYPE_CHECKING, Final

from dfcompile.frontend.element_kind import CODED_REALS as CODED_REALS
from dfcompile.frontend.element_kind import NARROW_REALS as NARROW_REALS
from dfcompile.frontend.element_kind import PACKED_BITS as PACKED_BITS
from dfcompile.frontend.element_kind import POWERS_OF_TWO as POWERS_OF_TWO
from dfcompile.frontend.element_kind import element_kind as element_kind
from dfcompile.frontend.element_kind import integer_limits as integer_limits
from dfcompile.frontend.element_kind import is_number as is_number
from dfcompile.frontend.element_kind import largest_real as largest_real
from dfcompile.frontend.element_kind import real_epsilon as real_epsilon
from dfcompile.frontend.model import Answer as Answer
from dfcompile.frontend.model import Array as Array
from dfcompile.frontend.model import FileKind as FileKind
from dfcompile.frontend.model import Model as Model
from dfcompile.frontend.model import ReadOptions as ReadOptions
from dfcompile.frontend.model import Reference as Reference
from dfcompile.frontend.model import reference_answer as reference_answer
from dfcompile.frontend.program import AppliedPass as AppliedPass
from dfcompile.frontend.program import ChosenExpansion as ChosenExpansion
from dfcompile.frontend.program import Coverage as Coverage
from dfcompile.frontend.program import Level as Level
from dfcompile.frontend.program import ModelNode as ModelNode
from dfcompile.frontend.program import Port as Port
from dfcompile.frontend.program import Program as Program
from dfcompile.frontend.reading import FILE_KINDS as FILE_KINDS
from dfcompile.frontend.reading import ReadModel as ReadModel
from dfcompile.frontend.reading import read_model as read_model
from dfcompile.frontend.sdfg.identifiers import CANONICAL as CANONICAL
from dfcompile.frontend.sdfg.identifiers import ONNX as ONNX
from dfcompile.frontend.sdfg.identifiers import AttributeValue as AttributeValue
from dfcompile.frontend.sdfg.identifiers import input_connector as input_connector
from dfcompile.frontend.sdfg.identifiers import output_connector as output_connector

if TYPE_CHECKING:
    from dfcompile.frontend.sdfg.operator_node import OperatorNode as OperatorNode
    from dfcompile.frontend.sdfg.operator_node import scalar_type as scalar_type


# Names that need DaCe, which takes half a second: it is imported when one of them is first used.
_OF_DACE: Final = ("OperatorNode", "scalar_type")


def __getattr__(name: str) -> object:
    if name not in _OF_DACE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("dfcompile.frontend.sdfg.operator_node"), name)
