"""ONNX RoiAlign and MaxRoiPool: regions of images, which the model chooses, pooled to one size."""

from math import prod

import numpy as np

from dfcompile.lowering import CanonicalFragment, Operator, Reduction, Tensor, onnx_expansion
from dfcompile.lowering.expressions import is_real, literal, sum_dtype
from dfcompile.lowering.node import POSITIVE
from dfcompile.lowering.operators import Copy, Lookup, Sample
from dfcompile.lowering.sampled_points import AxisTaps, add_flat_places, add_weights, taps_beside


@onnx_expansion("RoiAlign", "taps", default=True)
def roi_align(op: Operator, build: CanonicalFragment) -> None:
    """``Y[r, c, p] = mean or max over the points of a bin of X[batch[r], c, between four elements]``: one Sample."""
    x, rois, batch, y = op.input(0), op.input(1), op.input(2), op.output()
    mode, wanted = op.text("mode", "avg"), "at least 1 (else points depend on data)"
    coordinates = op.text("coordinate_transformation_mode", "half_pixel")
    if mode not in ("avg", "max") or coordinates not in ("half_pixel", "output_half_pixel"):
        raise op.unsupported(f"modes {mode!r} and {coordinates!r} against avg, max and half_pixel, output_half_pixel")
    ratio = op.integer("sampling_ratio", 0, POSITIVE, wanted)
    _check(op, 4)
    op.refuse_if(batch.shape != rois.shape[:1], f"{batch} against one image per region of {rois}")
    regions, bins = rois.shape[0], y.shape[2:]
    taps = [_axis_taps(op, build, axis, ratio, is_half=coordinates == "half_pixel") for axis in (0, 1)]
    shape = (regions, *bins, ratio, ratio, 2, 2)
    points, count = regions * prod(bins), ratio * ratio * 4
    image = (batch, (0,)) if x.shape[0] > 1 else None
    places = build.view(add_flat_places(build, taps, shape, image), "place_rows", (1, points, count))
    weights = build.view(add_weights(build, taps, shape), "weight_rows", (1, points, count))
    sample, table = Sample(Reduction.SUM if mode == "avg" else Reduction.MAX), _channels_first(build, x)
    sampled = build.made("sampled", sample, [table, places, weights], (1, x.shape[1], points, 1), step="sample")
    by_channel = build.view(sampled, "channels", (x.shape[1], regions, *bins))
    build.add(Copy(read=("i1", "i0", "i2", "i3")), [by_channel], y, step="output")


def _axis_taps(op: Operator, build: CanonicalFragment, axis: int, ratio: int, *, is_half: bool) -> AxisTaps:
    """Return the two elements around each point along an axis: ``[r, bin, point, 2]``, weighted for a mean or a max."""
    x, rois, y = op.input(0), op.input(1), op.output()
    extent, bins, dtype = x.shape[2 + axis], y.shape[2 + axis], sum_dtype(rois.dtype)
    scale = literal(op.real("spatial_scale", 1.0), dtype)
    begin, end = (_column(build, rois, column) for column in (1 - axis, 3 - axis))
    size = f"(b - a) * {scale}" if is_half else f"max(1.0, (b - a) * {scale})"
    fractions = (np.arange(bins)[:, None] + (np.arange(ratio) + 0.5) / ratio) / bins
    part = build.parameter(f"part{axis}", fractions.astype(dtype))
    source = f"a * {scale} - {0.5 if is_half else 0.0} + c * {size}"
    axes, shape = [(0,), (0,), (1, 2)], (rois.shape[0], bins, ratio)
    at = build.computed(f"at{axis}", source, [begin, end, part], shape, dtype, axes=axes)
    # Up to an element beside the data the edge counts; what is farther away does not.
    inside, inner = f"a >= -1 and a <= {extent}", f"max(0.0, min({extent - 1.0}, a))"
    place = f"min({extent - 1.0}, floor({inner}) + b) if {inside} else -1"
    share = f"1 - abs({inner} - floor({inner}) - b)"
    if op.text("mode", "avg") == "avg":
        share = f"({share}) / {ratio}"
    # Dimensions: region, bins down, bins across, points down, points across, elements down, elements across.
    return taps_beside(build, at, (axis, extent), (place, share), (0, 1 + axis, 3 + axis, 5 + axis))


