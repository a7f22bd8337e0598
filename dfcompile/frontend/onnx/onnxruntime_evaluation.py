"""onnxruntime: runs a model; the one file that imports it, since it is optional.

Products of uint8 by int8 are computed exactly on every processor. Without VNNI, an x86-64 processor multiplies pairs of
uint8 and int8 and adds them up in 16 bits, where onnxruntime lets them saturate: 255 * 127 + 255 * 127 becomes 32,767.
Products of uint8 by uint8 do not. So there the right operand and its zero point are shifted: (b + 128) - (zero + 128)
is b - zero.
"""

import importlib.util
import os
from collections.abc import Mapping
from functools import cache

import numpy as np
import onnx
from msgspec import Struct
from onnx import TensorProto, helper, inliner, parser

from dfcompile.frontend.onnx.draft import Constant, Constants, constant_node, nodes_of, subgraphs

_ERRORS_ONLY = 4  # severity of the log lines that are printed: fatal ones
# onnxruntime refuses files of a newer form than it knows; what is new in them is not about tensors and operators.
_FORM = 10
_REFUSALS = "EPFail Fail InvalidArgument InvalidGraph InvalidProtobuf NotImplemented RuntimeException"
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


def is_installed() -> bool:
    """Whether onnxruntime can be imported."""
    return importlib.util.find_spec("onnxruntime") is not None


def evaluated(model: onnx.ModelProto, feeds: Constants) -> tuple[str, tuple[Constant, ...]] | None:
    """Return who computed, and the outputs of a model in its order; None if onnxruntime cannot run the model.

    Nothing is fused or reordered, one thread computes, and products of integers are exact, so that a result depends on
    the model and the inputs alone, not on the processor.

    Args:
        model: that passed dfcompile's own checks: onnxruntime ends the process over some that do not.
        feeds: its inputs by name.
    """
    try:
        return _evaluated(exactly_multiplied(model), feeds)
    except ValueError:  # the model is larger than the 2 GB of a protobuf message
        return None


def exactly_multiplied(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model of the same results whose products of integers onnxruntime computes exactly on this processor."""
    return with_unsigned_operands(model) if has_products(model) and products_saturate() else model


@cache
def products_saturate() -> bool:
    """Whether onnxruntime lets sums of uint8 times int8 saturate here: it does on x86-64 without VNNI."""
    left, right = np.full((2, 8), 255, np.uint8), np.full((8, 2), 127, np.int8)
    probe = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 13]> probe (uint8[2, 8] a, int8[8, 2] b) => (int32[2, 2] y)'
        "{ y = MatMulInteger(a, b) }"
    )
    answer = _evaluated(probe, {"a": left, "b": right})
    return answer is not None and not np.array_equal(answer[1][0], left.astype(np.int32) @ right.astype(np.int32))


def _evaluated(model: onnx.ModelProto, feeds: Constants) -> tuple[str, tuple[Constant, ...]] | None:
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # read when it is imported: else it writes files and sends events
    import onnxruntime
    from onnxruntime.capi import onnxruntime_pybind11_state as states

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = _ERRORS_ONLY
    content: bytes = model.SerializeToString()
    if model.ir_version > _FORM:
        # Of a field that stands twice, protobuf takes the last: so no weight is copied.
        content += onnx.ModelProto(ir_version=_FORM).SerializeToString()
    try:
        session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        outputs = session.run(None, dict(feeds))
    except tuple(getattr(states, name) for name in _REFUSALS.split()):
        return None
    return f"onnxruntime {onnxruntime.__version__}", tuple(np.asarray(output) for output in outputs)


def has_products(model: onnx.ModelProto) -> bool:
    """Whether an operator of a model multiplies integers of 8 bits."""
    return any(node.op_type in PRODUCTS for node in nodes_of(model))


def with_unsigned_operands(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model of the same results whose products of uint8 by int8 are products of uint8 by uint8.

    Args:
        model: left as it is.
    """
    whole = inliner.inline_local_functions(model) if model.functions else model
    changed = onnx.shape_inference.infer_shapes(whole)
    _change(changed.graph, {})
    return changed


def _change(graph: onnx.GraphProto, outer: Mapping[str, int]) -> None:
    ports = (*graph.input, *graph.output, *graph.value_info)  # element types of values as far as they stand there
    known = {**outer, **{port.name: port.type.tensor_type.elem_type for port in ports}}
    known.update((tensor.name, tensor.data_type) for tensor in graph.initializer)
    nodes: list[onnx.NodeProto] = []
    for number, node in enumerate(graph.node):
        for body in subgraphs(node):
            _change(body, known)
        if _is_mixed(node, known):
            nodes += _shifted(node, f"{graph.name}_{number}_unsigned")
        nodes.append(node)
    del graph.node[:]
    graph.node.extend(nodes)


def _is_mixed(node: onnx.NodeProto, known: Mapping[str, int]) -> bool:
    """Return whether a node multiplies uint8 by int8; an operand has the type of its zero point."""
    product = PRODUCTS.get(node.op_type)
    if product is None:
        return False
    sides = ((product.left, product.left_zero), (product.right, product.right_zero))
    left, right = ({known.get(node.input[at]) for at in side if 0 <= at < len(node.input)} for side in sides)
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
            wide, by, sum_ = (f"{name}_{part}" for part in ("wide", "by", "sum"))
            before += [
                helper.make_node("Cast", [node.input[place]], [wide], to=TensorProto.INT32),
                constant_node(by, np.array(SHIFT, np.int32)),
                helper.make_node("Add", [wide, by], [sum_]),
                helper.make_node("Cast", [sum_], [name], to=TensorProto.UINT8),
            ]
        else:
            before.append(constant_node(name, np.array(SHIFT, np.uint8)))
        node.input[place] = name
    return before
