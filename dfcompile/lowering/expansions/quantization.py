"""Quantisation: real numbers to steps (integers times a scale) and back, with a scale per tensor, axis or block; Cast.

Also onnxruntime's QLinear operators, which read and write steps of 8 bits, except for products of matrices.
"""

from collections.abc import Mapping
from math import prod
from types import MappingProxyType

import numpy as np

from dfcompile.frontend import NARROW_REALS, PACKED_BITS, POWERS_OF_TWO, element_kind, largest_real
from dfcompile.lowering import CanonicalFragment, Operator, Reduction, Tensor, onnx_expansion
from dfcompile.lowering.expansions.pooling import window_of, window_sizes
from dfcompile.lowering.expressions import literal
from dfcompile.lowering.operators import Concat, Pad
from dfcompile.lowering.steps import ACCUMULATED, Terms, is_zero, quantised, quotient, real_number, shifted
from dfcompile.lowering.windows import windows_of

_PRECISIONS = {0: "", 1: "", 10: "dace.float16", 16: "dace.bfloat16"}  # of X / scale, by ONNX's number of the type
_DOMAINS = ("", "com.microsoft.")
_UNPACKED = {"i": "int8", "u": "uint8", "f": "float8_e4m3fn"}  # by kind: type of a byte that holds narrower numbers
_DYNAMIC_STEPS = 255  # from the least to the largest number


def quantize_linear(op: Operator, build: CanonicalFragment) -> None:
    """``Y = saturate(round(X / scale) + zero_point)``, half to even: one element-wise task."""
    y = op.output()
    rounded = _PRECISIONS[op.integer("precision", 0, _PRECISIONS, "1, 10 or 16 (float, float16, bfloat16)")]
    value = quotient("a", "b")
    if rounded:
        value = f"dace.float32({rounded}({value}))"
    operands = [op.input(0), op.input(1), *_shifts(op)]
    saturate = op.integer("saturate", 1) != 0
    source = quantised(value, "c" if len(operands) > 2 else "", y.dtype, saturate=saturate)
    _add(op, build, source, operands)


def dequantize_linear(op: Operator, build: CanonicalFragment) -> None:
    """``Y = (X - zero_point) * scale``: one element-wise task, after one that unpacks constants of less than a byte."""
    x = op.input(0)
    operands = [unpacked(build, x), op.input(1), *_shifts(op)]
    _add(op, build, real_number("a", "c" if len(operands) > 2 else "", "b", x.dtype), operands)


EXPANSIONS = (
    *(onnx_expansion(f"{domain}QuantizeLinear", "map", default=True)(quantize_linear) for domain in _DOMAINS),
    *(onnx_expansion(f"{domain}DequantizeLinear", "map", default=True)(dequantize_linear) for domain in _DOMAINS),
)


@onnx_expansion("DynamicQuantizeLinear", "map", default=True)
def dynamic_quantize_linear(op: Operator, build: CanonicalFragment) -> None:
    """As QuantizeLinear to uint8, with the scale and the zero point of the data: two downsamplers, then three tasks."""
    x = op.input(0)
    y = op.optional_output(0) or build.array("steps", x.shape, "uint8")
    scale = op.optional_output(1) or build.array("scale", (1,))
    add_dynamic_steps(build, x, y, scale, op.optional_output(2) or build.array("zero_point", (1,), "uint8"))


def add_dynamic_steps(build: CanonicalFragment, x: Tensor, y: Tensor, scale: Tensor, zero_point: Tensor) -> None:
    """Quantise x to steps y of type uint8, whose range is that of x, extended to zero; write scale and zero point."""
    largest, least = (build.array(name, (1,), x.dtype) for name in ("largest", "least"))
    axes = range(x.rank)
    build.reduce(Reduction.MAX, [x], largest, axes, step="max")
    build.reduce(Reduction.MIN, [x], least, axes, step="min")
    extent = "max(a, 0.0) - min(b, 0.0)"
    # As onnxruntime: all zeros have a scale of one.
    source = f"1.0 if {extent} == 0 else dace.float32({extent}) / {_DYNAMIC_STEPS}"
    build.elementwise(source, [largest, least], scale, step="scale")
    source = f"rint(min(max(dace.float32(-min(a, 0.0) / b), 0.0), {_DYNAMIC_STEPS}.0))"
    build.elementwise(source, [least, scale], zero_point, step="zero_point")
    source = quantised(quotient("a", "b"), "c", "uint8")
    build.elementwise(source, [x, scale, zero_point], y, step="quantize")


