"""ONNX's quantisation and products of integers, against onnxruntime, numpy and what is written by hand."""

from collections.abc import Sequence

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto

from dfcompile.canonical_dag.extraction import extract
from dfcompile.errors import UnsupportedOpError, UserError
from dfcompile.lowering import Choice
from tests.examples import examples
from tests.onnx_nodes import Array, Attribute, Node, assert_same, check_node, lowered, random, scopes
from tests.quantised_nodes import BYTES, Quantised, answer, assert_within_a_step, found_by

seeds = st.integers(0, 2**32)
sizes = st.integers(1, 5)
dtypes = st.sampled_from(BYTES)
pairs = st.sampled_from([("uint8", "uint8"), ("uint8", "int8"), ("int8", "int8")])  # that onnxruntime multiplies


def test_halves_become_even_and_what_is_beyond_the_limits_becomes_these() -> None:
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 1000, -1000, np.inf, -np.inf], np.float32)
    one, zero = np.array(1, np.float32), np.array(3, np.int8)
    node = Node("QuantizeLinear", [x, one, zero], [1, 2])

    check_node(node, np.array([3, 5, 5, 3, 1, 127, -128, 127, -128], np.int8))
    assert scopes(lowered(node.model())) == ["op"]


@pytest.mark.parametrize("opset", [10, 13, 19, 21, 23, 25])
@pytest.mark.parametrize("dtype", BYTES)
def test_steps_of_a_tensor_in_every_operator_set(opset: int, dtype: str) -> None:
    drawn = Quantised(opset)
    forward = Node("QuantizeLinear", [random((3, 4)), drawn.scale(), drawn.steps(dtype, ())], [1, 2], opset=opset)
    back = Node("DequantizeLinear", drawn.three(dtype, (3, 4)), [1, 2], opset=opset)
    without = Node("QuantizeLinear", [random((3, 4)), drawn.scale()], opset=opset)

    for node in (forward, back, without):
        assert_within_a_step(found_by(node), answer(node))


@examples(16)
@given(seeds, st.lists(sizes, min_size=1, max_size=3), st.integers(-3, 2), st.sampled_from(["uint8", "int8", "int16"]))
def test_steps_of_an_axis(seed: int, shape: list[int], axis: int, dtype: str) -> None:
    drawn, axis = Quantised(seed), axis % len(shape)
    extent = (shape[axis],)
    scale, zero = drawn.scale(extent), drawn.steps(dtype, extent)
    for name, x in (("QuantizeLinear", random(shape, seed=1)), ("DequantizeLinear", drawn.steps(dtype, shape))):
        node = Node(name, [x, scale, zero], [1, 2], {"axis": axis}, opset=21)

        assert_within_a_step(found_by(node), answer(node))


