"""One operator set: older models are converted, so that an operator means one thing.

ONNX's version converter forgets some of what operators of earlier sets mean: that is said before, or after.
Exporters write bfloat16 for operators that take it only in a later set of operators: such a model is as of that one.
"""

import operator
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, version_converter

from dfcompile.errors import UserError
from dfcompile.frontend.onnx.draft import OWN_DOMAINS, Draft, copied, integer, value_names, with_nodes
from dfcompile.frontend.onnx.draft_reading import INITIALIZERS_ALONE, constant_of, with_dense_constants
from dfcompile.frontend.onnx.free_name import free_name
from dfcompile.frontend.onnx.shapes import checkable, inferred_graph
from dfcompile.host.printable import one_line

OLDEST = 7
COMMON = 18
_ONE_SET = (1, 2)  # forms of files that know no operator set but the first
_LATER = 22  # the first set in which Conv, pooling and others take bfloat16, as they did other real numbers
# Operators that mean something else there, or spell it in another way.
_DIFFERENT = frozenset(["DFT", "GridSample", "GroupNormalization"])

_OPERANDS_SINCE = 11  # version of Clip and Pad in which attributes are operands, and what is omitted does not bound
_OPERANDS: Mapping[str, tuple[int, ...]] = {"Clip": (1, 2), "Pad": (2,)}  # of the type of the first
_LARGEST = float(np.finfo(np.float32).max)
_BOUNDS = {"min": -_LARGEST, "max": _LARGEST}
_WIDE = frozenset([TensorProto.FLOAT, TensorProto.DOUBLE])  # in half precision these bounds are infinite
_AXIS_SINCE = 13  # version of Softmax and its like in which an axis is just that axis
# Version since which the default is another one, and what it was before.
_CHANGED: Mapping[str, tuple[int, Mapping[str, str | int]]] = {
    # Upsample became it. Element i of the result is element i / scale of the data; between two of these the one behind
    # where an axis shrinks, else the one before: "simple", as onnxruntime calls it.
    "Resize": (11, {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "simple"}),
    "DFT": (20, {"axis": 1}),
}


def opset_of(proto: onnx.ModelProto) -> int:
    """Return the version of ONNX's own operators that a model asks for.

    Raises:
        UserError: it asks for none, or for one that is too old or too new to be read.
    """
    versions = [entry.version for entry in proto.opset_import if entry.domain in OWN_DOMAINS]
    if not proto.opset_import and proto.ir_version in _ONE_SET:
        versions = [1]
    if not versions:
        raise UserError("model: no operator set of ONNX is imported (is it an ONNX model?)")
    newest = onnx.defs.onnx_opset_version()
    if not OLDEST <= versions[0] <= newest:
        hint = "convert it by onnx.version_converter" if versions[0] < OLDEST else "export it again"
        raise UserError(f"model: operator set {versions[0]} against {OLDEST} to {newest} ({hint})")
    return versions[0]


