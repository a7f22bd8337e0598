"""What ONNX's reference implementation computes otherwise than onnxruntime is not folded."""

from collections.abc import Mapping

import numpy as np
import onnx
import pytest
from onnx import helper

from dfcompile.errors import UnsupportedOpError
from dfcompile.frontend.onnx.onnxruntime_evaluation import evaluated
from dfcompile.lowering import lower_to_canonical, registered_expansions
from tests.interpreter import interpret
from tests.onnx_nodes import Array, Attribute, Node, lowered, random
from tests.onnx_text import model_from_text, program_from_text


def test_resize_of_a_constant_is_lowered_or_refused_but_not_folded() -> None:
    program = program_from_text(
        'g (float[1,2] x) => (float[1,2] y) { r = Resize<mode="nearest", nearest_mode="floor", '
        'coordinate_transformation_mode="align_corners">(c, , scales) y = Add(x, r) }',
        c=np.arange(5, dtype=np.float32).reshape(1, 5),
        scales=np.array([1, 0.5], np.float32),
    )

    with pytest.raises(UnsupportedOpError, match="'Resize_0'"):
        lower_to_canonical(program, registered_expansions())


# Scales and zero points: a result half-way between two steps is rounded before the zero point is added.
HALF = (np.array(0.5, np.float32), np.array(0, np.int8))
ONE = (np.array(1, np.float32), np.array(0, np.int8))
SHIFTED = (np.array(1, np.float32), np.array(1, np.int8))
RELATIVE = {"float16": 2.0**-10, "float32": 1e-5, "int8": 0.0, "int32": 0.0, "int64": 0.0}  # tolerance
CEILED: Mapping[str, Attribute] = {"kernel_shape": [2], "strides": [2], "auto_pad": "VALID", "ceil_mode": 1}


@pytest.mark.parametrize(
    "node",
    [
        Node("LpNormalization", [np.array([-3, 1], np.float32)], attributes={"p": 1}),
        Node("LpNormalization", [np.array([-2, -2], np.float32)], attributes={"p": 1}),
        Node("ConvTranspose", [random((1, 2, 3)), random((2, 1, 2)), random((2,))], attributes={"group": 2}),
        Node("ReduceLogSumExp", [np.array([-np.inf, -np.inf], np.float32)]),
        Node("ArgMax", [np.array([[1], [np.nan]], np.float32)]),
        Node("ArgMin", [np.array([[1], [np.nan]], np.float32)]),
        Node("Pow", [np.array([-np.inf, 4], np.float32), np.array(0.5, np.float32)]),
        Node("PRelu", [np.array([0, -1], np.float32), np.array([np.nan, 2], np.float32)]),
        Node("ReduceMin", [np.array([1, np.nan], np.float32)]),
        Node("Hardmax", [np.array([[1, np.nan]], np.float32)]),
        Node("LogSoftmax", [np.array([[0, 400]], np.float32)]),
        Node("OneHot", [np.array([0, 1]), np.array(2), np.array([-np.inf, 2], np.float32)]),
        Node("AveragePool", [random((1, 1, 5))], attributes=CEILED, opset=19),
        Node("LpPool", [random((1, 1, 5))], attributes=CEILED),
        Node("AffineGrid", [random((1, 2, 3)), np.array([1, 1, 3, 4])], attributes={"align_corners": 1}, opset=20),
        Node(
            "RoiAlign",
            [random((1, 1, 4, 4)), np.array([[0, 0, 3, 3]], np.float32), np.array([0])],
            attributes={"mode": "max", "sampling_ratio": 1},
        ),
        Node("ReduceL2", [np.array([65536, 3], np.int32)]),
        Node("ReduceMean", [np.full(4, 2**30, np.int32)]),
        Node("ReduceLogSum", [np.full(4, 2**30, np.int32)]),
        Node("ReduceL2", [np.array([300, 400], np.float16)]),
        Node("ReduceLogSum", [np.array([60000, 60000], np.float16)]),
        Node("ReduceMean", [np.full(5000, 30, np.float16)]),
        Node("MeanVarianceNormalization", [np.array([[1000, 1001, 1003]], np.float32)], attributes={"axes": [1]}),
        Node("Gelu", [np.array([-4, -2.5], np.float16)], opset=20),
        Node("Gelu", [np.array([-4, -2.5], np.float16)], attributes={"approximate": "tanh"}, opset=20),
        Node("LayerNormalization", [np.array([300, 400], np.float16), np.ones(2, np.float16)]),
        Node("RMSNormalization", [np.array([300, 400], np.float16), np.ones(2, np.float16)], opset=23),
        Node("QuantizeLinear", [np.array([1e10, -1e10], np.float32), np.array(1, np.float32), np.array(3, np.int8)]),
        Node("QLinearMatMul", [np.array([[1], [3], [5]], np.int8), *HALF, np.array([[1]], np.int8), *ONE, *SHIFTED]),
        Node("QLinearConv", [np.array([[[1, 3, 5]]], np.int8), *HALF, np.array([[[1]]], np.int8), *ONE, *SHIFTED]),
    ],
)
def test_result_that_is_read_of_constants(node: Node) -> None:
    model = _of_constants(node)
    answer = evaluated(model, {})
    assert answer is not None

    (found,) = interpret(lowered(model), {}).values()

    np.testing.assert_allclose(
        np.asarray(found, float), np.asarray(answer[1][0], float), rtol=RELATIVE[found.dtype.name]
    )


