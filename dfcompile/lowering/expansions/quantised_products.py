"""Products of what is quantised: of integers of 8 bits, accumulated in 32, or with weights of a few bits."""

import numpy as np

from dfcompile.frontend import element_kind
from dfcompile.lowering import CanonicalFragment, Operator, Tensor, onnx_expansion
from dfcompile.lowering.expansions.conv import PerRow, add_direct, add_im2col, is_grouped
from dfcompile.lowering.expansions.products import add_product, inner_product, transposed_product
from dfcompile.lowering.expansions.quantization import add_dynamic_steps, check_channels_first
from dfcompile.lowering.expressions import literal, operand_names, sum_dtype
from dfcompile.lowering.operators import MatMul, Pad
from dfcompile.lowering.steps import ACCUMULATED, Terms, aligned, is_zero, quantised, rescaled, shifted

_BYTE = 8


@onnx_expansion("MatMulInteger", "matmul", default=True)
def matmul_integer(op: Operator, build: CanonicalFragment) -> None:
    """``Y = (A - a_zero) @ (B - b_zero)``: element-wise tasks for the zero points that are not 0, and a MatMul."""
    a, b = factors(op, build, (op.input(0), op.optional_input(2)), (op.input(1), op.optional_input(3)))
    add_product(build, a, b, op.output())


@onnx_expansion("QLinearMatMul", "matmul", default=True)
def qlinear_matmul(op: Operator, build: CanonicalFragment) -> None:
    """As MatMulInteger, then one element-wise task that scales and rounds the sums."""
    y = op.output()
    for position in (0, 3, 7):  # real numbers of 8 bits are not accumulated as integers
        found = op.input(position).dtype
        op.refuse_if(found not in ("int8", "uint8"), f"operand {position} is {found} against int8 or uint8")
    a, b = factors(op, build, (op.input(0), op.input(2)), (op.input(3), op.input(5)))
    terms, sums = Terms(), inner_product(build, a, b, y.shape, ACCUMULATED)
    rows, columns = max(y.rank - 2, 0), max(y.rank - 1, 0)
    value = rescaled(*(terms.name(each) for each in (sums, op.input(1), op.input(4), op.input(6))))
    source = quantised(value, terms.shift(op.input(7)), y.dtype)
    vectors = zip(terms.operands[1:], (rows, columns, rows, rows), strict=False)
    axes = [tuple(range(y.rank)), *(aligned(op, operand, y, axis) for operand, axis in vectors)]
    build.elementwise(source, terms.operands, y, axes=axes, step="scale")


@onnx_expansion("ConvInteger", "im2col", source="chellapilla06", default=True)
def conv_integer_im2col(op: Operator, build: CanonicalFragment) -> None:
    """As Conv by im2col, of data and filters less their zero points; 32 bits come out."""
    add_im2col(op, build, *windows_and_filters(op, build, 1, 3), None)


@onnx_expansion("ConvInteger", "direct", default=is_grouped)
def conv_integer_direct(op: Operator, build: CanonicalFragment) -> None:
    """As Conv directly, of data and filters less their zero points; 32 bits come out."""
    add_direct(op, build, *windows_and_filters(op, build, 1, 3), None)


@onnx_expansion("QLinearConv", "im2col", source="chellapilla06", default=True)
def qlinear_conv_im2col(op: Operator, build: CanonicalFragment) -> None:
    """As ConvInteger by im2col, then one element-wise task that adds the bias, scales and rounds."""
    add_im2col(op, build, *windows_and_filters(op, build, 3, 5), qlinear_rescaling(op))


@onnx_expansion("QLinearConv", "direct", default=is_grouped)
def qlinear_conv_direct(op: Operator, build: CanonicalFragment) -> None:
    """As ConvInteger directly, then one element-wise task that adds the bias, scales and rounds."""
    add_direct(op, build, *windows_and_filters(op, build, 3, 5), qlinear_rescaling(op))


def factors(
    op: Operator, build: CanonicalFragment, left: tuple[Tensor, Tensor | None], right: tuple[Tensor, Tensor | None]
) -> tuple[Tensor, Tensor]:
    """Return the operands of a product less their zero points; given each with its zero point.

    A zero point that is a vector has an element per row of A, or per column of B.
    """
    (a, a_zero), (b, b_zero) = left, right
    rows = () if a_zero is None else aligned(op, a_zero, a, max(a.rank - 2, 0))
    columns = () if b_zero is None else aligned(op, b_zero, b, b.rank - 1)
    return shifted(build, a, a_zero, rows, "a"), shifted(build, b, b_zero, columns, "b")


