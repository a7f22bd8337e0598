"""Nodes of operators that read between the elements of images."""

import math
from collections.abc import Mapping

import numpy as np

from tests.fuzz.draw import MOST_ELEMENTS, Array, Draw
from tests.fuzz.drawn_node import AttributeValue, DrawnNode, Generator, OperatorVersion

_COORDINATES = [
    "half_pixel", "half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "tf_crop_and_resize",
    "half_pixel_symmetric",
]  # fmt: skip
_SCALES = [1.0, 1.0, 2.0, 3.0, 0.5, 1.5, 0.6, 2.25]


def resize(op: OperatorVersion, draw: Draw) -> DrawnNode:
    mode = draw.choice(["nearest", "nearest", "linear", "linear", "cubic"])
    draw.edges = draw.edges and mode == "nearest"  # whether infinity counts with a weight of 0 is not defined
    if op.since < 11 and mode == "cubic":
        mode = "linear"
    rank = 4 if mode == "cubic" else draw.choice([4, 4, 3]) if mode == "linear" else draw.integer(2, 4)
    # Integers are cut: what is just below one is up to an implementation.
    dtypes = [name for name in op.dtypes() if mode == "nearest" or name.startswith("float")]
    data = draw.array(draw.dtype(dtypes), draw.shape(rank, rank))
    first = 0 if mode == "nearest" else max(0, rank - 2)  # onnxruntime interpolates along the last two axes only
    scales = [draw.choice(_SCALES) if axis >= first else 1.0 for axis in range(rank)]
    scales = [scale if math.floor(scale * size) else 1.0 for scale, size in zip(scales, data.shape, strict=True)]
    if math.prod(scales) * data.size > 4 * MOST_ELEMENTS:
        scales = [1.0] * rank
    attributes: dict[str, AttributeValue] = {"mode": mode}
    if op.since < 11:
        return DrawnNode([data, np.asarray(scales, np.float32)], attributes, structure=(1,))
    return _modern(op, draw, data, scales, attributes)