def _column(build: CanonicalFragment, rois: Tensor, column: int) -> Tensor:
    """Return one number of every region."""
    return build.copied(f"column{column}", rois, ("i0", str(column)), rois.shape[:1])


def _channels_first(build: CanonicalFragment, x: Tensor) -> Tensor:
    """Return images ``X[n, c, …]`` as one table ``[1, c, (n, …), 1]``."""
    pixels = prod(x.shape[2:])
    if x.shape[0] == 1:
        return build.view(x, "table", (1, x.shape[1], pixels, 1))
    images = build.view(x, "images", (*x.shape[:2], pixels))
    arranged = build.copied("arranged", images, ("i1", "i0", "i2"), (x.shape[1], x.shape[0], pixels), step="table")
    return build.view(arranged, "table", (1, x.shape[1], x.shape[0] * pixels, 1))


def _check(op: Operator, columns: int) -> None:
    x, rois = op.input(0), op.input(1)
    if x.rank != 4 or rois.rank != 2 or rois.shape[1] != columns or not is_real(x.dtype):
        raise op.unsupported(f"data {x} against images of real numbers, regions {rois} against {columns} numbers each")


@onnx_expansion("MaxRoiPool", "masks", default=True)
def max_roi_pool(op: Operator, build: CanonicalFragment) -> None:
    """Two downsamplers, over rows and over columns: each bin reads all of its image, and takes what lies in it.

    Which elements a bin has depends on data: a task that reads these alone would have no volume that is known.
    """
    x, rois, y = op.input(0), op.input(1), op.output()
    _check(op, 5)
    regions, channels = y.shape[:2]
    bounds = [_bounds(op, build, axis) for axis in (0, 1)]
    data = x
    if x.shape[0] > 1:
        image = build.computed("image", "dace.int64(a)", [_column(build, rois, 0)], (regions,), "int64")
        data = build.made("regions", Lookup(0), [x, image], (regions, *x.shape[1:]))
    for axis in (0, 1):
        extent, bins = x.shape[2 + axis], y.shape[2 + axis]
        begin, end = (build.view(bound, f"{bound.name}_rows", (regions, 1, bins, 1, 1)) for bound in bounds[axis])
        positions = build.parameter(f"position{axis}", np.arange(extent, dtype=begin.dtype)[:, None])
        lines, inner = (channels, x.shape[3]) if axis == 0 else (channels * y.shape[2], 1)
        rows = (data.shape[0], lines, 1, extent, inner)
        largest = build.array(f"largest{axis}", (regions, lines, bins, inner))
        source = "a if d >= b and d < c else -inf"
        operands = [build.view(data, f"rows{axis}", rows), begin, end, positions]
        build.reduce(Reduction.MAX, operands, largest, [3], source, step=f"max{axis}")
        data = largest
    found = build.view(data, "found", y.shape)
    axes = [(0, 1, 2, 3), (0, 2), (0, 2), (0, 3), (0, 3)]
    build.elementwise("a if b < c and d < e else 0", [found, *bounds[0], *bounds[1]], y, axes=axes, step="empty")


def _bounds(op: Operator, build: CanonicalFragment, axis: int) -> tuple[Tensor, Tensor]:
    """Return the first element of every bin along an axis, and the one behind its last: ``[r, bin]``."""
    x, rois, y = op.input(0), op.input(1), op.output()
    extent, bins, dtype = x.shape[2 + axis], y.shape[2 + axis], sum_dtype(rois.dtype)
    scale = literal(op.real("spatial_scale", 1.0), dtype)
    rounded = f"floor(abs(a * {scale}) + 0.5)"  # halves away from zero
    source = f"{rounded} if a >= 0 else -{rounded}"
    sides = ((f"corner{column}", _column(build, rois, column)) for column in (2 - axis, 4 - axis))
    corners = [build.computed(name, source, [side], side.shape, dtype) for name, side in sides]

    def bound(name: str, number: str, function: str) -> Tensor:
        found = build.array(f"{name}{axis}", (rois.shape[0], bins), dtype)
        source = f"max(0.0, min({float(extent)}, {function}({number} * (max(1.0, b - a + 1) / {bins})) + a))"
        numbers = build.parameter(f"{name}_bins{axis}", np.arange(bins, dtype=dtype))
        build.elementwise(source, [*corners, numbers], found, axes=[(0,), (0,), (1,)], step=found.name)
        return found

    return bound("begin", "c", "floor"), bound("end", "(c + 1)", "ceil")
