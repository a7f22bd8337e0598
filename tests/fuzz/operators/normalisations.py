"""Nodes of normalisations with parameters."""

from collections.abc import Mapping

import numpy as np

from tests.fuzz.draw import Array, Draw
from tests.fuzz.drawn_node import AttributeValue, DrawnNode, Generator, OperatorVersion


def batch_normalisation(op: OperatorVersion, draw: Draw) -> DrawnNode:
    data = draw.array(draw.dtype(op.dtypes()), draw.shape(2))
    scale, bias, mean = (draw.array(data.dtype.name, data.shape[1:2]) for _ in range(3))
    variance = (np.abs(draw.array(data.dtype.name, data.shape[1:2]).astype(np.float64)) + 0.5).astype(data.dtype)
    return DrawnNode([data, scale, bias, mean, variance], _epsilon(draw), structure=(1, 2, 3, 4))


def instance_normalisation(op: OperatorVersion, draw: Draw) -> DrawnNode:
    data = draw.array(draw.dtype(op.dtypes()), draw.shape(3))
    parameters = [draw.array(data.dtype.name, data.shape[1:2]) for _ in range(2)]
    return DrawnNode([data, *parameters], _epsilon(draw), structure=_maybe(draw))


def group_normalisation(op: OperatorVersion, draw: Draw) -> DrawnNode:
    groups, size = draw.integer(1, 3), draw.integer(1, 3)
    data = draw.array(draw.dtype(op.dtypes()), (draw.integer(1, 2), groups * size, *draw.shape(1, 2)))
    count = groups if op.since < 21 else groups * size
    parameters = [draw.array(data.dtype.name, (count,)) for _ in range(2)]
    return DrawnNode([data, *parameters], {**_epsilon(draw), "num_groups": groups}, structure=_maybe(draw))


def layer_normalisation(op: OperatorVersion, draw: Draw) -> DrawnNode:
    data = draw.array(draw.dtype(op.dtypes()), draw.shape(1))
    attributes = _epsilon(draw)
    axis = -1
    if draw.chance(0.7):
        axis = draw.axis(data.ndim)
        attributes["axis"] = axis
    shape = data.shape[axis % data.ndim :]
    dtype = data.dtype.name if op.op_type == "LayerNormalization" else draw.dtype(op.dtypes(1))
    operands: list[Array] = [data, draw.array(dtype, shape)]
    if op.operands > 2 and draw.chance(0.6):
        operands.append(draw.array(dtype, shape))
    results = (1, *draw.sizes(2, 0, 1)) if op.op_type == "LayerNormalization" and draw.chance(0.1) else (1,)
    return DrawnNode(operands, attributes, structure=_maybe(draw), results=results)


def _epsilon(draw: Draw) -> dict[str, AttributeValue]:
    return {"epsilon": draw.choice([1e-3, 0.1, 1.0])} if draw.chance(0.6) else {}


def _maybe(draw: Draw) -> tuple[int, ...]:
    return (1, 2) if draw.chance(0.6) else ()


GENERATORS: Mapping[str, Generator] = {
    "BatchNormalization": batch_normalisation,
    "GroupNormalization": group_normalisation,
    "InstanceNormalization": instance_normalisation,
    "LayerNormalization": layer_normalisation,
    "RMSNormalization": layer_normalisation,
}