def windows_and_filters(op: Operator, build: CanonicalFragment, at_filters: int, at_zero: int) -> tuple[Tensor, Tensor]:
    """Return data and filters less their zero points: padding, which stands for zero, is 0 then."""
    x = shifted(build, op.input(0), op.optional_input(2), (0,), "x")
    return x, shifted(build, op.input(at_filters), op.optional_input(at_zero), (0,), "w")


def qlinear_rescaling(op: Operator) -> PerRow:
    """Return what a QLinearConv makes of its sums."""
    zero_point, bias, y = op.input(7), op.optional_input(8), op.output()
    operands, total, shift = [op.input(1), op.input(4), op.input(6)], "a", ""
    if not is_zero(zero_point):
        operands.append(zero_point)
        shift = "e"
    if bias is not None:
        operands.append(bias)
        total = f"a + {operand_names(len(operands) + 1)[-1]}"
    source = quantised(rescaled(total, "b", "c", "d"), shift, y.dtype)
    return PerRow(source, tuple(operands), ACCUMULATED, "scale", "scaled")


@onnx_expansion("com.microsoft.QLinearConv", "im2col", source="chellapilla06", default=True)
def contributed_qlinear_conv_im2col(op: Operator, build: CanonicalFragment) -> None:
    """As ONNX's QLinearConv by im2col."""
    check_channels_first(op)
    add_im2col(op, build, *windows_and_filters(op, build, 3, 5), qlinear_rescaling(op))


@onnx_expansion("com.microsoft.QLinearConv", "direct", default=is_grouped)
def contributed_qlinear_conv_direct(op: Operator, build: CanonicalFragment) -> None:
    """As ONNX's QLinearConv directly."""
    check_channels_first(op)
    add_direct(op, build, *windows_and_filters(op, build, 3, 5), qlinear_rescaling(op))


@onnx_expansion("com.microsoft.QGemm", "matmul", default=True)
def qgemm(op: Operator, build: CanonicalFragment) -> None:
    """``Y = quantise(alpha * a_scale * b_scale * (A' @ B' + C))``, or that real number: a MatMul and a task."""
    y, is_columns_first = op.output(), op.integer("transB", 0) != 0
    a = shifted(build, op.input(0), op.input(2), (0,), "a")
    b = shifted(build, op.input(3), op.input(5), (0,) if is_columns_first else (1,), "b")
    sums = build.made("sums", transposed_product(op), [a, b], y.shape, ACCUMULATED, step="matmul")
    terms, bias = Terms(), op.optional_input(6)
    total = terms.name(sums) if bias is None else f"({terms.name(sums)} + {terms.name(bias)})"
    alpha = literal(op.real("alpha", 1.0), "float32")
    scale = f"dace.float32(dace.float32({alpha} * {terms.name(op.input(1))}) * {terms.name(op.input(4))})"
    y_scale, zero_point = op.optional_input(7), op.optional_input(8)
    if y_scale is None:
        build.elementwise(f"dace.float32({total}) * {scale}", terms.operands, y, step="scale")
        return
    value = f"dace.float32(dace.float32({total}) * dace.float32({scale} / {terms.name(y_scale)}))"
    build.elementwise(quantised(value, terms.shift(zero_point), y.dtype), terms.operands, y, step="scale")


@onnx_expansion("com.microsoft.MatMulIntegerToFloat", "matmul", default=True)
def matmul_integer_to_float(op: Operator, build: CanonicalFragment) -> None:
    """``Y = a_scale * b_scale * ((A - a_zero) @ (B - b_zero)) + bias``: a MatMul of integers, an element-wise task."""
    _add_scaled(op, build, (op.input(0), op.input(2), op.optional_input(4)), (1, 3, 5, 6))


@onnx_expansion("com.microsoft.DynamicQuantizeMatMul", "matmul", default=True)
def dynamic_quantize_matmul(op: Operator, build: CanonicalFragment) -> None:
    """A is quantised to 8 bits as by DynamicQuantizeLinear, then as MatMulIntegerToFloat."""
    a = op.input(0)
    steps, scale = build.array("steps", a.shape, "uint8"), build.array("scale", (1,))
    zero_point = build.array("zero_point", (1,), "uint8")
    add_dynamic_steps(build, a, steps, scale, zero_point)
    _add_scaled(op, build, (steps, scale, zero_point), (1, 2, 3, 4))


def _add_scaled(
    op: Operator,
    build: CanonicalFragment,
    left: tuple[Tensor, Tensor, Tensor | None],
    positions: tuple[int, int, int, int],
) -> None:
    """Add the product of A, with its scale and zero point, and B, whose scale, zero point and bias have positions."""
    at_b, at_scale, at_zero, at_bias = positions
    (a, a_scale, a_zero), b_scale, bias, y = left, op.input(at_scale), op.optional_input(at_bias), op.output()
    a, b = factors(op, build, (a, a_zero), (op.input(at_b), op.optional_input(at_zero)))
    terms, sums = Terms(), inner_product(build, a, b, y.shape, ACCUMULATED)
    source = f"dace.float32({terms.name(sums)}) * dace.float32({terms.name(a_scale)} * {terms.name(b_scale)})"
    axes = [tuple(range(y.rank)), aligned(op, a_scale, y, max(y.rank - 2, 0)), aligned(op, b_scale, y, y.rank - 1)]
    if bias is not None:
        source += f" + {terms.name(bias)}"
        axes.append(aligned(op, bias, y, y.rank - 1))
    build.elementwise(source, terms.operands, y, axes=axes, step="rescale")


