"""Old meanings: what operators of earlier operator sets mean, said so that later ones say the same.

ONNX's version converter forgets it.
"""

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from dfcompile.frontend.onnx.draft import Constant
from dfcompile.frontend.onnx.free_name import free_name
from dfcompile.frontend.onnx.nodes import copied, integer, value_names, with_nodes
from dfcompile.frontend.onnx.shapes import inferred_graph

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
    types = _element_types(proto)
    wide = {name for name, kind in types.items() if kind in _WIDE}
    return with_nodes(
        proto,
        (
            _saying(node, _BOUNDS) if node.op_type == "Clip" and not wide.isdisjoint(node.input[:1]) else node
            for node in proto.graph.node
        ),
    )


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
        held = numpy_helper.from_array(value)
        yield helper.make_node("Constant", [], [*node.output], name=node.name, value=held)


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


def with_one_normalisation(nodes: Iterable[onnx.NodeProto]) -> tuple[list[onnx.NodeProto], dict[str, Constant]]:
    """Return nodes whose normalisations all have statistics per channel, and constants that these read.

    ``y = BatchNormalization<spatial=0>(x[n, c, d], s[c, d], …)`` becomes ``f = Flatten(x); t = Reshape(s, [-1]); …
    g = BatchNormalization(f, t, …); y = Reshape(g, Shape(x))``: every element is a channel.

    Args:
        nodes: of operator set 7 or later.
    """
    every = list(nodes)
    taken = value_names(every)
    constants: dict[str, Constant] = {}
    found: list[onnx.NodeProto] = []
    for node in every:
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
        found += [
            helper.make_node("Reshape", [name, row], [made]) for name, made in zip(statistics, flat[1:], strict=True)
        ]
        kept = copied(node, flat, [whole])
        kept.attribute.remove(next(entry for entry in kept.attribute if entry.name == "spatial"))
        found.append(kept)
        found.append(helper.make_node("Shape", [data], [shape]))
        found.append(helper.make_node("Reshape", [whole, shape], node.output[:1]))
    return found, constants
