"""Converted constants: what ONNX's version converter makes operands of is of the type of the data beside it."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from dfcompile.frontend.normaliser.clip_bounds import element_types

_SINCE = 11  # version of these operators in which their attributes are operands
_OPERANDS: Mapping[str, tuple[int, ...]] = MappingProxyType({"Clip": (1, 2), "Pad": (2,)})  # of the type of the first


def with_constants_of_their_data(
    converted: onnx.ModelProto, proto: onnx.ModelProto, opset: int
) -> Iterator[onnx.NodeProto]:
    """Yield the nodes of a converted model: the converter has made constants of single precision of all attributes.

    Args:
        converted: not changed.
        proto: the same before, with the attributes.
        opset: version of its operators.
    """
    old = [node for node in proto.graph.node if node.op_type in _OPERANDS] if opset < _SINCE else []
    types = element_types(proto) if old else {}
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