def unpacked(build: CanonicalFragment, x: Tensor) -> Tensor:
    """Return numbers one per byte: a constant of narrower ones is stored packed, and a task unpacks it.

    ``X[n, p] = packed[n] >> bits * p``, the first one in the lowest bits: one upsampler.
    """
    bits = PACKED_BITS.get(x.dtype)
    if bits is None or x.value is None:
        return x
    per_byte, kind = 8 // bits, element_kind(x.dtype)
    codes = np.ravel(x.value).view(np.uint8) if kind == "f" else np.ravel(x.value).astype(np.int16)
    flat = codes & (2**bits - 1)
    padded = np.pad(flat, (0, -flat.size % per_byte)).reshape(-1, per_byte)
    shifts = (bits * np.arange(per_byte)).astype(np.int32)
    packed = build.parameter("packed", (padded << shifts).sum(axis=1).astype(np.uint8)[:, None])
    source = f"(dace.int32(a) >> b) & {2**bits - 1}"
    if kind == "i":
        source = f"(({source}) ^ {2 ** (bits - 1)}) - {2 ** (bits - 1)}"
    elif kind == "f":
        # Codes 0 to 7 of float4_e2m1fn are the numbers 0, 0.5, 1, 1.5, 2, 3, 4, 6; 8 to 15 are their negatives.
        size = f"(({source}) & 7)"
        above = f"({size} - 2.0 if {size} < 6 else 2.0 * {size} - 8.0)"
        real = f"(0.5 * {size} if {size} < 4 else {above})"
        source = f"-{real} if ({source}) > 7 else {real}"
    operands = [packed, build.parameter("shifts", shifts)]
    numbers = build.computed("unpacked", source, operands, padded.shape, _UNPACKED[kind], step="unpack")
    if padded.size > flat.size:
        row, crop = build.view(numbers, "every", (padded.size,)), Pad((0, flat.size - padded.size))
        numbers = build.made("cropped", crop, [row], flat.shape, numbers.dtype, step="crop")
    return build.view(numbers, "integers", x.shape)


def _shifts(op: Operator) -> list[Tensor]:
    """Return the zero point as a list, empty if it is omitted or zero everywhere."""
    scale, zero_point = op.input(1), op.optional_input(2)
    if zero_point is None:
        return []
    if zero_point.shape != scale.shape and not zero_point.elements == scale.elements == 1:
        raise op.unsupported(f"a zero point {zero_point} against one of the shape of the scale {scale}")
    return [] if is_zero(zero_point) else [zero_point]