@examples(16)
@given(seeds, st.sampled_from([(6, 4), (2, 6), (2, 5, 3), (7,)]), st.integers(0, 2), st.integers(2, 4), st.booleans())
def test_steps_of_blocks_the_last_of_which_may_be_cut_off(
    seed: int, shape: tuple[int, ...], axis: int, block: int, has_zeros: bool
) -> None:
    drawn, axis = Quantised(seed), axis % len(shape)
    of_blocks = [*shape]
    of_blocks[axis] = -(-shape[axis] // block)
    scale = drawn.scale(of_blocks)
    zero = drawn.steps("uint8", of_blocks) if has_zeros else None
    every = np.repeat(scale, block, axis)[tuple(map(slice, shape))]
    zeros = (
        np.zeros(shape) if zero is None else np.repeat(zero, block, axis)[tuple(map(slice, shape))].astype(np.float32)
    )
    attributes: dict[str, Attribute] = {"axis": axis, "block_size": block}
    x, steps = random(shape), drawn.steps("uint8", shape)

    forward = np.clip(np.rint(x / every) + zeros, 0, 255).astype(np.uint8)
    check_node(Node("QuantizeLinear", [x, scale, zero], [1, 2], attributes, opset=21), forward)
    back = ((steps.astype(np.float32) - zeros) * every).astype(np.float32)
    check_node(Node("DequantizeLinear", [steps, scale, zero], [1, 2], attributes, opset=21), back)


@pytest.mark.parametrize(("attributes", "shape", "found"), [
    ({"block_size": 2}, (2, 4), "one element for each block of 2 along axis 1"),
    ({"block_size": 2}, (9,), "one element for each block of 2 along axis 1"),
    ({"block_size": -2}, (2, 2), "'block_size' is -2 against a positive size"),
    ({}, (3,), "one element for each along axis 1"),
    ({"precision": 11}, (), "'precision' is 11 against 1, 10 or 16"),
])  # fmt: skip
def test_forms_that_contradict_themselves_are_refused(
    attributes: dict[str, Attribute], shape: Sequence[int], found: str
) -> None:
    node = Node("QuantizeLinear", [random((2, 4)), np.ones(shape, np.float32)], [1], attributes, opset=25)

    with pytest.raises(UnsupportedOpError, match=rf"node 'op': QuantizeLinear.*{found}"):
        lowered(node.model())


@pytest.mark.parametrize("op_type", ["QuantizeLinear", "DequantizeLinear"])
@pytest.mark.parametrize("shape", [(2,), (1,), (3, 1)])
@pytest.mark.parametrize("step", [0, 7])
def test_zero_point_is_of_the_shape_of_the_scale(op_type: str, shape: Sequence[int], step: int) -> None:
    x = random((2, 3)) if op_type == "QuantizeLinear" else np.ones((2, 3), np.uint8)
    operands = [x, np.ones(3, np.float32), np.full(shape, step, np.uint8)]

    with pytest.raises(UserError, match="node 'op'"):
        lowered(Node(op_type, operands, [1, 2], opset=25).model())


@pytest.mark.parametrize("dtype", ["int4", "uint4", "int2", "uint2"])
@pytest.mark.parametrize("elements", [9, 12, 15])
def test_constants_of_less_than_a_byte_are_read_as_they_are_stored(dtype: str, elements: int) -> None:
    limits = ml_dtypes.iinfo(np.dtype(dtype))  # type: ignore[no-untyped-call]
    steps = np.random.default_rng(1).integers(int(limits.min), int(limits.max) + 1, (elements,)).astype(dtype)
    node = Node("DequantizeLinear", [steps, np.array(0.5, np.float32), np.array(1, dtype)], [0, 1, 2], opset=25)
    program = lowered(node.model())

    expected = (steps.astype(np.float32) - 1) / 2
    check_node(node, expected)
    (packed,) = [value for value in program.parameters.values() if value.dtype == np.uint8]
    assert packed.nbytes == -(-elements // (4 if dtype.endswith("2") else 2))


def test_weights_count_the_bytes_that_they_are_stored_in() -> None:
    moved = {}
    for dtype in ("float32", "int8", "int4"):
        weights = np.ones((8, 6)).astype(dtype)
        model = Node("DequantizeLinear", [weights, np.array(0.5, np.float32)], [0, 1], opset=21).model()
        if dtype == "float32":
            model = Node("Neg", [weights], opset=21).model()
        dag = extract(lowered(model).sdfg)
        (read,) = [tensor for tensor in dag.tensors if tensor.name in ("x0", "op_packed")]
        moved[dtype] = read.size_bytes

    assert moved == {"float32": 8 * 6 * 4, "int8": 8 * 6, "int4": 8 * 6 // 2}


@examples(12)
@given(seeds, st.lists(sizes, max_size=3))
def test_dynamic_steps(seed: int, shape: list[int]) -> None:
    x = np.asarray(np.random.default_rng(seed).normal(seed % 3 - 1, 1, shape), np.float32)
    node = Node("DynamicQuantizeLinear", [x], results=(1, 1, 1))

    assert_within_a_step(found_by(node), answer(node))


def test_dynamic_steps_of_zeros() -> None:
    node = Node("DynamicQuantizeLinear", [np.zeros((2, 3), np.float32)], results=(1, 1, 1))

    assert_same(found_by(node), answer(node), 0, 0)


@examples(16)
@given(seeds, st.sampled_from([((2, 3), (3, 4)), ((5, 2, 3), (3, 4)), ((5, 2, 3), (5, 3, 4)), ((3,), (3, 4))]),
       dtypes, dtypes, st.booleans())  # fmt: skip
def test_products_accumulate_in_32_bits(
    seed: int, shapes: tuple[tuple[int, ...], tuple[int, ...]], left: str, right: str, has_zeros: bool
) -> None:
    drawn = Quantised(seed)
    a, b = drawn.steps(left, shapes[0]), drawn.steps(right, shapes[1])
    a_zero, b_zero = (drawn.steps(left, ()), drawn.steps(right, ())) if has_zeros else (None, None)
    shifts = [0 if zero is None else int(zero) for zero in (a_zero, b_zero)]
    expected = (a.astype(np.int32) - shifts[0]) @ (b.astype(np.int32) - shifts[1])

    for constants in ((), (1, 2, 3)):
        check_node(Node("MatMulInteger", [a, b, a_zero, b_zero], constants), expected)


def test_product_with_zero_points_of_rows_and_columns() -> None:
    drawn = Quantised(2)
    a, b = drawn.steps("uint8", (2, 3)), drawn.steps("int8", (3, 4))
    rows, columns = drawn.steps("uint8", (2,)), drawn.steps("int8", (4,))
    expected = (a.astype(np.int32) - rows.astype(np.int32)[:, None]) @ (b.astype(np.int32) - columns.astype(np.int32))

    check_node(Node("MatMulInteger", [a, b, rows, columns]), expected)


@pytest.mark.parametrize(
    ("at", "shape"),
    [(1, (1, 3)), (1, (2, 3)), (1, (5,)), (2, (1, 3)), (2, (3,)), (2, (1, 2, 1)), (2, (1, 4)), (4, (2,)), (5, (4, 1))],
)
def test_scales_and_zero_points_that_go_along_no_dimension_are_refused(at: int, shape: Sequence[int]) -> None:
    drawn = Quantised(3)
    one = np.ones(1, np.float32)
    zero = np.ones(1, np.uint8)
    operands = [drawn.steps("uint8", (2, 4)), one, zero, drawn.steps("uint8", (4, 3)), one, zero, one, zero]
    operands[at] = np.full(shape, 1, operands[at].dtype)

    with pytest.raises(UserError, match="node 'op'"):
        lowered(Node("QLinearMatMul", operands, [], opset=21).model())


@pytest.mark.parametrize("op_type", ["QuantizeLinear", "DequantizeLinear"])
@pytest.mark.parametrize(("ranks", "named"), [((2, 1), r"scale float32\[1,1\]"), ((1, 2), r"zero point int8\[1,1\]")])
def test_a_shift_of_more_dimensions_than_the_data_is_refused(op_type: str, ranks: tuple[int, int], named: str) -> None:
    data = np.ones(1, np.float32 if op_type == "QuantizeLinear" else np.int8)
    scale, zero_point = (1,) * ranks[0], (1,) * ranks[1]
    operands = [data, np.ones(scale, np.float32), np.ones(zero_point, np.int8)]

    with pytest.raises(UserError, match=f"a {named} against at most the dimensions of"):
        lowered(Node(op_type, operands, [], {"axis": 0}, opset=16).model())


def test_a_product_of_large_steps_does_not_wrap_around_in_any_expansion() -> None:
    a, b = np.full((2, 600), 255, np.uint8), np.full((600, 3), -128, np.int8)

    for name in ("mv", "op", "lmv", "ip", "columns", "rows"):
        check_node(
            Node("MatMulInteger", [a, b]), np.full((2, 3), 255 * -128 * 600, np.int32), choices=[Choice("MatMul", name)]
        )


@examples(16)
@given(seeds, st.sampled_from([(2, 3), (4, 2, 3)]), pairs, st.booleans())
def test_products_of_steps(seed: int, shape: tuple[int, ...], pair: tuple[str, str], per_column: bool) -> None:
    drawn, (left, right) = Quantised(seed), pair
    columns = (4,) if per_column else ()
    b = drawn.steps(right, (3, 4)), drawn.scale(columns), np.zeros(columns, right)
    y_scale, y_zero = drawn.scale((), 0.5, 5.0), drawn.steps(left, ())
    node = Node("QLinearMatMul", [*drawn.three(left, shape), *b, y_scale, y_zero], (1, 2, 3, 4, 5, 6, 7), opset=21)

    assert_within_a_step(found_by(node), answer(node))


def test_products_of_real_numbers_of_8_bits_are_refused() -> None:
    one, steps = np.array(1, np.float32), np.ones((2, 2), "float8_e4m3fn")
    zero = np.array(0, "float8_e4m3fn")
    node = Node("QLinearMatMul", [steps, one, zero, steps, one, zero, one, zero], opset=21)

    with pytest.raises(UnsupportedOpError, match=r"node 'op': .*operand 0 is float8_e4m3fn against int8 or uint8"):
        lowered(node.model())


@examples(20)
@given(seeds, st.sampled_from(["im2col", "direct"]), pairs, st.sampled_from([1, 2]), st.booleans(), st.booleans(),
       st.integers(0, 2))  # fmt: skip
def test_convolutions(
    seed: int, name: str, pair: tuple[str, str], group: int, per_filter: bool, has_bias: bool, pad: int
) -> None:
    drawn, (left, right) = Quantised(seed), pair
    filters = (4,) if per_filter else ()
    x, w = drawn.three(left, (2, 4, 5, 6)), drawn.steps(right, (4, 4 // group, 3, 2))
    attributes: dict[str, Attribute] = {"group": group, "pads": [pad, 0, 1, 1], "strides": [1, 2]}
    bias = drawn.generator.integers(-900, 900, (4,)).astype(np.int32) if has_bias else None
    rest = (drawn.scale((), 1.0, 9.0), drawn.steps(left, ()), bias)
    scaled = Node(
        "QLinearConv", [*x, w, drawn.scale(filters), np.zeros(filters, right), *rest], tuple(range(1, 9)), attributes
    )
    assert_within_a_step(found_by(scaled, [Choice("QLinearConv", name)]), answer(scaled))

    if left == "uint8":  # onnxruntime has ConvInteger for these alone
        zeros = (np.array(7, left), np.array(3, right))
        for constants in ((1, 2, 3), ()):
            whole = Node("ConvInteger", [x[0], w, *zeros], constants, attributes)
            assert_same(found_by(whole, [Choice("ConvInteger", name)]), answer(whole), 0, 0)


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("saturate", [0, 1])
def test_real_numbers_of_8_bits(dtype: str, saturate: int) -> None:
    x = np.array([0.3, -1.7, 448, 500, 60000, -1e6, 1e-3, 0], np.float32)
    limit = float(ml_dtypes.finfo(np.dtype(dtype)).max)  # type: ignore[no-untyped-call]
    expected: Array = (np.clip(x, -limit, limit) if saturate else x).astype(dtype)
    one, zero = np.array(1, np.float32), np.array(0, dtype)
    attributes: dict[str, Attribute] = {"saturate": saturate}

    check_node(Node("QuantizeLinear", [x, one, zero], [1, 2], attributes, opset=21), expected)
    number = {"float8_e4m3fn": TensorProto.FLOAT8E4M3FN, "float8_e5m2": TensorProto.FLOAT8E5M2}[dtype]
    check_node(Node("Cast", [x], attributes={**attributes, "to": int(number)}, opset=21), expected)
    check_node(Node("DequantizeLinear", [expected, one], [1], opset=21), expected.astype(np.float32))


def test_scales_of_rows_and_zero_points_of_filters() -> None:  # which onnxruntime does not take
    drawn = Quantised(4)
    a, b = drawn.steps("uint8", (3, 4)), drawn.steps("uint8", (4, 5))
    scales, zeros = drawn.scale((3,)), drawn.steps("uint8", (3,))
    half, two = np.array(0.5, np.float32), np.array(2, np.uint8)
    sums = (a.astype(np.int32) - zeros.astype(np.int32)[:, None]) @ (b.astype(np.int32) - 2)
    expected = np.clip(np.rint(sums * (scales * half / half)[:, None]) + 2, 0, 255).astype(np.uint8)
    node = Node("QLinearMatMul", [a, scales, zeros, b, half, two, half, two])
    assert_within_a_step(found_by(node), {"y0": expected})

    x, w = drawn.steps("uint8", (1, 2, 5, 5)), drawn.steps("uint8", (3, 2, 2, 2))
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.int32) - 9, (2, 2), (2, 3))
    filters = w.astype(np.int32) - zeros.astype(np.int32)[:, None, None, None]
    node = Node("ConvInteger", [x, w, np.array(9, np.uint8), zeros])
    check_node(node, np.einsum("bcyxij,ocij->boyx", windows, filters).astype(np.int32))