def _modern(
    op: OperatorVersion, draw: Draw, data: Array, scales: list[float], attributes: dict[str, AttributeValue]
) -> DrawnNode:
    coordinates = draw.choice([*_COORDINATES, "tf_half_pixel_for_nn"] if op.since < 13 else _COORDINATES)
    is_dyadic = all(scale in (0.5, 1, 2) for scale in scales)  # else half a place is up to an implementation
    if coordinates == "half_pixel_symmetric" and (op.since < 19 or not is_dyadic):
        coordinates = "half_pixel"
    attributes["coordinate_transformation_mode"] = coordinates
    mode, rank = attributes["mode"], data.ndim
    if draw.chance(0.7):
        attributes["nearest_mode"] = draw.choice(["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
    if mode == "cubic":
        attributes |= {"exclude_outside": draw.integer(0, 1), "cubic_coeff_a": draw.choice([-0.75, -0.5])}
    if op.has("antialias") and mode != "nearest" and draw.chance(0.4):
        attributes["antialias"] = 1
    axes = list(range(rank))
    if op.has("axes") and draw.chance(0.3):
        axes = sorted(axis for axis in axes if scales[axis] != 1) or [rank - 1]
        attributes["axes"] = axes
    roi = None if op.since >= 13 else np.zeros(0, np.float32)
    if coordinates == "tf_crop_and_resize":
        attributes["extrapolation_value"] = 2.5
        begins = [draw.integer(-1, 4) / 8 if scales[axis] != 1 else 0.0 for axis in axes]
        ends = [draw.integer(5, 9) / 8 if scales[axis] != 1 else 1.0 for axis in axes]
        roi = np.asarray(begins + ends, np.float32)
    if draw.chance(0.4):
        sizes = [max(1, math.floor(data.shape[axis] * scales[axis])) for axis in axes]
        nothing = None if op.since >= 13 else np.zeros(0, np.float32)
        if op.has("keep_aspect_ratio_policy") and draw.chance(0.3):
            attributes["keep_aspect_ratio_policy"] = draw.choice(["not_larger", "not_smaller", "stretch"])
        return DrawnNode([data, roi, nothing, np.asarray(sizes, np.int64)], attributes, structure=(1, 2, 3))
    chosen = np.asarray([scales[axis] for axis in axes], np.float32)
    return DrawnNode([data, roi, chosen], attributes, structure=(1, 2))


def grid_sample(op: OperatorVersion, draw: Draw) -> DrawnNode:
    rank = 2 if op.since < 20 else draw.choice([2, 2, 2, 3])
    words = ("nearest", "bilinear", "bicubic") if op.since < 20 else ("nearest", "linear", "cubic")
    mode = draw.choice(words[:2] if rank > 2 else words)
    draw.edges = draw.edges and mode == "nearest"
    batch = draw.integer(1, 2)
    data = draw.array(draw.dtype(op.dtypes()), (batch, draw.integer(1, 2), *draw.sizes(rank, 1, 5)))
    grid = draw.eighths(
        draw.choice(["float32", "float32", "float32", *op.dtypes(1)]), (batch, *draw.sizes(rank, 1, 4), rank), -11, 11
    )
    attributes: dict[str, AttributeValue] = {
        "mode": mode,
        "padding_mode": draw.choice(["zeros", "border", "reflection"]),
        "align_corners": draw.integer(0, 1),
    }
    return DrawnNode([data, grid], attributes)


def affine_grid(op: OperatorVersion, draw: Draw) -> DrawnNode:
    rank, batch = draw.integer(2, 3), draw.integer(1, 2)
    theta = draw.array(draw.dtype(op.dtypes()), (batch, rank, rank + 1))
    size = np.asarray([batch, draw.integer(1, 3), *draw.sizes(rank, 1, 4)], np.int64)
    return DrawnNode([theta, size], {"align_corners": draw.integer(0, 1)}, structure=(1,))


def deformable(op: OperatorVersion, draw: Draw) -> DrawnNode:
    batch, group, offset_group = draw.integer(1, 2), draw.integer(1, 2), draw.integer(1, 2)
    draw.edges = False
    channels, filters = 2 * draw.integer(1, 2), draw.integer(1, 2)
    kernel, spatial, dtype = draw.sizes(2, 1, 3), draw.sizes(2, 3, 5), draw.dtype(op.dtypes())
    strides, pads = draw.sizes(2, 1, 2), draw.sizes(4, 0, 1)
    counts = [(spatial[at] + pads[at] + pads[2 + at] - kernel[at]) // strides[at] + 1 for at in (0, 1)]
    places = offset_group * math.prod(kernel)
    operands: list[Array | None] = [
        draw.array(dtype, (batch, channels, *spatial)),
        draw.array(dtype, (filters * group, channels // group, *kernel)),
        draw.eighths(dtype, (batch, 2 * places, *counts), -20, 20),
        draw.array(dtype, (filters * group,)) if draw.chance(0.5) else None,
    ]
    if draw.chance(0.5):
        operands.append(draw.eighths(dtype, (batch, places, *counts), 0, 8))
    attributes: dict[str, AttributeValue] = {"group": group, "offset_group": offset_group, "strides": strides}
    return DrawnNode(operands, {**attributes, "pads": pads})


def regions(op: OperatorVersion, draw: Draw) -> DrawnNode:
    draw.edges = False  # what the largest of numbers and NaN is depends on their order
    batch, count, dtype = draw.integer(1, 2), draw.integer(1, 3), draw.dtype(op.dtypes())
    data = draw.array(dtype, (batch, draw.integer(1, 3), *draw.sizes(2, 2, 6)))
    borders = [draw.eighths(dtype, (count, 2), *ends) for ends in ((-8, 24), (24, 72))]
    bins = draw.sizes(2, 1, 3)
    scale = draw.choice([1.0, 0.5])
    images = draw.whole((count, 1), 0, batch - 1)
    if op.op_type == "MaxRoiPool":
        rois = np.concatenate([images.astype(dtype), *(np.abs(each) for each in borders)], axis=1)
        return DrawnNode([data, rois], {"pooled_shape": bins, "spatial_scale": scale})
    attributes: dict[str, AttributeValue] = {
        "mode": draw.choice(["avg", "avg", "max"]),
        "output_height": bins[0],
        "output_width": bins[1],
        "sampling_ratio": draw.integer(0, 3),
        "spatial_scale": scale,
    }
    if op.has("coordinate_transformation_mode"):
        attributes["coordinate_transformation_mode"] = draw.choice(["half_pixel", "output_half_pixel"])
    return DrawnNode([data, np.concatenate(borders, axis=1), images.reshape(-1)], attributes)


GENERATORS: Mapping[str, Generator] = {
    "AffineGrid": affine_grid,
    "DeformConv": deformable,
    "GridSample": grid_sample,
    "MaxRoiPool": regions,
    "Resize": resize,
    "RoiAlign": regions,
}
