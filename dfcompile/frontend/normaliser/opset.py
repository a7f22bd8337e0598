"""One operator set: older models are converted, so that an operator means one thing.

Exporters write bfloat16 for operators that take it only in a later set of operators: such a model is as of that one.
"""

import operator
from collections.abc import Iterable
from copy import deepcopy

import onnx
from onnx import TensorProto, numpy_helper, version_converter

from dfcompile.errors import UserError
from dfcompile.frontend.normaliser.first_operators import SINCE, without_first_operators
from dfcompile.frontend.normaliser.old_meanings import (
    with_constants_of_their_data,
    with_explicit_bounds,
    with_explicit_coercion,
    with_old_defaults,
    with_one_normalisation,
)
from dfcompile.frontend.onnx.draft import Constant, Draft
from dfcompile.frontend.onnx.draft_reading import INITIALIZERS_ALONE, constant_of, with_dense_constants
from dfcompile.frontend.onnx.free_name import free_name
from dfcompile.frontend.onnx.nodes import OWN_DOMAINS, integer, with_nodes
from dfcompile.frontend.onnx.one_line import one_line
from dfcompile.frontend.onnx.shapes import checkable

OLDEST = 1
COMMON = 18
_LATER = 22  # the first set in which Conv, pooling and others take bfloat16, as they did other real numbers
# Operators that mean something else there, or spell it in another way.
_DIFFERENT = frozenset(["DFT", "GridSample", "GroupNormalization"])


def opset_of(proto: onnx.ModelProto) -> int:
    """Return the version of ONNX's own operators that a model asks for.

    Raises:
        UserError: it asks for none, or for one that is too old or too new to be read.
    """
    versions = [entry.version for entry in proto.opset_import if entry.domain in OWN_DOMAINS]
    if not versions:
        raise UserError("model: no operator set of ONNX is imported (is it an ONNX model?)")
    newest = onnx.defs.onnx_opset_version()
    if not OLDEST <= versions[0] <= newest:
        raise UserError(f"model: operator set {versions[0]} against {OLDEST} to {newest} (export or convert it again)")
    return versions[0]


def with_operator_set(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model that says what it means to import: the first forms of files know but the first operator set."""
    if proto.opset_import or proto.ir_version not in (1, 2):
        return proto
    said = deepcopy(proto)
    said.opset_import.append(onnx.helper.make_opsetid("", OLDEST))
    return said


def at_common_opset(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model with operators as of version 18; a newer model, which means the same, is returned itself.

    Raises:
        UserError: ONNX has no conversion for an operator.
    """
    proto = with_dense_constants(with_operator_set(proto))
    if opset_of(proto) >= COMMON:
        return proto
    proto = _without_first_operators(proto)
    opset = opset_of(proto)
    try:
        explicit = with_explicit_bounds(with_explicit_coercion(proto, opset), opset)
        converted = version_converter.convert_version(explicit, COMMON)
    except (RuntimeError, ValueError, version_converter.ConvertError) as error:
        raise UserError(f"model: cannot be converted to operator set {COMMON}: {one_line(error)}") from error
    return with_nodes(converted, with_old_defaults(with_constants_of_their_data(converted, explicit, opset), opset))


def _without_first_operators(proto: onnx.ModelProto) -> onnx.ModelProto:
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in proto.graph.initializer}
    draft = upgraded(Draft(proto, constants))
    if draft.proto is proto:
        return proto
    more = (numpy_helper.from_array(value, name) for name, value in draft.constants.items() if name not in constants)
    found = with_nodes(proto, draft.proto.graph.node, more)
    found.ir_version = max(found.ir_version, INITIALIZERS_ALONE)
    _ask_for(found, opset_of(draft.proto))
    return found


def upgraded(draft: Draft) -> Draft:
    """Return the draft with operators as of version 7 if they are older; another one itself.

    Raises:
        UserError: a node trains, or what it means depends on what is not known.
    """
    opset = opset_of(draft.proto)
    if opset < SINCE:
        graph = draft.proto.graph
        draft = draft.replaced(*without_first_operators(graph.node, graph.input, draft.constants, opset))
        _ask_for(draft.proto, SINCE)
    nodes, constants = with_one_normalisation(draft.proto.graph.node)
    return draft.replaced(nodes, {**draft.constants, **constants}) if constants else draft


def _ask_for(proto: onnx.ModelProto, opset: int) -> None:
    for entry in proto.opset_import:
        if entry.domain in OWN_DOMAINS:
            entry.version = opset


def unify_opset(draft: Draft) -> Draft:
    """Return the draft with operators as of version 18; newer ones, which mean the same, say their old defaults.

    Raises:
        UserError: ONNX has no conversion for an operator.
    """
    opset = opset_of(draft.proto)
    if opset >= COMMON:
        before = draft.proto.graph.node
        nodes = list(with_old_defaults(before, opset))
        return draft if all(map(operator.is_, nodes, before)) else draft.replaced(nodes)
    converted = at_common_opset(checkable(draft))
    proto = draft.shell()
    del proto.opset_import[:]
    proto.opset_import.extend(converted.opset_import)
    proto.graph.node.extend(_named(converted, draft))
    # What was an attribute, such as the pads of a Pad, may have become a constant.
    given = {
        tensor.name: constant_of(tensor) for tensor in converted.graph.initializer if tensor.name not in draft.constants
    }
    return Draft(proto, {**draft.constants, **given})


def _named(converted: onnx.ModelProto, draft: Draft) -> list[onnx.NodeProto]:
    """Give the nodes that the converter put in a name after the first named node that follows them."""
    taken = {node.name for node in draft.proto.graph.node}
    nodes = list(converted.graph.node)
    neighbour = nodes[-1].name or "model"
    for node in reversed(nodes):
        if node.name:
            neighbour = node.name
            continue
        node.name = free_name(f"{neighbour}.{node.op_type.lower()}", taken)
    return nodes


def with_later_types(draft: Draft) -> Draft:
    """Return a draft with bfloat16 as one of the first operator set whose operators take it; another one itself.

    PyTorch exports a Conv of bfloat16 in set 18. A model with an operator that would mean something else stays as it
    is, and validation names the operator that does not take the type.

    Raises:
        UserError: ONNX has no conversion of an older operator.
    """
    nodes = draft.proto.graph.node
    is_changed = not _DIFFERENT.isdisjoint(node.op_type for node in nodes)
    if opset_of(draft.proto) >= _LATER or is_changed or not _has_bfloat16(draft.proto.graph, draft.constants.values()):
        return draft
    draft = unify_opset(draft)
    later = deepcopy(draft.proto)
    _ask_for(later, _LATER)
    return Draft(later, draft.constants)


def _has_bfloat16(graph: onnx.GraphProto, constants: Iterable[Constant]) -> bool:
    casts = (integer(node, "to") for node in graph.node if node.op_type == "Cast")
    inputs = (value.type.tensor_type.elem_type for value in graph.input)
    return TensorProto.BFLOAT16 in {*casts, *inputs} or any(value.dtype.name == "bfloat16" for value in constants)
