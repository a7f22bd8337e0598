"""Nodes of operators that write at indices, select or reorder."""

from collections.abc import Mapping, Sequence

import numpy as np

from tests.fuzz.draw import Array, Draw
from tests.fuzz.drawn_node import AttributeValue, DrawnNode, Generator, OperatorVersion


def scatter_nd(op: OperatorVersion, draw: Draw) -> DrawnNode:
    attributes, dtype = _reduction(op, draw)
    shape = draw.shape(1, 3)
    within = draw.integer(1, len(shape))
    places = _different(draw, shape[:within]) if "reduction" not in attributes else _any(draw, shape[:within])
    updates = _plain(draw, dtype, (len(places), *shape[within:]))
    if draw.chance(0.3):
        places, updates = places[:, None], updates[:, None]
    data = _plain(draw, dtype, shape)
    return DrawnNode([data, places, updates], attributes, structure=(1,) if draw.chance(0.5) else ())


def scatter_elements(op: OperatorVersion, draw: Draw) -> DrawnNode:
    attributes, dtype = _reduction(op, draw)
    shape = draw.shape(1, 3)
    axis = draw.axis(len(shape))
    extent = shape[axis]
    along = _different(draw, (extent,)) if "reduction" not in attributes else _any(draw, (extent,))
    taken = [draw.integer(min(1, size), size) for size in shape]
    taken[axis] = len(along)
    line = along.reshape([-1 if at == axis % len(shape) else 1 for at in range(len(shape))])
    indices = np.ascontiguousarray(np.broadcast_to(line, taken)).astype(draw.choice(["int64", "int32"]))
    if axis or draw.chance(0.5):
        attributes["axis"] = axis
    operands = [_plain(draw, dtype, shape), indices, _plain(draw, dtype, taken)]
    return DrawnNode(operands, attributes, structure=(1,) if draw.chance(0.5) else ())


def tensor_scatter(op: OperatorVersion, draw: Draw) -> DrawnNode:
    shape = draw.shape(2, 4)
    axis = draw.integer(1, len(shape) - 1) if draw.chance(0.7) else -2
    axis = axis if axis % len(shape) else 1
    extent = shape[axis]
    taken = list(shape)
    taken[axis] = draw.integer(min(1, extent), extent)
    mode = draw.choice(["linear", "circular"])
    starts = draw.whole((shape[0],), 0, max(extent - (taken[axis] if mode == "linear" else 1), 0))
    dtype = draw.dtype(op.dtypes())
    operands = [_plain(draw, dtype, shape), _plain(draw, dtype, taken), starts if draw.chance(0.8) else None]
    if operands[2] is None:
        operands.pop()
    return DrawnNode(operands, {"axis": axis, "mode": mode}, structure=(2,) if draw.chance(0.5) else ())


def gather_nd(op: OperatorVersion, draw: Draw) -> DrawnNode:
    shape = draw.shape(1, 4)
    batch = draw.integer(0, len(shape) - 1) if op.has("batch_dims") else 0
    extents = shape[batch : batch + draw.integer(1, len(shape) - batch)]
    places = _any(draw, extents, (*shape[:batch], *draw.sizes(draw.integer(0, 1) or (batch == 0), 1, 3)))
    data = draw.array(draw.dtype(op.dtypes()), shape)
    attributes = {"batch_dims": batch} if batch else {}
    return DrawnNode([data, places], attributes, structure=(1,) if draw.chance(0.5) else ())


def top_k(op: OperatorVersion, draw: Draw) -> DrawnNode:
    shape = draw.shape(1, 3)
    axis = draw.axis(len(shape)) if op.since >= 11 else draw.integer(0, len(shape) - 1)
    k = draw.integer(min(1, shape[axis]), shape[axis])
    attributes: dict[str, AttributeValue] = {"axis": axis}
    if op.has("largest"):
        attributes["largest"] = draw.integer(0, 1)
    data = _plain(draw, draw.dtype(op.dtypes()), shape)
    if op.operands == 1:
        return DrawnNode([data], {**attributes, "k": k}, results=(1, 1))
    return DrawnNode([data, np.array([k])], attributes, structure=(1,), results=(1, 1))


