"""Products of uint8 by int8 as onnxruntime computes them exactly on every processor.

Without VNNI, an x86-64 processor multiplies pairs of uint8 and int8 and adds them up in 16 bits, where onnxruntime lets
them saturate: 255 * 127 + 255 * 127 becomes 32,767. Products of uint8 by uint8 do not. So there the right operand and
its zero point are shifted: (b + 128) - (zero + 128) is b - zero.
"""

from collections.abc import Mapping

import numpy as np
import onnx
from msgspec import Struct
from onnx import TensorProto, helper, inliner, numpy_helper

from dfcompile.frontend.onnx.draft import Constant
from dfcompile.frontend.onnx.nodes import nodes_of, subgraphs

SHIFT = 128  # from int8 to uint8


class _Product(Struct, frozen=True):
    """Which operands of an operator are multiplied, by position, and their zero points; -1: there is none."""

    left: int
    left_zero: int
    right: int
    right_zero: int


_QUANTISED = _Product(0, 2, 3, 5)
PRODUCTS: Mapping[str, _Product] = {
    "MatMulInteger": _Product(0, 2, 1, 3),
    "ConvInteger": _Product(0, 2, 1, 3),
    "QLinearMatMul": _QUANTISED,
    "QLinearConv": _QUANTISED,
    "QGemm": _QUANTISED,
    "MatMulIntegerToFloat": _Product(0, 4, 1, 5),
    "DynamicQuantizeMatMul": _Product(-1, -1, 1, 3),  # the left operand becomes uint8
}


def has_products(model: onnx.ModelProto) -> bool:
    """Whether an operator of a model multiplies integers of 8 bits."""
    return any(node.op_type in PRODUCTS for node in nodes_of(model))


def with_unsigned_operands(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model of the same results whose products of uint8 by int8 are products of uint8 by uint8.

    Args:
        model: left as it is.
    """
    whole = inliner.inline_local_functions(model) if model.functions else model
    changed = onnx.ModelProto()
    changed.CopyFrom(onnx.shape_inference.infer_shapes(whole))
    _change(changed.graph, {})
    return changed


def _change(graph: onnx.GraphProto, outer: Mapping[str, int]) -> None:
    known = {**outer, **_known_types(graph)}
    nodes: list[onnx.NodeProto] = []
    for number, node in enumerate(graph.node):
        for body in subgraphs(node):
            _change(body, known)
        if _is_mixed(node, known):
            nodes += _shifted(node, f"{graph.name}_{number}_unsigned")
        nodes.append(node)
    del graph.node[:]
    graph.node.extend(nodes)


def _known_types(graph: onnx.GraphProto) -> dict[str, int]:
    """Return the element types of values as far as they stand in a graph."""
    ports = (*graph.input, *graph.output, *graph.value_info)
    known = {port.name: port.type.tensor_type.elem_type for port in ports}
    return {**known, **{tensor.name: tensor.data_type for tensor in graph.initializer}}


def _is_mixed(node: onnx.NodeProto, known: Mapping[str, int]) -> bool:
    """Return whether a node multiplies uint8 by int8; an operand has the type of its zero point."""
    product = PRODUCTS.get(node.op_type)
    if product is None:
        return False
    left, right = (
        {known.get(node.input[place]) for place in places if 0 <= place < len(node.input)}
        for places in ((product.left, product.left_zero), (product.right, product.right_zero))
    )
    return TensorProto.INT8 in right and (product.left < 0 or TensorProto.INT8 not in left)


def _shifted(node: onnx.NodeProto, prefix: str) -> list[onnx.NodeProto]:
    """Return the nodes that shift the right operand of a product and its zero point; the node reads what they give."""
    product = PRODUCTS[node.op_type]
    before: list[onnx.NodeProto] = []
    for place, zero in ((product.right, False), (product.right_zero, True)):
        name = f"{prefix}_{'zero' if zero else 'operand'}"
        while len(node.input) <= place:
            node.input.append("")
        if node.input[place]:
            before += _shift(node.input[place], name)
        else:
            before.append(_constant(name, np.array(SHIFT, np.uint8)))
        node.input[place] = name
    return before


def _shift(operand: str, name: str) -> list[onnx.NodeProto]:
    wide, by, sum_ = (f"{name}_{part}" for part in ("wide", "by", "sum"))
    return [
        helper.make_node("Cast", [operand], [wide], to=TensorProto.INT32),
        _constant(by, np.array(SHIFT, np.int32)),
        helper.make_node("Add", [wide, by], [sum_]),
        helper.make_node("Cast", [sum_], [name], to=TensorProto.UINT8),
    ]


def _constant(name: str, value: Constant) -> onnx.NodeProto:
    return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(value, name))
