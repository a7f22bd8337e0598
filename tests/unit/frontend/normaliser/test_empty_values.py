"""Values without elements: they cost nothing, and nothing that has elements changes."""

from collections.abc import Mapping

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.errors import UserError
from dfcompile.frontend import ReadOptions
from dfcompile.frontend.onnx.onnxruntime_evaluation import evaluated
from dfcompile.frontend.onnx_model import program_of
from dfcompile.lowering import lower_to_canonical, lower_to_maps
from tests.examples import examples
from tests.interpreter import Array, interpret
from tests.onnx_nodes import TABLE, Node, assert_same, random
from tests.onnx_text import model_from_text, program_from_model

LAYER = """g (float[1,P,8] past, float[1,S,8] k, float[1,S,8] q, int64[1,P] ids) => (y, keys, kept, seen) {
    keys = Concat<axis=1>(past, k)
    turned = Transpose<perm=[0,2,1]>(keys)
    scores = MatMul(q, turned)
    y = Softmax(scores)
    kept = Relu(past)
    ones = Cast<to=1>(ids)
    seen = ReduceSum<keepdims=0>(ones)
}"""


def _check(model: onnx.ModelProto, feeds: Mapping[str, Array], options: ReadOptions | None = None) -> None:
    """Compare the outputs that have elements with onnxruntime's."""
    program = program_of("g", model, options or ReadOptions())
    answer = evaluated(model, feeds)
    assert answer is not None
    names = [output.name for output in model.graph.output]
    expected = {name: value for name, value in zip(names, answer[1], strict=True) if value.size}
    maps = lower_to_maps(lower_to_canonical(program, TABLE, ()), TABLE, ())
    assert_same(interpret(maps, {port.name: feeds[port.name] for port in program.inputs}), expected, 1e-5, 1e-5)


@examples(20)
@given(st.integers(0, 2), st.integers(0, 2))
def test_layer_with_a_cache(past: int, new: int) -> None:
    feeds = {"past": random((1, past, 8)), "k": random((1, new, 8)), "q": random((1, new, 8))}

    _check(
        model_from_text(LAYER), feeds | {"ids": np.ones((1, past), np.int64)}, ReadOptions(dims={"P": past, "S": new})
    )


def test_inputs_without_elements_are_known() -> None:
    program = program_of("g", model_from_text(LAYER), ReadOptions(dims={"P": 0, "S": 2}))

    assert [port.name for port in program.inputs] == ["k", "q"]
    assert [port.name for port in program.outputs] == ["y", "keys", "seen"]
    assert [(each.position, each.name, each.value.shape) for each in program.known_inputs] == [
        (0, "past", (1, 0, 8)),
        (3, "ids", (1, 0)),
    ]


EMPTY = random((0, 4))
NODES = {
    "product over no terms": Node("MatMul", [random((2, 0)), random((0, 3))]),
    "Gemm": Node("Gemm", [random((2, 0)), random((0, 3)), random((3,))]),
    "Gemm, turned": Node(
        "Gemm", [random((0, 2)), random((3, 0)), random((2, 1))], attributes={"transA": 1, "transB": 1}
    ),
    "Einsum": Node("Einsum", [random((2, 0)), random((0, 3))], attributes={"equation": "ij,jk->ik"}),
    "two parts": Node("Concat", [EMPTY, random((2, 4)), random((3, 4))], attributes={"axis": 0}),
    "one part": Node("Concat", [EMPTY, random((2, 4))], attributes={"axis": 0}),
    "no part": Node("Concat", [EMPTY, EMPTY], attributes={"axis": 0}),
    "broadcast": Node("Add", [EMPTY, random((1, 4))]),
    "Where": Node("Where", [random((1, 4), "bool"), EMPTY, random((4,))]),
    "sum": Node("ReduceSum", [EMPTY, np.array([0])], [1]),
    "product": Node("ReduceProd", [EMPTY, np.array([0])], [1]),
    "padded": Node("Pad", [EMPTY, np.array([1, 0, 1, 0])], [1]),
    "taken at no place": Node("Gather", [random((2, 4)), np.zeros((0,), np.int64)]),
    "scattered to no place": Node("ScatterND", [random((2, 4)), np.zeros((0, 1), np.int64), random((0, 4))]),
    "no updates": Node("ScatterElements", [random((2, 4)), np.zeros((0, 4), np.int64), EMPTY]),
    "split": Node("Split", [random((2, 4)), np.array([2, 0])], [1], results=(1, 1)),
    "nothing of a slice": Node("Slice", [random((2, 4)), np.array([2]), np.array([2])], [1, 2]),
    "largest none": Node("TopK", [random((2, 4)), np.array([0])], [1], results=(1, 1)),
    "reshaped": Node("Reshape", [random((0, 2, 6)), np.array([2, -1, 3])], [1]),
    "no image": Node("MaxPool", [random((0, 2, 4))], attributes={"kernel_shape": [3]}),
    "of the type of nothing": Node("CastLike", [random((2, 3)), np.zeros(0, np.float16)]),
    "flat": Node("Flatten", [random((0, 2, 3))]),
    "shape": Node("Shape", [EMPTY]),
    "attention with an empty cache": Node(
        "Attention", [*[random((1, 2, 3, 4))] * 3, None, *[random((1, 2, 0, 4))] * 2], results=(1, 1, 1), opset=23
    ),
    "group query": Node(
        "GroupQueryAttention",
        [
            random((1, 2, 32)), *[random((1, 2, 16))] * 2, *[random((1, 1, 0, 16))] * 2,
            np.array([1], np.int32), np.array(2, np.int32),
        ],
        [5, 6], {"num_heads": 2, "kv_num_heads": 1}, (1, 1, 1), domain="com.microsoft",
    ),
    "multi-head": Node(
        "MultiHeadAttention", [*[random((1, 2, 8))] * 3, None, None, None, *[random((1, 2, 0, 4))] * 2],
        attributes={"num_heads": 2}, results=(1, 1, 1), domain="com.microsoft",
    ),
}  # fmt: skip


@pytest.mark.parametrize("node", NODES.values(), ids=NODES)
@pytest.mark.parametrize("constants", ["as they are", "operands too"])
def test_as_onnxruntime(node: Node, constants: str) -> None:
    if constants == "operands too":
        places = [at for at, value in enumerate(node.operands) if value is not None and value.size == 0]
        node = Node(**{**vars(node), "constants": [*node.constants, *places]})

    _check(node.model(), node.feeds)


def test_of_what_has_no_elements_no_element_is_read() -> None:
    text = "g (float[1,3,8] x, float[3,0,8] w, float[3,32,8] r) => (a, b) { a, b = LSTM<hidden_size=8>(x, w, r) }"

    with pytest.raises(UserError):
        program_from_model(model_from_text(text))