@onnx_expansion("com.microsoft.MatMulNBits", "matmul", default=True)
def matmul_n_bits(op: Operator, build: CanonicalFragment) -> None:
    """``Y = A @ W.T + bias`` with ``W = (B - zero_point) * scale``: one task reads B, several integers in a byte."""
    a, y, bias = op.input(0), op.output(), op.optional_input(5)
    bits, block = op.integer("bits", 4, (2, 4, _BYTE), f"2, 4 or {_BYTE}"), op.integer("block_size", 0)
    rows, inner = op.integer("N", 0), op.integer("K", 0)
    op.refuse_if(op.optional_input(4) is not None, "operand 'g_idx' has no expansion (order the rows of the weights)")
    op.check_unknown(attributes={"weight_prepacked": 0})
    blocks = -(-inner // block)
    weights = _weights(op, build, bits, (rows, blocks, block))
    if blocks * block > inner:
        crop = Pad((0, 0, 0, inner - blocks * block))
        weights = build.made("cropped", crop, [weights], (rows, inner), step="crop")
    data = build.shaped(a, "rows", (a.elements // inner, inner))
    shape, multiply = (data.shape[0], rows), MatMul(transpose_b=True)
    if bias is None:
        build.add_reshaped(multiply, [data, weights], y, "product", shape, step="matmul")
    else:
        product = build.made("product", multiply, [data, weights], shape, sum_dtype(y.dtype), step="matmul")
        biased = y if y.shape == shape else build.array("biased", shape)
        build.elementwise("a + b", [product, bias], biased, step="bias")
        build.view_as(biased, y)


def _weights(op: Operator, build: CanonicalFragment, bits: int, shape: tuple[int, int, int]) -> Tensor:
    """Return the weights ``[n, k]``, by rows of blocks, as real numbers."""
    rows, blocks, block = shape
    per_byte = _BYTE // bits
    packed = build.view(op.input(1), "packed", (rows, blocks, block // per_byte, 1))
    terms = Terms()
    steps = f"((dace.int32({terms.name(packed)}) >> {terms.name(_shifts(build, bits))}) & {2**bits - 1})"
    scales = terms.name(build.view(op.input(2), "scales", (rows, blocks, 1, 1)))
    zero_point = op.optional_input(3)
    if zero_point is None:
        shift = f"{2 ** (bits - 1)}"
    elif element_kind(zero_point.dtype) == "f":
        shift = f"dace.float32({terms.name(build.view(zero_point, 'zero_points', (rows, blocks, 1, 1)))})"
    else:
        shift = f"dace.int32({terms.name(_zero_points(build, zero_point, bits, rows, blocks))})"
    source, unpacked = f"dace.float32({steps} - {shift}) * {scales}", (rows, blocks, block // per_byte, per_byte)
    weights = build.computed("weights", source, terms.operands, unpacked, step="dequantize")
    return build.view(weights, "matrix", (rows, blocks * block))


def _shifts(build: CanonicalFragment, bits: int) -> Tensor:
    """Return by how many bits each of the integers of a byte is shifted; the first stands in the lowest ones."""
    return build.parameter("shifts", np.arange(0, _BYTE, bits, dtype=np.int32))


def _zero_points(build: CanonicalFragment, packed: Tensor, bits: int, rows: int, blocks: int) -> Tensor:
    """Return the zero points ``[n, blocks, 1, 1]``, which are packed row by row."""
    per_byte = _BYTE // bits
    stored = -(-blocks // per_byte)
    bytes_of = build.view(packed, "zero_bytes", (rows, stored, 1))
    source, shape = f"(dace.int32(a) >> b) & {2**bits - 1}", (rows, stored, per_byte)
    operands = [bytes_of, _shifts(build, bits)]
    unpacked = build.computed("zeros_stored", source, operands, shape, "uint8", step="zero_points")
    if stored * per_byte > blocks:
        every, crop = build.view(unpacked, "zeros_in_rows", (rows, stored * per_byte)), blocks - stored * per_byte
        unpacked = build.made("zeros", Pad((0, 0, 0, crop)), [every], (rows, blocks), "uint8")
    return build.view(unpacked, "zero_points", (rows, blocks, 1, 1))
