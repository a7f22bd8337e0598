"""Bounds of Clip before operator set 11: attributes; by default the largest finite numbers of single precision."""

import numpy as np
import onnx
from onnx import TensorProto, helper

from dfcompile.frontend.onnx.inference import inferred_graph

_SINCE = 11  # version of the operator in which bounds are operands, and what is omitted does not bound
_LARGEST = float(np.finfo(np.float32).max)
_DEFAULTS = {"min": -_LARGEST, "max": _LARGEST}
_WIDE = frozenset([TensorProto.FLOAT, TensorProto.DOUBLE])  # in half precision these bounds are infinite


def with_explicit_bounds(proto: onnx.ModelProto, opset: int) -> onnx.ModelProto:
    """Return a model whose Clip nodes say their bounds, which ONNX's version converter forgets; or the model itself.

    ``Clip(x)`` becomes ``Clip<min=-3.4e38, max=3.4e38>(x)``: an infinite element becomes a finite one.

    Args:
        proto: not changed.
        opset: version of its operators.
    """
    if opset >= _SINCE or not any(_missing(node) for node in proto.graph.node):
        return proto
    types = element_types(proto)
    explicit = onnx.ModelProto()
    explicit.CopyFrom(proto)
    for node in explicit.graph.node:
        if types.get(node.input[0] if node.input else "") in _WIDE:
            node.attribute.extend(helper.make_attribute(name, _DEFAULTS[name]) for name in _missing(node))
    return explicit


def _missing(node: onnx.NodeProto) -> list[str]:
    given = {attribute.name for attribute in node.attribute}
    return [name for name in _DEFAULTS if name not in given] if node.op_type == "Clip" else []


def element_types(proto: onnx.ModelProto) -> dict[str, int]:
    """Return ONNX's element type of each value of a model, as far as it can be inferred."""
    graph = inferred_graph(proto)
    types = {value.name: value.type.tensor_type.elem_type for value in (*graph.input, *graph.value_info)}
    return types | {tensor.name: tensor.data_type for tensor in graph.initializer}
