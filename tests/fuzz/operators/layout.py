"""Nodes of operators that copy, cut, join or rename elements."""

from collections.abc import Mapping

import numpy as np

from tests.fuzz.draw import Array, Draw
from tests.fuzz.drawn_node import AttributeValue, DrawnNode, Generator, OperatorVersion


def identity(op: OperatorVersion, draw: Draw) -> DrawnNode:
    return DrawnNode([_data(op, draw, 0)], {})


def dropout(op: OperatorVersion, draw: Draw) -> DrawnNode:
    data = _data(op, draw, 0)
    if op.since < 12:
        return DrawnNode([data], {"ratio": 0.25} if draw.chance(0.5) else {})
    operands: list[Array | None] = [data]
    if draw.chance(0.6):
        operands.append(np.asarray(0.25, draw.dtype(op.dtypes(1))))
        if draw.chance(0.5):
            operands.append(np.asarray(False))
    return DrawnNode(operands, {}, structure=(1, 2))


def reshape(op: OperatorVersion, draw: Draw) -> DrawnNode:
    data = _data(op, draw, 0)
    sizes = _factors(draw, data.size)
    for place, size in enumerate(data.shape[: len(sizes)]):
        if size == sizes[place] and size and draw.chance(0.4):
            sizes[place] = 0
    if sizes and data.size and draw.chance(0.4):
        sizes[draw.integer(0, len(sizes) - 1)] = -1
    zero = op.has("allowzero") and 0 not in sizes and draw.chance(0.2)
    return DrawnNode([data, np.asarray(sizes, np.int64)], {"allowzero": 1} if zero else {}, structure=(1,))


def _factors(draw: Draw, size: int) -> list[int]:
    sizes: list[int] = []
    while size > 1:
        factor = draw.choice([each for each in range(2, size + 1) if size % each == 0])
        sizes.insert(draw.integer(0, len(sizes)), factor)
        size //= factor
    return sizes if size else [0]


def flatten(op: OperatorVersion, draw: Draw) -> DrawnNode:
    data = _data(op, draw, 1)
    if draw.chance(0.3):
        return DrawnNode([data], {})
    return DrawnNode([data], {"axis": draw.integer(-data.ndim if op.since >= 11 else 0, data.ndim)})


def squeeze(op: OperatorVersion, draw: Draw) -> DrawnNode:
    data = _data(op, draw, 1)
    axes = draw.some([axis for axis, size in enumerate(data.shape) if size == 1], least=1)
    return _with_axes(op, draw, data, [_from_either_end(op, draw, axis, data.ndim) for axis in axes], optional=True)


def unsqueeze(op: OperatorVersion, draw: Draw) -> DrawnNode:
    data = _data(op, draw, 0)
    rank = data.ndim + draw.integer(1, 2)
    axes = draw.some(range(rank))[: rank - data.ndim]
    axes += [axis for axis in range(rank) if axis not in axes][: rank - data.ndim - len(axes)]
    return _with_axes(op, draw, data, [_from_either_end(op, draw, axis, rank) for axis in axes], optional=False)


def _from_either_end(op: OperatorVersion, draw: Draw, axis: int, rank: int) -> int:
    return axis - rank if op.since >= 11 and draw.chance(0.3) else axis


def _with_axes(op: OperatorVersion, draw: Draw, data: Array, axes: list[int], *, optional: bool) -> DrawnNode:
    if optional and (not axes or draw.chance(0.2)):
        return DrawnNode([data], {})
    if op.has("axes"):
        return DrawnNode([data], {"axes": axes})
    return DrawnNode([data, np.asarray(axes, np.int64)], {}, structure=(1,))


def transpose(op: OperatorVersion, draw: Draw) -> DrawnNode:
    data = _data(op, draw, 0)
    order = list(range(data.ndim))
    order = sorted(order, key=lambda _: draw.integer(0, 99))
    return DrawnNode([data], {} if draw.chance(0.3) or not order else {"perm": order})


def tile(op: OperatorVersion, draw: Draw) -> DrawnNode:
    data = _data(op, draw, 1, 3)
    return DrawnNode([data, draw.whole((data.ndim,), 1, 3)], {}, structure=(1,))


def expand(op: OperatorVersion, draw: Draw) -> DrawnNode:
    full = draw.shape()
    data, target = draw.operand_shapes(full, 2)
    return DrawnNode([draw.array(draw.dtype(op.dtypes()), data), np.asarray(target, np.int64)], {}, structure=(1,))


def slices(op: OperatorVersion, draw: Draw) -> DrawnNode:
    data = _data(op, draw, 1)
    axes = draw.axes(data.ndim, least=1) if op.since >= 10 else sorted(draw.some(range(data.ndim), least=1))
    backward = [op.since >= 10 and draw.chance(0.25) for _ in axes]
    begins, ends, steps = [], [], []
    for axis, back in zip(axes, backward, strict=True):
        size = data.shape[axis]
        first, last = sorted((draw.integer(0, max(size - 1, 0)), draw.integer(0, max(size - 1, 0))))
        step = draw.integer(1, 3)
        begins.append(last if back else first - size if draw.chance(0.3) else first)
        ends.append(first - size - 1 if back else draw.choice([last + 1, 2**31 - 1, size + 3]))
        steps.append(-step if back else step)
    if op.since < 10:
        attributes: dict[str, AttributeValue] = {"starts": begins, "ends": ends, "axes": axes}
        if axes == list(range(len(axes))) and draw.chance(0.5):
            del attributes["axes"]
        return DrawnNode([data], attributes)
    kind = draw.choice(["int64", "int32"])
    operands: list[Array | None] = [data, *(np.asarray(values, kind) for values in (begins, ends, axes, steps))]
    if all(step == 1 for step in steps) and draw.chance(0.6):
        operands.pop()
    elif axes == list(range(data.ndim)) and draw.chance(0.5):
        operands[3] = None
    return DrawnNode(operands, {}, structure=(1, 2, 3, 4))