def _add(op: Operator, build: CanonicalFragment, source: str, operands: list[Tensor]) -> None:
    """Add the element-wise task of data, scale and perhaps zero point: per tensor, axis or block; pads a last block."""
    x, scale, y = operands[0], operands[1], op.output()
    for name, tensor in zip(("scale", "zero point"), operands[1:], strict=False):
        op.refuse_if(tensor.rank > max(1, x.rank), f"a {name} {tensor} against at most the dimensions of {x}")
    if scale.elements == 1:
        build.elementwise(source, operands, y)
        return
    axis, block = op.axis(default=1), op.integer("block_size", 0)
    if not block:
        op.refuse_if(scale.shape != (x.shape[axis],), f"a scale {scale} against one element for each along axis {axis}")
        build.elementwise(source, operands, y, axes=[range(x.rank), *((axis,) for _ in operands[1:])])
        return
    op.refuse_if(block < 0, f"attribute 'block_size' is {block} against a positive size")
    count = scale.shape[axis] if scale.rank == x.rank else 0
    if _along(x.shape, axis, -(-x.shape[axis] // block)) != scale.shape:
        raise op.unsupported(f"a scale {scale} against one element for each block of {block} along axis {axis}")
    missing, whole = count * block - x.shape[axis], _along(x.shape, axis, count * block)
    pads, data = [missing if number == axis else 0 for number in range(x.rank)], x
    if missing:
        data = build.made("padded", Pad((*[0] * x.rank, *pads)), [x], whole, x.dtype, step="pad")
    named = ((f"blocks{number}", tensor) for number, tensor in enumerate(operands[1:]))
    per_block = [build.view(tensor, name, _along(tensor.shape, axis, count, 1)) for name, tensor in named]
    shape, step = _along(whole, axis, count, block), "blocks" if missing else ""
    result = build.computed("blocks", source, [build.view(data, "data", shape), *per_block], shape, y.dtype, step=step)
    if missing:
        crop = Pad((*[0] * x.rank, *(-pad for pad in pads)))
        build.add(crop, [build.view(result, "whole", whole)], y, step="crop")
    else:
        build.view_as(result, y)


def _along(shape: tuple[int, ...], axis: int, *extents: int) -> tuple[int, ...]:
    """Return a shape in which extents replace an axis."""
    return (*shape[:axis], *extents, *shape[axis + 1 :])


_EIGHT_BIT_REALS = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")

# Single-precision numbers by their bits: as integers, those of positive numbers ascend with the numbers.
_MANTISSA = 0x7FFFFF
_LEAST, _LARGEST = 0x400000, 0x7F000000  # the least and the largest power of two: 2 ** -127, a subnormal, and 2 ** 127
_INFINITY, _MAGNITUDE = 0x7F800000, 0x7FFFFFFF
_NAN_CODE = 255
# By mode, whether the exponent field is rounded up; of subnormals it is 0, the code of 2 ** -127 (bits: _LEAST).
_ROUNDED_UP: Mapping[str, str] = MappingProxyType(
    {
        "up": f"(({{bits}}) & {_MANTISSA}) > ({_LEAST} if ({{bits}}) <= {_MANTISSA} else 0)",
        "nearest": f"(({{bits}}) & {_MANTISSA}) >= ({_LEAST + _LEAST // 2} if ({{bits}}) <= {_MANTISSA} else {_LEAST})",
        "down": "False",
    }
)


def cast(op: Operator, build: CanonicalFragment) -> None:
    """``Y = X`` in another data type: one element-wise task; a view if the type stays."""
    x, y = op.input(0), op.output()
    if x.dtype == y.dtype:
        build.view_as(x, y)
        return
    saturate = op.integer("saturate", 1) != 0
    if y.dtype == POWERS_OF_TWO:
        _to_powers_of_two(op, build, unpacked(build, x), saturate=saturate)
        return
    build.elementwise(_converted(x.dtype, y.dtype, saturate=saturate), [unpacked(build, x)], y)


def _converted(source: str, target: str, *, saturate: bool) -> str:
    """Return the expression that converts ``a`` to another type.

    Args:
        source: type of ``a``, by its numpy name.
        target: numpy name.
        saturate: whether numbers beyond the range of an 8-bit real type become its largest, not infinity or NaN.
    """
    if target == "bool":
        return "a != 0"
    if target in PACKED_BITS and element_kind(target) in "iu":
        lowest_bits = f"dace.int32(a) & {2 ** PACKED_BITS[target] - 1}"
        sign = 2 ** (PACKED_BITS[target] - 1)
        return lowest_bits if element_kind(target) == "u" else f"(({lowest_bits}) ^ {sign}) - {sign}"
    if target in _EIGHT_BIT_REALS and saturate:
        largest = largest_real(target)
        return f"min({largest}, max(-{largest}, dace.float32(a)))"  # in this order a NaN stays one
    if NARROW_REALS & {source, target}:
        return "dace.float32(a)"  # these convert from and to single precision only
    return f"dace.{target}(a)"


def _to_powers_of_two(op: Operator, build: CanonicalFragment, x: Tensor, *, saturate: bool) -> None:
    """``Y = 2 ** k``, where k is rounded up, down or to nearest (up if half-way); its code is the exponent field.

    Zero, negative numbers and those out of range saturate, or become NaN [onnx Cast]. One element-wise task on the
    bits, after one that converts operands of other types to single precision.
    """
    mode, y = op.choice("round_mode", "up", _ROUNDED_UP, ", ".join(map(repr, _ROUNDED_UP))), op.output()
    if x.dtype != "float32":
        x = build.computed("single", "dace.float32(a)", [x], x.shape, "float32")
    if saturate:
        in_range = f"min(max(a, {_LEAST}), {_LARGEST})"
        is_nan = f"(a & {_MAGNITUDE}) > {_INFINITY}"
    else:
        in_range, is_nan = "a", f"a < {_LEAST} or a > {_LARGEST}"
    is_rounded_up = _ROUNDED_UP[mode].format(bits=in_range)
    bits = build.view(x, "bits", x.shape, "int32")
    source = f"{_NAN_CODE} if {is_nan} else (({in_range}) >> 23) + (1 if {is_rounded_up} else 0)"
    build.view_as(build.computed("codes", source, [bits], y.shape, "uint8", step="exponent"), y)


CASTS = tuple(onnx_expansion(op_type, "map", default=True)(cast) for op_type in ("Cast", "CastLike"))


_COERCED_BEFORE = 13  # version of Softmax; before, it normalised over all axes from the given one on


def two_operands(op: Operator, build: CanonicalFragment) -> None:
    """``C = quantise(dequantise(A) + dequantise(B))``, or their product: one element-wise task."""
    terms, y = Terms(), op.output()
    left, right = (terms.real(op.input(first), op.input(first + 1), op.optional_input(first + 2)) for first in (0, 3))
    sign = "+" if op.op_type.endswith("Add") else "*"
    source = terms.steps(f"{left} {sign} {right}", op.input(6), op.optional_input(7), y.dtype)
    build.elementwise(source, terms.operands, y)


def one_operand(op: Operator, build: CanonicalFragment) -> None:
    """``Y = quantise(f(dequantise(X)))``: one element-wise task."""
    terms, y = Terms(), op.output()
    x = terms.real(op.input(0), op.input(1), op.optional_input(2))
    if op.op_type.endswith("Sigmoid"):
        value = f"1 / (1 + exp(-{x}))"
    else:
        value = f"{x} if {x} >= 0 else {literal(op.real('alpha', 0.01), 'float32')} * {x}"
    build.elementwise(terms.steps(value, op.input(3), op.optional_input(4), y.dtype), terms.operands, y)


_REWRITES = {"Add": two_operands, "Mul": two_operands, "LeakyRelu": one_operand, "Sigmoid": one_operand}
QLINEAR_EXPANSIONS = tuple(
    onnx_expansion(f"com.microsoft.QLinear{name}", "map", default=True)(rewrite) for name, rewrite in _REWRITES.items()
)


@onnx_expansion("com.microsoft.QLinearWhere", "map", default=True)
def qlinear_where(op: Operator, build: CanonicalFragment) -> None:
    """``Z = quantise(dequantise(X) if condition else dequantise(Y))``: one element-wise task."""
    terms, z = Terms(), op.output()
    condition = terms.name(op.input(0))
    x, y = (terms.real(op.input(first), op.input(first + 1), op.input(first + 2)) for first in (1, 4))
    source = terms.steps(f"{x} if {condition} else {y}", op.input(7), op.input(8), z.dtype)
    build.elementwise(source, terms.operands, z)


@onnx_expansion("com.microsoft.QLinearSoftmax", "stable", default=True)
def qlinear_softmax(op: Operator, build: CanonicalFragment) -> None:
    """``Y = quantise(e / sum(e))``, ``e = exp((X - max(X)) * scale)``: two downsamplers, two element-wise tasks."""
    x, y, axis = op.input(0), op.output(), op.axis(default=-1)
    axes = range(axis, x.rank) if op.integer("opset", _COERCED_BEFORE) < _COERCED_BEFORE else (axis,)
    largest = build.reduced("largest", Reduction.MAX, [x], axes, step="max")
    source, operands = "exp(dace.float32(dace.int32(a) - dace.int32(b)) * c)", [x, largest, op.input(1)]
    exponentials = build.computed("exponentials", source, operands, x.shape, "float32", step="exp")
    total = build.reduced("total", Reduction.SUM, [exponentials], axes, dtype="float32", step="sum")
    terms = Terms()
    value = f"{terms.name(exponentials)} / {terms.name(total)}"
    source = terms.steps(value, op.input(3), op.optional_input(4), y.dtype)
    build.elementwise(source, terms.operands, y, step="divide")


@onnx_expansion("com.microsoft.QLinearAveragePool", "window", default=True)
def qlinear_average_pool(op: Operator, build: CanonicalFragment) -> None:
    """The sum of every window less its zero points, divided and rounded: one downsampler, one element-wise task."""
    check_channels_first(op)
    y, windows = op.output(), windows_of(op, op.integers("kernel_shape"))
    x = shifted(build, op.input(0), op.optional_input(2), (0,), "x")
    total = build.made("total", window_of(windows), [windows.padded(build, x)], y.shape, ACCUMULATED, step="window")
    sizes, terms = window_sizes(op, build, windows), Terms()
    sums, count = terms.name(total), str(sizes.max())
    if sizes.min() < sizes.max():
        count = terms.name(build.parameter("sizes", sizes.astype("float32")))
    _add_average(op, build, terms, sums, count)


@onnx_expansion("com.microsoft.QLinearGlobalAveragePool", "map", default=True)
def qlinear_global_average_pool(op: Operator, build: CanonicalFragment) -> None:
    """The sum of every channel less its zero points, divided and rounded: one downsampler, one element-wise task."""
    check_channels_first(op)
    x = shifted(build, op.input(0), op.optional_input(2), (0,), "x")
    total = build.reduced("total", Reduction.SUM, [x], range(2, x.rank), dtype=ACCUMULATED, step="sum")
    terms = Terms()
    _add_average(op, build, terms, terms.name(total), str(prod(x.shape[2:])))


def _add_average(op: Operator, build: CanonicalFragment, terms: Terms, total: str, count: str) -> None:
    value = f"dace.float32({total}) * {terms.name(op.input(1))} / {count}"
    source = terms.steps(value, op.input(3), op.optional_input(4), op.output().dtype)
    build.elementwise(source, terms.operands, op.output(), step="divide")


@onnx_expansion("com.microsoft.QLinearConcat", "copy", default=True)
def qlinear_concat(op: Operator, build: CanonicalFragment) -> None:
    """Rescale each operand to the scale of the result, one element-wise task unless it has that scale; then Concat."""
    scale, zero_point, y = op.input(0), op.input(1), op.output()
    parts = []
    for first in range(2, len(op.inputs), 3):
        x, its_scale, its_zero_point = op.input(first), op.input(first + 1), op.input(first + 2)
        if x.dtype == y.dtype and _is_same(scale, its_scale) and _is_same(zero_point, its_zero_point):
            parts.append(x)
            continue
        terms, part = Terms(), build.array(f"part{len(parts)}", x.shape, y.dtype)
        value = terms.name(x) if x.dtype == "float32" else terms.real(x, its_scale, its_zero_point)
        source = terms.steps(value, scale, zero_point, y.dtype)
        build.elementwise(source, terms.operands, part, step=f"scale{len(parts)}")
        parts.append(part)
    if len(parts) == 1:
        build.view_as(parts[0], y)
    else:
        build.add(Concat(op.axis(rank=y.rank)), parts, y)


def _is_same(left: Tensor, right: Tensor) -> bool:
    if is_zero(left) and is_zero(right):
        return True
    return left.value is not None and right.value is not None and left.value.tobytes() == right.value.tobytes()


def check_channels_first(op: Operator) -> None:
    """Check that channels are the second dimension, after the batch.

    Raises:
        UnsupportedOpError: they are the last one.
    """
    op.check_unknown(attributes={"channels_last": 0})
