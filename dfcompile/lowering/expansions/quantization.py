"""ONNX's quantisation: real numbers to steps, and back; of a tensor, an axis or blocks of an axis."""

import numpy as np
from msgspec import Struct

from dfcompile.frontend import PACKED_BITS, element_kind
from dfcompile.lowering import CanonicalFragment, Operator, Reduction, Tensor, onnx_expansion
from dfcompile.lowering.operators import Pad
from dfcompile.lowering.steps import is_zero, quantised, quotient, real_number

_PRECISIONS = {0: "", 1: "", 10: "dace.float16", 16: "dace.bfloat16"}  # of a division, by ONNX's number of the type
_DOMAINS = ("", "com.microsoft.")
_UNPACKED = {"i": "int8", "u": "uint8", "f": "float8_e4m3fn"}  # of a byte, and holds what is narrower, by its kind
_DYNAMIC_STEPS = 255  # between the least and the largest number


def quantize_linear(op: Operator, build: CanonicalFragment) -> None:
    """``Y = saturate(round(X / scale) + zero_point)``, half to even: one element-wise task."""
    y = op.output()
    precision = op.integer("precision", 0)
    if precision not in _PRECISIONS:
        raise op.unsupported(f"attribute 'precision' is {precision} against 1, 10 or 16 (float, float16, bfloat16)")
    value = quotient("a", "b")
    if _PRECISIONS[precision]:
        value = f"dace.float32({_PRECISIONS[precision]}({value}))"
    operands = [op.input(0), op.input(1), *_shifts(op)]
    saturate = op.integer("saturate", 1) != 0
    source = quantised(value, "c" if len(operands) > 2 else "", y.dtype, saturate=saturate)
    _add(op, build, source, operands)


def dequantize_linear(op: Operator, build: CanonicalFragment) -> None:
    """``Y = (X - zero_point) * scale``: one element-wise task; one that unpacks constants of less than a byte."""
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
    zero_point = op.optional_output(2) or build.array("zero_point", (1,), "uint8")
    add_dynamic_steps(build, x, y, scale, zero_point)


def add_dynamic_steps(build: CanonicalFragment, x: Tensor, y: Tensor, scale: Tensor, zero_point: Tensor) -> None:
    """Quantise x to the steps y of uint8 between its least and its largest number, or zero."""
    most, least = build.array("largest", (1,), x.dtype), build.array("least", (1,), x.dtype)
    axes = range(x.rank)
    build.reduce(Reduction.MAX, [x], most, axes, step="max")
    build.reduce(Reduction.MIN, [x], least, axes, step="min")
    extent = "max(a, 0.0) - min(b, 0.0)"
    # As onnxruntime: all zeros have a scale of one.
    build.elementwise(
        f"1.0 if {extent} == 0 else dace.float32({extent}) / {_DYNAMIC_STEPS}", [most, least], scale, step="scale"
    )
    build.elementwise(
        f"rint(min(max(dace.float32(-min(a, 0.0) / b), 0.0), {_DYNAMIC_STEPS}.0))",
        [least, scale],
        zero_point,
        step="zero_point",
    )
    source = quantised(quotient("a", "b"), "c", "uint8")
    build.elementwise(source, [x, scale, zero_point], y, step="quantize")


