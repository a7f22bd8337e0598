"""Coercion: operators that once looked at all axes from a given one on as one axis."""

from collections.abc import Iterator

import onnx
from onnx import helper

from dfcompile.frontend.onnx.free_name import free_name

_SINCE = 13  # version of the operators in which an axis is just that axis
_DEFAULT_AXIS = 1
# ONNX's version converter does the same for Softmax and LogSoftmax, but forgets this one.
_FORGOTTEN = frozenset(["Hardmax"])


def with_explicit_coercion(proto: onnx.ModelProto, opset: int) -> onnx.ModelProto:
    """Return a model whose Hardmax nodes mean the same in all versions; the model itself if they do.

    ``y = Hardmax<axis=k>(x)`` becomes ``y = Reshape(Hardmax<axis=1>(Flatten<axis=k>(x)), Shape(x))``.

    Args:
        proto: not changed.
        opset: version of its operators.
    """
    nodes = proto.graph.node
    if opset >= _SINCE or not any(node.op_type in _FORGOTTEN for node in nodes):
        return proto
    names = {node.name for node in nodes}
    values = {name for node in nodes for name in (*node.input, *node.output)}
    explicit: list[onnx.NodeProto] = []
    for node in nodes:
        explicit += _coerced(node, names, values) if node.op_type in _FORGOTTEN else [node]
    rewritten = onnx.ModelProto()
    rewritten.CopyFrom(proto)
    del rewritten.graph.node[:]
    rewritten.graph.node.extend(explicit)
    return rewritten


def _coerced(node: onnx.NodeProto, names: set[str], values: set[str]) -> Iterator[onnx.NodeProto]:
    axis = next((entry.i for entry in node.attribute if entry.name == "axis"), _DEFAULT_AXIS)
    flat, shape, result = (free_name(f"{node.output[0]}.{part}", values) for part in ("flat", "shape", "result"))
    yield helper.make_node("Shape", [node.input[0]], [shape], name=free_name(f"{node.name}.shape", names))
    yield helper.make_node("Flatten", [node.input[0]], [flat], name=free_name(f"{node.name}.flatten", names), axis=axis)
    yield helper.make_node(node.op_type, [flat], [result], name=node.name, axis=1)
    yield helper.make_node("Reshape", [result, shape], [*node.output], name=free_name(f"{node.name}.reshape", names))