def split(op: OperatorVersion, draw: Draw) -> DrawnNode:
    data = _data(op, draw, 1)
    axis = draw.axis(data.ndim) if op.since >= 11 else draw.integer(0, data.ndim - 1)
    attributes: dict[str, AttributeValue] = {"axis": axis} if draw.chance(0.7) else {}
    size = data.shape[axis if attributes else 0]
    cuts = sorted(draw.sizes(draw.integer(0, 2), 0 if draw.chance(0.1) else min(1, size), size))
    parts = [last - first for first, last in zip([0, *cuts], [*cuts, size], strict=True)]
    used = [0 if draw.chance(0.1) and len(parts) > 1 else 1 for _ in parts]
    results = used if any(used) else [1] * len(parts)
    if op.has("num_outputs") and draw.chance(0.4):
        return DrawnNode([data], {**attributes, "num_outputs": len(parts)}, results=results)
    if op.has("split"):
        return DrawnNode([data], {**attributes, "split": parts}, results=results)
    return DrawnNode([data, np.asarray(parts, np.int64)], attributes, structure=(1,), results=results)


def pad(op: OperatorVersion, draw: Draw) -> DrawnNode:
    data = _data(op, draw, 1, 3)
    attributes: dict[str, AttributeValue] = {}
    modes = ["constant", "constant", "reflect", "edge", *(["wrap"] if op.since >= 19 else [])]
    if draw.chance(0.6):
        attributes["mode"] = draw.choice(modes)
    axes = draw.axes(data.ndim, least=1) if op.operands > 3 and draw.chance(0.3) else None
    around = [data.shape[axis] for axis in (range(data.ndim) if axes is None else axes)] * 2
    reflects = attributes.get("mode") in {"reflect", "wrap"}
    pads = [draw.integer(0, min(2, max(size - 1, 0)) if reflects else 2) for size in around]
    if not reflects and draw.chance(0.15):
        place = draw.integer(0, len(pads) - 1)
        pads[place] = -min(1, max(around[place] - 1, 0))
    if op.has("pads"):
        if draw.chance(0.5):
            attributes["value"] = draw.real()
        return DrawnNode([data], {**attributes, "pads": pads})
    operands: list[Array | None] = [data, np.asarray(pads, np.int64)]
    if draw.chance(0.6) or axes is not None:
        operands.append(draw.array(data.dtype.name, ()) if draw.chance(0.8) else None)
    if axes is not None:
        operands.append(np.asarray(axes, draw.choice(["int64", "int32"])))
    return DrawnNode(operands, attributes, structure=(1, 2, 3))


def concat(op: OperatorVersion, draw: Draw) -> DrawnNode:
    dtype, shape = draw.dtype(op.dtypes()), draw.shape(1)
    axis = draw.axis(len(shape)) if op.since >= 11 else draw.integer(0, len(shape) - 1)
    parts = []
    for _ in range(draw.integer(1, 4)):
        sizes = list(shape)
        sizes[axis] = shape[axis] if draw.chance(0.5) else draw.extent()
        parts.append(draw.array(dtype, sizes))
    return DrawnNode(parts, {"axis": axis})


def blocks(op: OperatorVersion, draw: Draw) -> DrawnNode:
    size, channels = draw.integer(1, 3), draw.integer(1, 3)
    rows, columns = draw.sizes(2, 1, 3)
    deep = op.op_type == "DepthToSpace"
    shape = (1, channels * size**2, rows, columns) if deep else (draw.integer(1, 2), channels, rows * size, columns)
    if not deep:
        shape = (*shape[:3], columns * size)
    attributes: dict[str, AttributeValue] = {"blocksize": size}
    if op.has("mode") and draw.chance(0.6):
        attributes["mode"] = draw.choice(["DCR", "CRD"])
    return DrawnNode([draw.array(draw.dtype(op.dtypes()), shape)], attributes)


def triangle(op: OperatorVersion, draw: Draw) -> DrawnNode:
    operands = [_data(op, draw, 2)]
    if draw.chance(0.6):
        operands.append(np.asarray(draw.integer(-4, 4), np.int64))
    return DrawnNode(operands, {"upper": draw.integer(0, 1)} if draw.chance(0.7) else {}, structure=(1,))


def _data(op: OperatorVersion, draw: Draw, least: int, most: int = 4) -> Array:
    return draw.array(draw.dtype(op.dtypes()), draw.shape(least, most))


GENERATORS: Mapping[str, Generator] = {
    "Concat": concat,
    "DepthToSpace": blocks,
    "Dropout": dropout,
    "Expand": expand,
    "Flatten": flatten,
    "Identity": identity,
    "Pad": pad,
    "Reshape": reshape,
    "Slice": slices,
    "SpaceToDepth": blocks,
    "Split": split,
    "Squeeze": squeeze,
    "Tile": tile,
    "Transpose": transpose,
    "Trilu": triangle,
    "Unsqueeze": unsqueeze,
}
