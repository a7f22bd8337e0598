"""Operators of onnxruntime's own domain on quantised tensors, against onnxruntime."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.errors import UnsupportedOpError, UserError
from dfcompile.lowering import Choice
from tests.examples import examples
from tests.onnx_nodes import Array, Attribute, Node, lowered, random, scopes
from tests.quantised_nodes import BYTES, Quantised, answer, assert_within_a_step, found_by

seeds = st.integers(0, 2**32)
sizes = st.integers(1, 5)
dtypes = st.sampled_from(BYTES)


def contributed(
    op_type: str,
    *operands: Array | None,
    attributes: dict[str, Attribute] | None = None,
    constants: tuple[int, ...] = (),
) -> Node:
    return Node(op_type, operands, constants, attributes, domain="com.microsoft")


@examples(12)
@given(seeds, st.sampled_from(["QLinearAdd", "QLinearMul"]), dtypes, st.lists(sizes, min_size=1, max_size=3),
       st.sampled_from([0, 1, -1]), st.booleans())  # fmt: skip
def test_sum_and_product_are_one_task(
    seed: int, op_type: str, dtype: str, shape: list[int], keep: int, are_constants: bool
) -> None:
    drawn = Quantised(seed)
    other = shape if keep == 0 else shape[-1:] if keep == 1 else [1] * len(shape)
    operands = (*drawn.three(dtype, shape), *drawn.three(dtype, other), drawn.scale(), drawn.steps(dtype, ()))
    constants = (1, 2, 4, 5, 6, 7) if are_constants else ()
    node = contributed(op_type, *operands, constants=constants)

    assert_within_a_step(found_by(node), answer(node))
    assert scopes(lowered(node.model())) == ["op"]


@examples(10)
@given(seeds, st.sampled_from(["QLinearSigmoid", "QLinearLeakyRelu"]), dtypes, st.booleans(), sizes)
def test_functions_are_one_task(seed: int, op_type: str, dtype: str, has_zeros: bool, size: int) -> None:
    drawn = Quantised(seed)
    x, scale, zero = drawn.three(dtype, (size, 3))
    zeros = (zero, drawn.steps(dtype, ())) if has_zeros else (None, None)
    operands = (x, scale, zeros[0], drawn.scale(), zeros[1])
    node = contributed(
        op_type, *operands, attributes={"alpha": 0.3} if "Leaky" in op_type else {}, constants=(1, 2, 3, 4)
    )

    assert_within_a_step(found_by(node), answer(node))


@examples(10)
@given(seeds, dtypes, st.integers(-3, 2), st.sampled_from([11, 13]))
def test_softmax_along_an_axis_or_all_from_it_on(seed: int, dtype: str, axis: int, opset: int) -> None:
    drawn = Quantised(seed)
    zero = np.array(0 if dtype == "uint8" else -128, dtype)
    operands = (*drawn.three(dtype, (2, 3, 4)), np.array(1 / 256, np.float32), zero)
    node = contributed("QLinearSoftmax", *operands, attributes={"axis": axis, "opset": opset}, constants=(1, 2, 3, 4))

    assert_within_a_step(found_by(node), answer(node), most=0.1)


@examples(8)
@given(seeds, dtypes, st.integers(1, 3), st.integers(1, 2), st.integers(0, 1), st.booleans())
def test_average_of_windows(seed: int, dtype: str, kernel: int, stride: int, pad: int, counts_pads: bool) -> None:
    drawn = Quantised(seed)
    pad = min(pad, kernel - 1)
    attributes: dict[str, Attribute] = {
        "kernel_shape": [kernel, kernel], "strides": [stride, stride], "pads": [pad] * 4,
        "count_include_pad": int(counts_pads),
    }  # fmt: skip
    operands = (*drawn.three(dtype, (2, 3, 5, 6)), drawn.scale(), drawn.steps(dtype, ()))
    node = contributed("QLinearAveragePool", *operands, attributes=attributes, constants=(1, 2, 3, 4))

    assert_within_a_step(found_by(node), answer(node))


@pytest.mark.parametrize("dtype", BYTES)
def test_average_of_channels(dtype: str) -> None:
    drawn = Quantised(3)
    node = contributed(
        "QLinearGlobalAveragePool", *drawn.three(dtype, (2, 5, 4, 3)), drawn.scale(), drawn.steps(dtype, ())
    )

    assert_within_a_step(found_by(node), answer(node))
    with pytest.raises(UnsupportedOpError, match=r"node 'op': .*'channels_last' is 1 against 0"):
        lowered(contributed("QLinearGlobalAveragePool", *node.operands, attributes={"channels_last": 1}).model())


@examples(8)
@given(seeds, dtypes, st.integers(1, 3), st.booleans(), st.integers(-2, 1))
def test_parts_side_by_side_at_one_scale(seed: int, dtype: str, parts: int, one_is_alike: bool, axis: int) -> None:
    drawn = Quantised(seed)
    scale, zero = drawn.scale(), drawn.steps(dtype, ())
    operands: list[Array] = [scale, zero]
    for part in range(parts):
        shape = [2, 3]
        shape[axis] = part + 1
        x, its_scale, its_zero = drawn.three(dtype, shape)
        operands += [x, scale, zero] if one_is_alike and not part else [x, its_scale, its_zero]
    constants = tuple(at for at in range(len(operands)) if at < 2 or at % 3 != 2)
    node = contributed("QLinearConcat", *operands, attributes={"axis": axis}, constants=constants)

    assert_within_a_step(found_by(node), answer(node))


def test_parts_that_differ_elsewhere_are_refused() -> None:
    drawn = Quantised(0)
    operands = [drawn.scale(), drawn.steps("uint8", ()), *drawn.three("uint8", (2, 3)), *drawn.three("uint8", (3, 4))]

    with pytest.raises(UserError, match=r"node 'op': .*differ along axis 0 alone"):
        lowered(contributed("QLinearConcat", *operands, attributes={"axis": 0}).model())


def test_choice_between_quantised_tensors() -> None:
    drawn = Quantised(5)
    condition = drawn.generator.integers(0, 2, (4, 3)).astype(bool)
    operands = (*drawn.three("uint8", (4, 3)), *drawn.three("uint8", (3,)), drawn.scale(), drawn.steps("uint8", ()))
    node = contributed("QLinearWhere", condition, *operands, constants=(2, 3, 5, 6, 7, 8))

    assert_within_a_step(found_by(node), answer(node))


@examples(12)
@given(seeds, st.tuples(sizes, sizes, sizes), st.tuples(st.booleans(), st.booleans()), dtypes, st.booleans(),
       st.booleans(), st.booleans())  # fmt: skip
def test_gemm_of_any_form(
    seed: int, extents: tuple[int, int, int], turned: tuple[bool, bool], dtype: str, has_bias: bool,
    is_real: bool, per_column: bool,
) -> None:  # fmt: skip
    drawn = Quantised(seed)
    n, k, m = extents
    a = drawn.three("uint8", (k, n) if turned[0] else (n, k))
    columns = (m,) if per_column else ()
    b = (drawn.steps(dtype, (m, k) if turned[1] else (k, m)), drawn.scale(columns), np.zeros(columns, dtype))
    bias = drawn.generator.integers(-500, 500, (m,)).astype(np.int32) if has_bias else None
    rest = () if is_real else (drawn.scale((), 1.0, 4.0), drawn.steps("uint8", ()))
    attributes: dict[str, Attribute] = {"transA": int(turned[0]), "transB": int(turned[1]), "alpha": 0.5}
    node = contributed("QGemm", *a, *b, bias, *rest, attributes=attributes, constants=(1, 2, 3, 4, 5, 6, 7, 8))

    assert_within_a_step(found_by(node), answer(node))


@examples(10)
@given(seeds, st.sampled_from([(), (2,), (2, 3)]), sizes, sizes, dtypes, st.booleans(), st.booleans())
def test_products_of_integers_as_real_numbers(
    seed: int, lead: tuple[int, ...], k: int, m: int, dtype: str, per_column: bool, has_bias: bool
) -> None:
    drawn = Quantised(seed)
    columns = (m,) if per_column else ()
    b, scale, zero = drawn.steps(dtype, (k, m)), drawn.scale(columns), drawn.steps(dtype, columns)
    bias = random((m,)) if has_bias else None
    a, a_scale, a_zero = drawn.three("uint8", (*lead, 3, k))
    node = contributed("MatMulIntegerToFloat", a, b, a_scale, scale, a_zero, zero, bias, constants=(1, 3, 5))
    dynamic = contributed("DynamicQuantizeMatMul", random((*lead, 3, k)), b, scale, zero, bias, constants=(1, 2, 3))

    assert_within_a_step(found_by(node), answer(node))
    assert_within_a_step(found_by(dynamic), answer(dynamic))


@pytest.mark.parametrize("choice", ["im2col", "direct"])
def test_convolution_with_channels_first(choice: str) -> None:
    drawn = Quantised(7)
    w, w_scale = drawn.steps("int8", (4, 3, 3, 3)), drawn.scale((4,))
    operands = (
        *drawn.three("uint8", (2, 3, 6, 5)),
        w,
        w_scale,
        np.zeros(4, np.int8),
        np.array(3, np.float32),
        np.array(9, np.uint8),
    )
    node = contributed("QLinearConv", *operands, attributes={"pads": [1, 1, 1, 1]}, constants=(1, 2, 3, 4, 5, 6, 7))

    assert_within_a_step(found_by(node, [Choice("com.microsoft.QLinearConv", choice)]), answer(node))


@examples(12)
@given(seeds, st.sampled_from([4, 8, 2]), st.sampled_from([16, 32]), st.integers(1, 70), st.integers(1, 5),
       st.sampled_from(["none", "packed", "real"]), st.booleans(), st.sampled_from([(), (2,)]))  # fmt: skip
def test_weights_of_a_few_bits(
    seed: int, bits: int, block: int, k: int, n: int, zeros: str, has_bias: bool, lead: tuple[int, ...]
) -> None:
    drawn = Quantised(seed)
    blocks = -(-k // block)
    packed = drawn.steps("uint8", (n, blocks, block * bits // 8))
    scales = drawn.scale((n, blocks))
    if zeros == "none" or (zeros == "real" and bits != 4):
        zero_points = None
    elif zeros == "packed":
        zero_points = drawn.steps("uint8", (n, -(-blocks * bits // 8)))
    else:
        zero_points = drawn.generator.uniform(0, 15, (n, blocks)).astype(np.float32)
    attributes: dict[str, Attribute] = {"K": k, "N": n, "bits": bits, "block_size": block}
    bias = random((n,)) if has_bias else None
    node = contributed(
        "MatMulNBits", random((*lead, 3, k)), packed, scales, zero_points, None, bias,
        attributes=attributes, constants=(1, 2, 3, 5),
    )  # fmt: skip

    assert_within_a_step(found_by(node), answer(node))


def test_what_few_bits_cannot_be_is_refused() -> None:
    drawn = Quantised(0)
    attributes: dict[str, Attribute] = {"K": 16, "N": 2, "bits": 3, "block_size": 16}
    operands = (random((3, 16)), drawn.steps("uint8", (2, 1, 6)), drawn.scale((2, 1)))
    with pytest.raises(UnsupportedOpError, match=r"node 'op': .*'bits' is 3 against 2, 4 or 8"):
        lowered(contributed("MatMulNBits", *operands, attributes=attributes).model())

    order = np.zeros(16, np.int32)
    operands = (operands[0], drawn.steps("uint8", (2, 1, 8)), operands[2])
    with pytest.raises(UnsupportedOpError, match=r"node 'op': .*operand 'g_idx' has no expansion"):
        lowered(contributed("MatMulNBits", *operands, None, order, attributes={**attributes, "bits": 4}).model())


def test_operands_that_do_not_fit_are_refused() -> None:
    drawn = Quantised(0)
    with pytest.raises(UserError, match=r"node 'op': .*broadcast"):
        lowered(
            contributed(
                "QLinearAdd",
                *drawn.three("uint8", (2, 3)),
                *drawn.three("uint8", (4,)),
                drawn.scale(),
                np.array(0, np.uint8),
            ).model()
        )


def test_quantising_to_16_bits_and_back() -> None:
    drawn = Quantised(1)
    zero = drawn.steps("uint16", ())
    forward = contributed("QuantizeLinear", random((3, 4)), drawn.scale((), 1e-4, 1e-3), zero, constants=(1, 2))
    back = contributed(
        "DequantizeLinear", drawn.steps("int16", (3, 4)), drawn.scale((4,)), drawn.steps("int16", (4,)),
        attributes={"axis": 1}, constants=(1, 2),
    )  # fmt: skip

    assert_within_a_step(found_by(forward), answer(forward))
    assert_within_a_step(found_by(back), answer(back))


def test_weights_of_a_few_bits_in_half_precision() -> None:
    drawn = Quantised(9)
    packed, scales = drawn.steps("uint8", (5, 2, 8)), drawn.scale((5, 2)).astype(np.float16)
    attributes: dict[str, Attribute] = {"K": 20, "N": 5, "bits": 4, "block_size": 16}
    bias = random((5,)).astype(np.float16)
    node = contributed(
        "MatMulNBits", random((3, 20)).astype(np.float16), packed, scales, None, None, bias,
        attributes=attributes, constants=(1, 2, 5),
    )  # fmt: skip

    (found,), (expected,) = found_by(node).values(), answer(node).values()
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found.astype(np.float64), expected.astype(np.float64), rtol=1e-2, atol=1e-2)
