"""Nodes that quantise, and nodes on what is quantised."""

from collections.abc import Mapping

import numpy as np

from tests.fuzz.draw import Array, Draw
from tests.fuzz.drawn_node import AttributeValue, DrawnNode, Generator, OperatorVersion
from tests.fuzz.operators.windows import window_attributes

SCALES = (0.25, 0.5, 1.0, 2.0)  # by which halves come out exactly
_PAIRS = (("uint8", "uint8"), ("uint8", "int8"), ("int8", "int8"))  # that onnxruntime multiplies


def quantise(op: OperatorVersion, draw: Draw) -> DrawnNode:
    x = draw.array(draw.choice([name for name in op.dtypes() if name != "int32"]), draw.shape(1, 3))
    attributes, shape = _along(op, draw, x.shape)
    scale = _scales(draw, x.dtype.name, shape)
    zero = _steps(draw, draw.choice(_whole(op)), shape) if draw.chance(0.7) else None
    return _trimmed(draw, [x, scale, zero], attributes)


def dequantise(op: OperatorVersion, draw: Draw) -> DrawnNode:
    dtype = draw.choice(_whole(op, 0))
    x = _steps(draw, dtype, draw.shape(1, 3))
    attributes, shape = _along(op, draw, x.shape)
    zero = _steps(draw, dtype, shape) if dtype != "int32" and draw.chance(0.7) else None
    return _trimmed(draw, [x, _scales(draw, "float32", shape), zero], attributes)


def quantise_dynamically(op: OperatorVersion, draw: Draw) -> DrawnNode:
    return DrawnNode([draw.eighths("float32", draw.shape(), -40, 60)], {}, results=(1, 1, 1))


def product(op: OperatorVersion, draw: Draw) -> DrawnNode:
    left, right = draw.choice(_PAIRS)
    lead, inner = draw.shape(0, 1), draw.extent()
    a, b = _steps(draw, left, (*lead, draw.extent(), inner)), _steps(draw, right, (inner, draw.extent()))
    zeros = [_steps(draw, left, ()), _steps(draw, right, ())]
    if op.op_type == "MatMulInteger":
        return _trimmed(draw, [a, b, *(zero if draw.chance(0.6) else None for zero in zeros)], {})
    scales = [_scales(draw, "float32", ()) for _ in range(3)]
    operands = [a, scales[0], zeros[0], b, scales[1], zeros[1], scales[2], _steps(draw, left, ())]
    return DrawnNode(operands, {}, structure=tuple(range(1, 8)) if draw.chance(0.7) else ())


def convolution(op: OperatorVersion, draw: Draw) -> DrawnNode:
    left, right = draw.choice(_PAIRS)
    if op.op_type == "ConvInteger":
        left = "uint8"  # onnxruntime has no other
    group, kernel = draw.choice([1, 1, 2]), draw.sizes(2, 1, 3)
    channels, filters = draw.integer(1, 2), draw.integer(1, 2)
    x = _steps(draw, left, (draw.integer(1, 2), channels * group, *draw.sizes(2, 3, 6)))
    w = _steps(draw, right, (filters * group, channels, *kernel))
    attributes: dict[str, AttributeValue] = {**window_attributes(op, draw, kernel), "group": group}
    x_zero = _steps(draw, left, ())
    w_zero: Array = np.zeros((), right) if right == "int8" else _steps(draw, right, ())
    if op.op_type == "ConvInteger":
        return _trimmed(draw, [x, w, *(zero if draw.chance(0.6) else None for zero in (x_zero, w_zero))], attributes)
    scales = [_scales(draw, "float32", ()) for _ in range(3)]
    operands = [x, scales[0], x_zero, w, scales[1], w_zero, scales[2], _steps(draw, left, ())]
    bias = draw.whole((filters * group,), -99, 99, "int32") if draw.chance(0.5) else None
    return DrawnNode([*operands, bias][: 9 if bias is not None else 8], attributes, structure=tuple(range(1, 9)))


def _whole(op: OperatorVersion, position: int = 2) -> list[str]:
    return [name for name in op.dtypes(position) if np.dtype(name).kind in "iu"]


def _steps(draw: Draw, dtype: str, shape: tuple[int, ...]) -> Array:
    limits = np.iinfo(dtype)
    return draw.whole(shape, max(int(limits.min), -300), min(int(limits.max), 300), dtype)


def _scales(draw: Draw, dtype: str, shape: tuple[int, ...]) -> Array:
    chosen = [draw.choice(SCALES) for _ in range(int(np.prod(shape, dtype=np.int64)))]
    return np.asarray(chosen, dtype).reshape(shape)


def _along(
    op: OperatorVersion, draw: Draw, shape: tuple[int, ...]
) -> tuple[dict[str, AttributeValue], tuple[int, ...]]:
    """Return attributes, and the shape of scales: of the tensor, of an axis or of blocks of one."""
    if not op.has("axis") or draw.chance(0.4):
        return {}, ()
    axis = draw.axis(len(shape))
    if not op.has("block_size") or draw.chance(0.6):
        return {"axis": axis}, (shape[axis],)
    block, extents = draw.integer(1, 4), list(shape)
    extents[axis] = -(-shape[axis] // block)
    return {"axis": axis, "block_size": block}, tuple(extents)


def _trimmed(draw: Draw, operands: list[Array | None], attributes: Mapping[str, AttributeValue]) -> DrawnNode:
    """Return a node without what is omitted at the end."""
    while operands[-1] is None:
        operands.pop()
    return DrawnNode(operands, attributes, structure=tuple(range(1, len(operands))) if draw.chance(0.7) else ())


GENERATORS: Mapping[str, Generator] = {
    "ConvInteger": convolution,
    "DequantizeLinear": dequantise,
    "DynamicQuantizeLinear": quantise_dynamically,
    "MatMulInteger": product,
    "QLinearConv": convolution,
    "QLinearMatMul": product,
    "QuantizeLinear": quantise,
}