@pytest.mark.parametrize("op_type", ["Elu", "LeakyRelu"])
def test_sign_of_a_zero_that_is_read_of_constants(op_type: str) -> None:
    """ONNX's reference implementation multiplies it with alpha."""
    model = _of_constants(Node(op_type, [np.zeros(1, np.float32)], attributes={"alpha": -1.0}))

    (found,) = interpret(lowered(model), {}).values()

    assert np.signbit(found).tolist() == [True]


def _of_constants(node: Node) -> onnx.ModelProto:
    """Return the model of a node whose operands are constants, and whose result another node reads."""
    constants = range(len(node.operands))
    model = Node(node.op_type, node.operands, constants, node.attributes, node.results, node.opset).model()
    del model.graph.output[:], model.graph.value_info[:]
    model.graph.node.append(helper.make_node("Neg", ["y0"], ["z"]))
    model.graph.output.append(onnx.ValueInfoProto(name="z"))
    return model


def test_indices_of_a_pooling_of_constants() -> None:
    data: Array = np.array([[[[1, 2], [3, 9]]]], np.float32)
    attributes: dict[str, Attribute] = {"kernel_shape": [1, 1], "storage_order": 1}
    model = Node("MaxPool", [data], [0], attributes, results=(1, 1)).model()
    del model.graph.output[:], model.graph.value_info[:]
    model.graph.node.append(helper.make_node("Neg", ["y1"], ["z"]))
    model.graph.output.append(onnx.ValueInfoProto(name="z"))

    (found,) = interpret(lowered(model), {}).values()

    assert found.tolist() == [[[[0, -2], [-1, -3]]]]  # ONNX's reference implementation has 0, 1, 2, 3


def test_scores_of_an_attention_of_constants_are_those_before_the_cap() -> None:
    """As attribute qk_matmul_output_mode = 0 says; ONNX's reference implementation has them capped: below 2."""
    row: Array = np.full((1, 1, 4), 2, np.float32)
    attributes: dict[str, Attribute] = {"q_num_heads": 1, "kv_num_heads": 1, "softcap": 2.0}
    model = Node("Attention", [row, row, row], [0, 1, 2], attributes, results=(1, 0, 0, 1), opset=23).model()
    del model.graph.output[:], model.graph.value_info[:]
    for number in 0, 3:
        model.graph.node.append(helper.make_node("Neg", [f"y{number}"], [f"z{number}"]))
        model.graph.output.append(onnx.ValueInfoProto(name=f"z{number}"))

    found = interpret(lowered(model), {})

    assert found["z3"].tolist() == [[[[-8]]]]
    assert found["z0"].tolist() == [[[-2] * 4]]


def test_a_cast_like_itself_is_no_cast_of_zeros() -> None:
    text = "g (float[2] x) => (float[2] y, float[2] t) { t = Softsign(x) y = CastLike(t, t) }"
    x = np.array([3.625, -1], np.float32)

    found = interpret(lowered(model_from_text(text)), {"x": x})

    np.testing.assert_array_equal(found["y"], found["t"])
    np.testing.assert_allclose(np.asarray(found["t"], float), x / (1 + np.abs(x)), rtol=1e-6)