def at_common_opset(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model with operators as of version 18; a newer model, which means the same, is returned itself.

    Raises:
        UserError: ONNX has no conversion for an operator.
    """
    proto = with_dense_constants(proto)
    opset = opset_of(proto)
    if opset >= COMMON:
        return proto
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in proto.graph.initializer}
    draft = with_one_normalisation(Draft(proto, constants))
    if draft.proto is not proto:
        more = (
            numpy_helper.from_array(value, name) for name, value in draft.constants.items() if name not in constants
        )
        proto = with_nodes(proto, draft.proto.graph.node, more)
        proto.ir_version = max(proto.ir_version, INITIALIZERS_ALONE)
    try:
        explicit = with_explicit_bounds(with_explicit_coercion(proto, opset), opset)
        converted = version_converter.convert_version(explicit, COMMON)
    except (RuntimeError, ValueError, version_converter.ConvertError) as error:
        raise UserError(f"model: cannot be converted to operator set {COMMON}: {one_line(error)}") from error
    return with_nodes(converted, with_old_defaults(with_constants_of_their_data(converted, explicit, opset), opset))


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
    more = [tensor for tensor in converted.graph.initializer if tensor.name not in draft.constants]
    return Draft(proto, {**draft.constants, **{tensor.name: constant_of(tensor) for tensor in more}})


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
    is_changed = not _DIFFERENT.isdisjoint(node.op_type for node in draft.proto.graph.node)
    if opset_of(draft.proto) >= _LATER or is_changed or not _has_bfloat16(draft):
        return draft
    draft = unify_opset(draft)
    later = deepcopy(draft.proto)
    for entry in later.opset_import:
        if entry.domain in OWN_DOMAINS:
            entry.version = _LATER
    return Draft(later, draft.constants)


def _has_bfloat16(draft: Draft) -> bool:
    graph = draft.proto.graph
    casts = (integer(node, "to") for node in graph.node if node.op_type == "Cast")
    inputs = (value.type.tensor_type.elem_type for value in graph.input)
    constants = draft.constants.values()
    return TensorProto.BFLOAT16 in {*casts, *inputs} or any(value.dtype.name == "bfloat16" for value in constants)


def with_old_defaults(nodes: Iterable[onnx.NodeProto], opset: int) -> Iterator[onnx.NodeProto]:
    """Yield nodes that say what was the default in their operator set.

    ``Resize(x, , scales)`` becomes ``Resize<coordinate_transformation_mode="asymmetric", …>(x, , scales)``.

    Args:
        nodes: converted to a later operator set, or not; not changed.
        opset: version of the operators that they were read as.
    """
    for node in nodes:
        before, defaults = _CHANGED.get(node.op_type, (0, {}))
        yield _saying(node, defaults) if opset < before else node


def with_explicit_bounds(proto: onnx.ModelProto, opset: int) -> onnx.ModelProto:
    """Return a model whose Clip nodes say their bounds: by default the largest finite numbers of single precision.

    ``Clip(x)`` becomes ``Clip<min=-3.4e38, max=3.4e38>(x)``: an infinite element becomes a finite one.

    Args:
        proto: not changed.
        opset: version of its operators.
    """
    if opset >= _OPERANDS_SINCE or all(node.op_type != "Clip" for node in proto.graph.node):
        return proto
    wide = {name for name, kind in _element_types(proto).items() if kind in _WIDE}
    bounded = (node.op_type == "Clip" and not wide.isdisjoint(node.input[:1]) for node in proto.graph.node)
    pairs = zip(proto.graph.node, bounded, strict=True)
    return with_nodes(proto, (_saying(node, _BOUNDS) if is_bounded else node for node, is_bounded in pairs))


def _saying(node: onnx.NodeProto, defaults: Mapping[str, str | float]) -> onnx.NodeProto:
    """Return a node that gives attributes some values, unless it gives them itself."""
    given = {attribute.name for attribute in node.attribute}
    missing = [name for name in defaults if name not in given]
    if not missing:
        return node
    explicit = copied(node)
    explicit.attribute.extend(helper.make_attribute(name, defaults[name]) for name in missing)
    return explicit


def with_constants_of_their_data(
    converted: onnx.ModelProto, proto: onnx.ModelProto, opset: int
) -> Iterator[onnx.NodeProto]:
    """Yield the nodes of a converted model: the converter has made constants of single precision of all attributes.

    Args:
        converted: not changed.
        proto: the same before, with the attributes.
        opset: version of its operators.
    """
    old = [node for node in proto.graph.node if node.op_type in _OPERANDS] if opset < _OPERANDS_SINCE else []
    types = _element_types(proto) if old else {}
    wanted = {node.output[0]: types.get(node.input[0], TensorProto.FLOAT) for node in old}
    constants = {
        node.input[position]: wanted[node.output[0]]
        for node in converted.graph.node
        if node.op_type in _OPERANDS and node.output[0] in wanted
        for position in _OPERANDS[node.op_type]
        if position < len(node.input)
    }
    for node in converted.graph.node:
        kind = constants.get(node.output[0], TensorProto.FLOAT) if node.op_type == "Constant" else TensorProto.FLOAT
        if kind == TensorProto.FLOAT:
            yield node
            continue
        with np.errstate(over="ignore"):  # of the largest number of single precision: no bound in half precision
            value = numpy_helper.to_array(node.attribute[0].t).astype(helper.tensor_dtype_to_np_dtype(kind))
        yield helper.make_node("Constant", [], [*node.output], name=node.name, value=numpy_helper.from_array(value))


def _element_types(proto: onnx.ModelProto) -> dict[str, int]:
    """Return ONNX's element type of each value of a model, as far as it can be inferred."""
    graph = inferred_graph(proto)
    types = {value.name: value.type.tensor_type.elem_type for value in (*graph.input, *graph.value_info)}
    return types | {tensor.name: tensor.data_type for tensor in graph.initializer}


def with_explicit_coercion(proto: onnx.ModelProto, opset: int) -> onnx.ModelProto:
    """Return a model whose Hardmax nodes, which once took all axes from a given one on as one axis, mean the same.

    ``y = Hardmax<axis=k>(x)`` becomes ``y = Reshape(Hardmax<axis=1>(Flatten<axis=k>(x)), Shape(x))``. The converter
    does the same for Softmax and LogSoftmax.

    Args:
        proto: not changed.
        opset: version of its operators.
    """
    nodes = proto.graph.node
    if opset >= _AXIS_SINCE or all(node.op_type != "Hardmax" for node in nodes):
        return proto
    names, values = {node.name for node in nodes}, value_names(nodes)
    explicit: list[onnx.NodeProto] = []
    for node in nodes:
        explicit += _coerced(node, names, values) if node.op_type == "Hardmax" else [node]
    return with_nodes(proto, explicit)


def _coerced(node: onnx.NodeProto, names: set[str], values: set[str]) -> Iterator[onnx.NodeProto]:
    axis = integer(node, "axis", 1)
    flat, shape, result = (free_name(f"{node.output[0]}.{part}", values) for part in ("flat", "shape", "result"))
    yield helper.make_node("Shape", [node.input[0]], [shape], name=free_name(f"{node.name}.shape", names))
    yield helper.make_node("Flatten", [node.input[0]], [flat], name=free_name(f"{node.name}.flatten", names), axis=axis)
    yield helper.make_node(node.op_type, [flat], [result], name=node.name, axis=1)
    yield helper.make_node("Reshape", [result, shape], [*node.output], name=free_name(f"{node.name}.reshape", names))


def with_one_normalisation(draft: Draft) -> Draft:
    """Return a draft whose normalisations all have statistics per channel; one that has no others itself.

    ``y = BatchNormalization<spatial=0>(x[n, c, d], s[c, d], …)`` becomes ``f = Flatten(x); t = Reshape(s, [-1]); …
    g = BatchNormalization(f, t, …); y = Reshape(g, Shape(x))``: every element is a channel.

    Args:
        draft: of operator set 7 or later.
    """
    _, taken = draft.names()
    constants = dict(draft.constants)
    found: list[onnx.NodeProto] = []
    for node in draft.proto.graph.node:
        is_spatial = node.op_type != "BatchNormalization" or integer(node, "spatial", 1)
        if is_spatial or len(node.input) != 5 or any(node.output[1:]):
            found.append(node)
            continue
        row = free_name(f"{node.output[0]}.row", taken)
        constants[row] = np.array([-1], np.int64)
        data, *statistics = node.input
        flat = [free_name(f"{node.output[0]}.{part}", taken) for part in ("flat", "scale", "bias", "mean", "variance")]
        whole, shape = (free_name(f"{node.output[0]}.{part}", taken) for part in ("normalised", "shape"))
        found.append(helper.make_node("Flatten", [data], flat[:1], axis=1))
        rows = zip(statistics, flat[1:], strict=True)
        found += [helper.make_node("Reshape", [name, row], [made]) for name, made in rows]
        kept = copied(node, flat, [whole])
        kept.attribute.remove(next(entry for entry in kept.attribute if entry.name == "spatial"))
        found.append(kept)
        found.append(helper.make_node("Shape", [data], [shape]))
        found.append(helper.make_node("Reshape", [whole, shape], node.output[:1]))
    return draft if len(constants) == len(draft.constants) else draft.replaced(found, constants)