def reverse_sequence(op: OperatorVersion, draw: Draw) -> DrawnNode:
    shape = draw.shape(2, 4)
    time = draw.integer(0, 1)
    lengths = draw.whole((shape[1 - time],), min(1, shape[time]), shape[time])
    data = draw.array(draw.dtype(op.dtypes()), shape)
    attributes = {"time_axis": time, "batch_axis": 1 - time}
    return DrawnNode([data, lengths], attributes, structure=(1,) if draw.chance(0.5) else ())


def windows_of_image(op: OperatorVersion, draw: Draw) -> DrawnNode:
    rank = 2  # of others, onnxruntime's windows lie elsewhere; tests/unit/lowering/expansions/test_selections.py
    kernel, strides, dilations = draw.sizes(rank, 1, 3), draw.sizes(rank, 1, 2), draw.sizes(rank, 1, 2)
    pads, counts = draw.sizes(2 * rank, 0, 1), draw.sizes(rank, 1, 3)
    image = [
        max(stride * (count - 1) + dilation * (size - 1) + 1 - begin - end, 1)
        for stride, count, dilation, size, begin, end in zip(
            strides, counts, dilations, kernel, pads[:rank], pads[rank:], strict=True
        )
    ]
    counts = [
        (extent + begin + end - dilation * (size - 1) - 1) // stride + 1
        for extent, begin, end, dilation, size, stride in zip(
            image, pads[:rank], pads[rank:], dilations, kernel, strides, strict=True
        )
    ]
    shape = (draw.integer(1, 2), draw.integer(1, 3) * int(np.prod(kernel)), int(np.prod(counts)))
    data = draw.array(draw.dtype(op.dtypes()), shape)
    attributes: dict[str, AttributeValue] = {"strides": strides, "dilations": dilations, "pads": pads}
    return DrawnNode([data, np.array(image), np.array(kernel)], attributes, structure=(1, 2))


def compress(op: OperatorVersion, draw: Draw) -> DrawnNode:
    data = draw.array(draw.dtype(op.dtypes()), draw.shape(1))
    axis = draw.axis(data.ndim) if draw.chance(0.7) else None
    extent = data.size if axis is None else data.shape[axis]
    condition = draw.array("bool", (draw.integer(min(1, extent), extent),))
    if condition.size and not condition.any():
        condition[0] = True
    return DrawnNode([data, condition], {} if axis is None else {"axis": axis}, structure=(1,))


def _reduction(op: OperatorVersion, draw: Draw) -> tuple[dict[str, AttributeValue], str]:
    dtype = draw.dtype(op.dtypes())
    if not op.has("reduction") or draw.chance(0.4) or dtype == "bool":
        return {}, dtype
    return {"reduction": draw.choice(["add", "mul", *(["max", "min"] if op.since >= 18 else [])])}, dtype


def _different(draw: Draw, extents: Sequence[int]) -> Array:
    """Return different places, ``[n, dimensions]`` or ``[n]`` of one; some are counted from the end."""
    flat = draw.some(range(int(np.prod(extents))), least=1)
    places = np.stack(np.unravel_index(np.array(flat, np.int64), tuple(extents)), axis=-1)
    negative = draw.whole(places.shape, 0, 1) * np.array(extents)
    return np.asarray(places - negative)


def _any(draw: Draw, extents: Sequence[int], shape: Sequence[int] | None = None) -> Array:
    """Return places of any kind, some of them twice."""
    rows = (draw.integer(1, 4),) if shape is None else tuple(shape)
    columns = [draw.whole(rows, -extent, max(extent - 1, 0)) for extent in extents]
    return np.stack(columns, axis=-1).astype(np.int64)


def _plain(draw: Draw, dtype: str, shape: Sequence[int]) -> Array:
    """Return values without NaN, of which no order is defined."""
    if np.dtype(dtype).kind == "f":
        return draw.eighths(dtype, shape, -32, 32)
    return draw.whole(shape, 0, 1, dtype) if dtype == "bool" else draw.whole(shape, 0, 9, dtype)


GENERATORS: Mapping[str, Generator] = {
    "Col2Im": windows_of_image,
    "Compress": compress,
    "GatherND": gather_nd,
    "ReverseSequence": reverse_sequence,
    "ScatterElements": scatter_elements,
    "ScatterND": scatter_nd,
    "TensorScatter": tensor_scatter,
    "TopK": top_k,
}
