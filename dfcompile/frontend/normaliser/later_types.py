"""Later types: exporters write bfloat16 for operators that take it only in a later set of operators."""

from collections.abc import Iterable

import onnx
from onnx import TensorProto

from dfcompile.frontend.normaliser.opset import opset_of, unify_opset
from dfcompile.frontend.onnx.draft import Constant, Draft

_LATER = 22  # the first set in which Conv, pooling and others take it, as they did other real numbers
# Operators that mean something else there, or spell it in another way.
_CHANGED = frozenset(["DFT", "GridSample", "GroupNormalization"])


def with_later_types(draft: Draft) -> Draft:
    """Return a draft with bfloat16 as one of the first operator set whose operators take it; another one itself.

    PyTorch exports a Conv of bfloat16 in set 18. A model with an operator that would mean something else stays as it
    is, and validation names the operator that does not take the type.

    Raises:
        UserError: ONNX has no conversion of an older operator.
    """
    nodes = draft.proto.graph.node
    is_changed = not _CHANGED.isdisjoint(node.op_type for node in nodes)
    if opset_of(draft.proto) >= _LATER or is_changed or not _has_bfloat16(draft.proto.graph, draft.constants.values()):
        return draft
    draft = unify_opset(draft)
    later = onnx.ModelProto()
    later.CopyFrom(draft.proto)
    for entry in later.opset_import:
        if entry.domain in {"", "ai.onnx"}:
            entry.version = _LATER
    return Draft(later, draft.constants)


def _has_bfloat16(graph: onnx.GraphProto, constants: Iterable[Constant]) -> bool:
    casts = (entry.i for node in graph.node if node.op_type == "Cast" for entry in node.attribute if entry.name == "to")
    inputs = (value.type.tensor_type.elem_type for value in graph.input)
    return TensorProto.BFLOAT16 in {*casts, *inputs} or any(value.dtype.name == "bfloat16" for value in constants)
