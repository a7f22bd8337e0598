"""Bounds of Clip before operator set 11: attributes; by default the largest finite numbers of single precision."""

from collections.abc import Iterator

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, shape_inference

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
    types = _element_types(proto)
    explicit = onnx.ModelProto()
    explicit.CopyFrom(proto)
    for node in explicit.graph.node:
        if types.get(node.input[0] if node.input else "") in _WIDE:
            node.attribute.extend(helper.make_attribute(name, _DEFAULTS[name]) for name in _missing(node))
    return explicit


def with_bounds_of_their_data(
    converted: onnx.ModelProto, proto: onnx.ModelProto, opset: int
) -> Iterator[onnx.NodeProto]:
    """Yield the nodes of a converted model with bounds of the type of what they bound.

    ONNX's version converter makes constants of single precision of them, whatever they bound.

    Args:
        converted: not changed.
        proto: the same before, with the attributes.
        opset: version of its operators.
    """
    clips = [node for node in proto.graph.node if node.op_type == "Clip"] if opset < _SINCE else []
    types = _element_types(proto) if clips else {}
    results = {node.output[0]: types.get(node.input[0], TensorProto.FLOAT) for node in clips}
    bounds = {
        name: results[node.output[0]]
        for node in converted.graph.node
        if node.op_type == "Clip" and node.output[0] in results
        for name in node.input[1:]
    }
    for node in converted.graph.node:
        wanted = bounds.get(node.output[0], TensorProto.FLOAT) if node.op_type == "Constant" else TensorProto.FLOAT
        if wanted == TensorProto.FLOAT:
            yield node
            continue
        with np.errstate(over="ignore"):  # of the largest number of single precision: no bound in half precision
            value = numpy_helper.to_array(node.attribute[0].t).astype(helper.tensor_dtype_to_np_dtype(wanted))
        held = numpy_helper.from_array(value)
        yield helper.make_node("Constant", [], [*node.output], name=node.name, value=held)


def _missing(node: onnx.NodeProto) -> list[str]:
    given = {attribute.name for attribute in node.attribute}
    return [name for name in _DEFAULTS if name not in given] if node.op_type == "Clip" else []


def _element_types(proto: onnx.ModelProto) -> dict[str, int]:
    graph = shape_inference.infer_shapes(proto).graph
    types = {value.name: value.type.tensor_type.elem_type for value in (*graph.input, *graph.value_info)}
    return types | {tensor.name: tensor.data_type for tensor in graph.initializer}
