"""Nodes of operators that take elements by index."""

from collections.abc import Mapping

import numpy as np

from tests.fuzz.draw import Draw
from tests.fuzz.drawn_node import AttributeValue, DrawnNode, Generator, OperatorVersion


def gather(op: OperatorVersion, draw: Draw) -> DrawnNode:
    data = draw.array(draw.dtype(op.dtypes()), draw.shape(1))
    attributes, axis = _axis(op, draw, data.ndim, default=0)
    indices = _indices(op, draw, draw.shape(0, 2), data.shape[axis])
    return DrawnNode([data, indices], attributes, structure=(1,) if draw.chance(0.5) else ())


def gather_elements(op: OperatorVersion, draw: Draw) -> DrawnNode:
    data = draw.array(draw.dtype(op.dtypes()), draw.shape(1))
    attributes, axis = _axis(op, draw, data.ndim, default=0)
    shape = [draw.integer(min(1, size), size) for size in data.shape]
    shape[axis] = draw.integer(1, 4)
    indices = _indices(op, draw, shape, data.shape[axis])
    return DrawnNode([data, indices], attributes, structure=(1,) if draw.chance(0.5) else ())


def one_hot(op: OperatorVersion, draw: Draw) -> DrawnNode:
    depth, shape = draw.integer(1, 5), draw.shape(1, 3)
    attributes, _ = _axis(op, draw, len(shape) + 1, default=-1)
    indices = draw.whole(shape, -depth - 1, depth, draw.choice(["int64", "int64", "int32", "float32"]))
    wide = np.asarray(depth if draw.chance(0.5) else [depth], draw.choice(["int64", "int64", "int32", "float32"]))
    values = draw.array(draw.dtype(op.dtypes(2)), (2,))
    return DrawnNode([indices, wide, values], attributes, structure=(1, 2) if draw.chance(0.5) else (1,))


def _axis(op: OperatorVersion, draw: Draw, rank: int, default: int) -> tuple[dict[str, AttributeValue], int]:
    if draw.chance(0.3):
        return {}, default
    axis = draw.axis(rank) if op.since >= 11 else draw.integer(0, rank - 1)
    return {"axis": axis}, axis


def _indices(op: OperatorVersion, draw: Draw, shape: tuple[int, ...] | list[int], extent: int) -> np.ndarray:
    least = -extent if op.since >= 11 and draw.chance(0.5) else 0
    return draw.whole(shape, least, max(extent, 1) - 1, draw.choice(["int64", "int32"]))


GENERATORS: Mapping[str, Generator] = {"Gather": gather, "GatherElements": gather_elements, "OneHot": one_hot}
