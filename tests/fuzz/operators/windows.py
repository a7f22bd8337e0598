"""Nodes of convolutions, pooling and other operators with windows."""

import math
from collections.abc import Mapping

import numpy as np

from tests.fuzz.draw import Array, Draw
from tests.fuzz.drawn_node import AttributeValue, DrawnNode, Generator, OperatorVersion


def convolution(op: OperatorVersion, draw: Draw) -> DrawnNode:
    rank, dtype, group = draw.integer(1, 3), draw.dtype(op.dtypes()), draw.choice([1, 1, 1, 2, 3])
    kernel, spatial = draw.sizes(rank, 1, 3), draw.sizes(rank, 3, 6 if rank < 3 else 4)
    channels, filters = draw.integer(1, 2), draw.integer(1, 2)
    transposed = op.op_type == "ConvTranspose"
    data = draw.array(dtype, (draw.integer(1, 2), channels * group, *spatial))
    weights = (channels * group, filters) if transposed else (filters * group, channels)
    attributes = window_attributes(op, draw, kernel)
    if draw.chance(0.4):
        del attributes["kernel_shape"]  # that of the weights
    if group > 1:
        attributes["group"] = group
    if transposed:
        _transposed(draw, attributes, spatial)
    operands = [data, draw.array(dtype, (*weights, *kernel))]
    if draw.chance(0.6):
        operands.append(draw.array(dtype, (filters * group,)))
    return DrawnNode(operands, attributes, structure=(1, 2) if draw.chance(0.5) else ())


def window_attributes(op: OperatorVersion, draw: Draw, kernel: list[int]) -> dict[str, AttributeValue]:
    attributes: dict[str, AttributeValue] = {"kernel_shape": kernel}
    rank = len(kernel)
    if draw.chance(0.6):
        attributes["strides"] = draw.sizes(rank, 1, 3)
    if op.has("dilations") and draw.chance(0.3):
        attributes["dilations"] = draw.sizes(rank, 1, 2)
    if draw.chance(0.25):
        attributes["auto_pad"] = draw.choice(["SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"])
    elif draw.chance(0.6):
        # onnxruntime takes no pad as large as the window
        attributes["pads"] = [draw.integer(0, min(size - 1, 2)) for size in (*kernel, *kernel)]
    return attributes


def _transposed(draw: Draw, attributes: dict[str, AttributeValue], spatial: list[int]) -> None:
    strides = attributes.get("strides")
    if isinstance(strides, list) and draw.chance(0.3):
        attributes["output_padding"] = [draw.integer(0, stride - 1) for stride in strides]
    elif draw.chance(0.15):
        attributes["output_shape"] = [size + draw.integer(0, 3) for size in spatial]
        attributes.pop("pads", None)


def pooling(op: OperatorVersion, draw: Draw) -> DrawnNode:
    rank = draw.integer(1, 3)
    kernel, spatial = draw.sizes(rank, 1, 3), draw.sizes(rank, 3, 6 if rank < 3 else 4)
    attributes = window_attributes(op, draw, kernel)
    for name in ("ceil_mode", "count_include_pad", "storage_order"):
        if op.has(name) and draw.chance(0.6):
            attributes[name] = draw.integer(0, 1)
    if op.has("p") and draw.chance(0.6):
        attributes["p"] = draw.integer(1, 3)
    data = draw.array(draw.dtype(op.dtypes()), (draw.integer(1, 2), draw.integer(1, 3), *spatial))
    indices = op.op_type == "MaxPool" and op.since >= 8 and draw.chance(0.6)
    return DrawnNode([data], attributes, results=(1, 1) if indices else (1,))


def global_pooling(op: OperatorVersion, draw: Draw) -> DrawnNode:
    data: Array = draw.array(draw.dtype(op.dtypes()), draw.shape(3, 5))
    return DrawnNode([data], {"p": draw.integer(1, 3)} if op.has("p") and draw.chance(0.6) else {})


def local_response(op: OperatorVersion, draw: Draw) -> DrawnNode:
    attributes: dict[str, AttributeValue] = {"size": draw.integer(1, 5)}
    if draw.chance(0.6):
        attributes |= {"alpha": draw.integer(1, 8) / 8, "beta": draw.integer(1, 8) / 8, "bias": 1.5}
    return DrawnNode([draw.array(draw.dtype(op.dtypes()), draw.shape(3, 4))], attributes)


def unpooling(op: OperatorVersion, draw: Draw) -> DrawnNode:
    rank, planes = draw.integer(1, 3), draw.sizes(2, 1, 2)
    kernel, counts = draw.sizes(rank, 1, 3), draw.sizes(rank, 1, 3)
    data = draw.array(draw.dtype(op.dtypes()), (*planes, *counts))
    sizes = [(count - 1) * size + size for count, size in zip(counts, kernel, strict=True)]
    places = np.asarray(sorted(draw.some(range(math.prod(planes) * math.prod(sizes)), data.size)[: data.size]))
    attributes: dict[str, AttributeValue] = {"kernel_shape": kernel, "strides": kernel}
    return DrawnNode([data, places.reshape(data.shape)], attributes)


GENERATORS: Mapping[str, Generator] = {
    **dict.fromkeys(("Conv", "ConvTranspose"), convolution),
    **dict.fromkeys(("AveragePool", "LpPool", "MaxPool"), pooling),
    **dict.fromkeys(("GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool"), global_pooling),
    "LRN": local_response,
    "MaxUnpool": unpooling,
}