def unpacked(build: CanonicalFragment, x: Tensor) -> Tensor:
    """Return numbers as arrays hold them, one per byte; constants of less than a byte are read as they are stored.

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
        source = _real_of_code(source)
    bytes_read = build.array("unpacked", padded.shape, _UNPACKED[kind])
    build.elementwise(source, [packed, build.parameter("shifts", shifts)], bytes_read, step="unpack")
    if padded.size == flat.size:
        return build.view(bytes_read, "integers", x.shape)
    cropped = build.array("cropped", flat.shape, bytes_read.dtype)
    every = build.view(bytes_read, "every", (padded.size,))
    build.add(Pad((0, flat.size - padded.size)), [every], cropped, step="crop")
    return build.view(cropped, "integers", x.shape)


def _real_of_code(code: str) -> str:
    """Return the number of float4_e2m1fn that has a code: 0, 0.5, 1, 1.5, 2, 3, 4, 6, and from 8 on the negative."""
    size = f"(({code}) & 7)"
    above = f"({size} - 2.0 if {size} < 6 else 2.0 * {size} - 8.0)"
    real = f"(0.5 * {size} if {size} < 4 else {above})"
    return f"-{real} if ({code}) > 7 else {real}"


def _shifts(op: Operator) -> list[Tensor]:
    """Return the zero point, unless there is none or it is zero everywhere."""
    scale, zero_point = op.input(1), op.optional_input(2)
    if zero_point is None:
        return []
    if zero_point.shape != scale.shape and not zero_point.elements == scale.elements == 1:
        raise op.unsupported(f"a zero point {zero_point} against one of the shape of the scale {scale}")
    return [] if is_zero(zero_point) else [zero_point]


def _add(op: Operator, build: CanonicalFragment, source: str, operands: list[Tensor]) -> None:
    """Add the task: of data, a scale and perhaps a zero point, both of a tensor, an axis or blocks of an axis."""
    x, scale, y = operands[0], operands[1], op.output()
    for name, given in zip(("scale", "zero point"), operands[1:], strict=False):
        if given.rank > max(1, x.rank):
            raise op.unsupported(f"a {name} {given} against at most the dimensions of {x}")
    if scale.elements == 1:
        build.elementwise(source, operands, y)
        return
    axis, block = op.axis(default=1), op.integer("block_size", 0)
    if not block:
        if scale.shape != (x.shape[axis],):
            raise op.unsupported(f"a scale {scale} against one element for each along axis {axis}")
        every = tuple(range(x.rank))
        build.elementwise(source, operands, y, axes=[every, *((axis,) for _ in operands[1:])])
        return
    if block < 0:
        raise op.unsupported(f"attribute 'block_size' is {block} against a positive size")
    blocks = _Blocks(axis, block, scale.shape[axis] if scale.rank == x.rank else 0)
    if blocks.parameter_shape(x.shape) != scale.shape:
        raise op.unsupported(f"a scale {scale} against one element for each block of {block} along axis {axis}")
    data = _whole_blocks(build, x, blocks)
    parts = [build.view(each, f"blocks{at}", blocks.split(each.shape, 1)) for at, each in enumerate(operands[1:])]
    shape = blocks.split(data.shape, block)
    result = build.array("blocks", shape, y.dtype)
    is_whole = data is x
    build.elementwise(source, [build.view(data, "data", shape), *parts], result, step="" if is_whole else "blocks")
    if is_whole:
        build.view_as(result, y)
        return
    build.add(Pad(blocks.pads(x.shape, sign=-1)), [build.view(result, "whole", data.shape)], y, step="crop")


class _Blocks(Struct, frozen=True):
    """Blocks of an axis, the last of which may be cut off.

    Attributes:
        axis: counted from the front.
        size: elements of a block.
        count: how many there are.
    """

    axis: int
    size: int
    count: int

    def parameter_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of scales for data of a shape."""
        return self._along(shape, -(-shape[self.axis] // self.size))

    def split(self, shape: tuple[int, ...], size: int) -> tuple[int, ...]:
        """Return a shape with the axis as blocks of so many elements."""
        return self._along(shape, self.count, size)

    def pads(self, shape: tuple[int, ...], sign: int = 1) -> tuple[int, ...]:
        """Return how much to put behind data of a shape to make its last block whole; with sign -1 to take it away."""
        missing = self.count * self.size - shape[self.axis]
        behind = (sign * missing if axis == self.axis else 0 for axis in range(len(shape)))
        return (*(0 for _ in shape), *behind)

    def whole(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of data whose last block is whole."""
        return self._along(shape, self.count * self.size)

    def _along(self, shape: tuple[int, ...], *extents: int) -> tuple[int, ...]:
        return (*shape[: self.axis], *extents, *shape[self.axis + 1 :])


def _whole_blocks(build: CanonicalFragment, x: Tensor, blocks: _Blocks) -> Tensor:
    shape = blocks.whole(x.shape)
    if shape == x.shape:
        return x
    padded = build.array("padded", shape, x.dtype)
    build.add(Pad(blocks.pads(x.shape)), [x], padded, step="pad")
    return padded
