"""Element types that numpy itself does not have: what is computed with them, and what they count."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from dfcompile.canonical_dag.extraction import extract
from dfcompile.errors import UserError
from dfcompile.frontend import element_kind
from dfcompile.lowering import apply_passes, lower_to_canonical, lower_to_maps
from dfcompile.lowering.passes.fuse_elementwise import fuse_elementwise
from tests.examples import examples
from tests.interpreter import interpret
from tests.onnx_nodes import TABLE, Array, Attribute, Node, check_node, lowered, random
from tests.onnx_text import model_from_text, program_from_text

Single = np.ndarray[tuple[int, ...], np.dtype[np.float32]]
CASES: dict[str, tuple[int, dict[str, Attribute], Callable[..., Array]]] = {
    "Abs": (1, {}, np.abs),
    "Add": (2, {}, np.add),
    "Div": (2, {}, np.divide),
    "Max": (2, {}, np.maximum),
    "Mul": (2, {}, np.multiply),
    "Neg": (1, {}, np.negative),
    "Relu": (1, {}, lambda a: np.maximum(a, 0)),
    "Sigmoid": (1, {}, lambda a: 1 / (1 + np.exp(-a))),
    "Sub": (2, {}, np.subtract),
    "Tanh": (1, {}, np.tanh),
    "ReduceMax": (1, {"keepdims": 0}, np.max),
    "ReduceMean": (1, {"keepdims": 0}, np.mean),
    "ReduceSum": (1, {"keepdims": 0}, np.sum),
}


@examples(40)
@given(
    st.sampled_from(sorted(CASES)), st.sampled_from(["bfloat16", "float16"]), st.lists(st.integers(1, 4), max_size=3)
)
def test_numbers_of_two_bytes_are_computed_in_single_precision_and_rounded_once(
    op_type: str, dtype: str, shape: list[int]
) -> None:
    count, attributes, function = CASES[op_type]
    operands = [random(shape, seed=seed).astype(dtype) for seed in range(count)]
    expected = np.asarray(function(*(value.astype(np.float32) for value in operands))).astype(dtype)

    rounding = 2.0**-8 if dtype == "bfloat16" else 2.0**-11
    check_node(Node(op_type, operands, attributes=attributes, opset=22), expected, rtol=rounding, atol=1e-6)


def test_product_of_two_bytes_moves_half_the_bytes_of_one_of_four() -> None:
    moved = {}
    for dtype in ("bfloat16", "float32"):
        a, b = random((3, 4)).astype(dtype), random((4, 5), seed=1).astype(dtype)
        program = lowered(Node("MatMul", [a, b], [1], opset=22).model())
        dag = extract(program.sdfg)
        moved[dtype] = int(np.dot(dag.edge_volume, dag.edge_element_bytes.astype(np.int64)))
        expected = (a.astype(np.float32) @ b.astype(np.float32)).astype(dtype).astype(np.float32)
        (found,) = interpret(program, {"x0": a}).values()
        np.testing.assert_allclose(found.astype(np.float32), expected, rtol=2.0**-7, atol=1e-6)

    assert 2 * moved["bfloat16"] == moved["float32"]


def test_joined_tasks_round_as_the_two_did() -> None:
    text = "g (bfloat16[64] x, bfloat16[64] y) => (bfloat16[64] z) { t = Mul(x, y)  z = Sub(t, x) }"
    canonical = lower_to_canonical(program_from_text(text), TABLE)
    feeds = {name: random((64,), seed=seed).astype("bfloat16") for seed, name in enumerate("xy")}
    apart, joined = (
        interpret(lower_to_maps(program, TABLE), feeds)["z"]
        for program in (canonical, apply_passes(canonical, [fuse_elementwise]))
    )

    np.testing.assert_array_equal(joined, apart)


@pytest.mark.parametrize("target", ["int4", "uint4", "int2", "uint2", "bfloat16", "float8_e5m2", "bool", "int64"])
@pytest.mark.parametrize("source", ["int4", "uint2", "bfloat16", "float32", "int8"])
def test_casts_between_all_kinds(source: str, target: str) -> None:
    values = np.array([0, 1, 1, 0] if "2" in source[:5] else [-2, 1, 0, -1] if source[0] != "u" else [0, 1, 2, 1])
    if element_kind(target) == "u":
        values = np.abs(values)
    number = helper.np_dtype_to_tensor_dtype(np.dtype(target))
    x = values.astype(source)

    for constants in ((), (0,)):
        node = Node("Cast", [x], constants, {"to": number}, opset=25)
        (found,) = interpret(lowered(node.model()), node.feeds).values()
        assert found.dtype == np.dtype(target)
        np.testing.assert_array_equal(found.astype(np.float64), x.astype(np.float32).astype(target).astype(np.float64))


def test_integers_of_less_than_a_byte_keep_their_lowest_bits() -> None:
    x = np.array([7, 8, 15, 16, -1, -9], np.int32)

    check_node(
        Node("Cast", [x], attributes={"to": int(TensorProto.INT4)}, opset=21), np.array([7, -8, -1, 0, -1, 7], "int4")
    )
    check_node(
        Node("Cast", [x], attributes={"to": int(TensorProto.UINT4)}, opset=21), np.array([7, 8, 15, 0, 15, 7], "uint4")
    )


def test_types_that_no_array_holds_are_named() -> None:
    model = model_from_text("g (string[3] x) => (string[3] y) { y = Identity(x) }")

    with pytest.raises(
        UserError, match=r"input 'x': element type 'string' against float16, bfloat16, .*, float4_e2m1fn"
    ):
        lowered(model)
