"""Images that are read between their elements, at places that the model computes.

ONNX GridSample and AffineGrid, RoiAlign and MaxRoiPool, DeformConv; the canonical Sample.
"""

from collections.abc import Callable, Mapping, Sequence
from math import prod

import numpy as np
from msgspec import Struct

from dfcompile.lowering import CanonicalFragment, CanonicalNode, MapFragment, Operator, Reduction, Tensor
from dfcompile.lowering.expansion import expansion, onnx_expansion
from dfcompile.lowering.expressions import is_real, literal, sum_dtype
from dfcompile.lowering.node import POSITIVE
from dfcompile.lowering.operators import Copy, Lookup, MatMul, Sample
from dfcompile.lowering.sampled_points import AxisTaps, add_flat_places, add_weights, taps_around
from dfcompile.lowering.windows import Windows, windows_of

_MODES = {
    "nearest": "nearest", "linear": "linear", "bilinear": "linear", "cubic": "cubic", "bicubic": "cubic"
}  # fmt: skip
_CUBIC_A = -0.75
_DISTANCE = "abs(a - floor(a) - b)"
_NEAR = f"(({_CUBIC_A + 2} * {_DISTANCE} - {_CUBIC_A + 3}) * {_DISTANCE} * {_DISTANCE} + 1)"
_FAR = f"((({_DISTANCE} - 5) * {_DISTANCE} + 8) * {_DISTANCE} - 4) * {_CUBIC_A}"

# By mode: places beside the one at or before the point, and the weight of the place `b` beside the point `a`.
_TAPS: Mapping[str, tuple[Sequence[int], str | None]] = {
    "nearest": ((0,), None),
    "linear": ((0, 1), f"1 - {_DISTANCE}"),
    "cubic": ((-1, 0, 1, 2), f"{_NEAR} if {_DISTANCE} <= 1 else {_FAR}"),
}


class _Side(Struct, frozen=True):
    """A spatial axis of the data.

    Attributes:
        extent: in elements.
        align_corners: -1 and 1 are the centres of the outermost elements rather than their borders.
    """

    extent: int
    align_corners: bool

    def coordinate(self) -> str:
        """Return the coordinate in elements of the number ``a`` of a grid."""
        if self.align_corners:
            return f"(a + 1) / 2 * {self.extent - 1}"
        return f"((a + 1) * {self.extent} - 1) / 2"

    def clamped(self, at: str) -> str:
        """Return the nearest coordinate within the data."""
        return f"max(0.0, min({self.extent - 1.0}, {at}))"

    def reflected(self, at: str) -> str:
        """Return a coordinate reflected at the borders until it is between them."""
        low, high = (0.0, self.extent - 1.0) if self.align_corners else (-0.5, self.extent - 0.5)
        if low == high:
            return "0"
        period = 2 * (high - low)
        distance = f"fmod(abs({at} - {low}), {period})"
        return f"{at} if {at} >= {low} and {at} <= {high} else {low} + min({distance}, {period} - {distance})"

    def zeroed(self, at: str) -> str:
        """Return the place, or -1 for what is outside."""
        return f"{at} if {at} >= 0 and {at} < {self.extent} else -1"


# By padding: what becomes of a coordinate, and of a place beside it.
_PADDINGS: Mapping[str, tuple[Callable[[_Side, str], str] | None, Callable[[_Side, str], str]]] = {
    "border": (_Side.clamped, _Side.clamped),
    "reflection": (_Side.reflected, _Side.reflected),
    "zeros": (None, _Side.zeroed),
}


@onnx_expansion("GridSample", "taps", default=True)
def grid_sample(op: Operator, build: CanonicalFragment) -> None:
    """``Y[n, c, p] = sum_t w[n, p, t] * X[n, c, place[n, p, t]]``: places and weights axis by axis, then one Sample."""
    x, grid, y = op.input(0), op.input(1), op.output()
    mode, padding = op.text("mode", "linear"), op.text("padding_mode", "zeros")
    if mode not in _MODES or padding not in _PADDINGS:
        known = f"{', '.join(_MODES)} and {', '.join(_PADDINGS)}"
        raise op.unsupported(f"modes {mode!r} and {padding!r} against {known}")
    sides = [_Side(extent, op.integer("align_corners", 0) != 0) for extent in x.shape[2:]]
    if x.rank < 3 or grid.shape != (x.shape[0], *y.shape[2:], len(sides)):
        raise op.unsupported(f"grid {grid} against one place of {len(sides)} axes per element of {y}")
    if _MODES[mode] != "nearest" and not is_real(x.dtype):
        raise op.unsupported(f"attribute 'mode' is {mode!r} against 'nearest' for {x.dtype}")
    batch, points = x.shape[0], prod(y.shape[2:])
    flat = build.view(grid, "grid", (batch, points, len(sides)))
    taps = []
    for axis, side in enumerate(sides):
        read = ("i0", "i1", str(len(sides) - 1 - axis))  # a grid has the last axis first
        given = build.copied(f"given{axis}", flat, read, (batch, points))
        taps.append(_grid_taps(build, given, side, _MODES[mode], padding, axis))
    counts = [each.places.shape[2] for each in taps]
    table = build.view(x, "table", (*x.shape[:2], prod(x.shape[2:]), 1))
    operands = [_rows(build, add_flat_places(build, taps, (batch, points, *counts)))]
    if _MODES[mode] != "nearest":
        operands.append(_rows(build, add_weights(build, taps, (batch, points, *counts))))
    shape = (*y.shape[:2], points, 1)
    build.view_as(build.made("sampled", Sample(), [table, *operands], shape, y.dtype, step="sample"), y)


def _rows(build: CanonicalFragment, taps: Tensor) -> Tensor:
    """Return an array of points with the taps of all axes one behind the other."""
    return build.view(taps, f"{taps.name.rpartition('_')[2]}_rows", (*taps.shape[:2], prod(taps.shape[2:])))


def _grid_taps(
    build: CanonicalFragment, given: Tensor, side: _Side, mode: str, padding: str, axis: int
) -> AxisTaps:  # fmt: skip
    """Return places and weights along an axis, each ``[n, p, taps]``."""
    offsets, weight = _TAPS[mode]
    dtype, at = sum_dtype(given.dtype), side.coordinate()
    source = f"rint({at})" if mode == "nearest" else at
    coordinate = build.computed(f"coordinate{axis}", source, [given], given.shape, dtype)
    of_coordinate, of_place = _PADDINGS[padding]
    # A cubic filter at a repeated border sees where the point is, in PyTorch and onnxruntime.
    if of_coordinate is not None and (mode, padding) != ("cubic", "border"):
        coordinate = build.computed(f"inner{axis}", of_coordinate(side, "a"), [coordinate], given.shape, dtype)
    # What is far outside must stay so as an integer.
    near = f"max(-8.0, min({side.extent + 8.0}, floor(a) + b))"
    code = of_place(side, near), weight
    return taps_around(build, coordinate, (axis, side.extent), code, (0, 1, 2 + axis), offsets)


@onnx_expansion("AffineGrid", "matmul", default=True)
def affine_grid(op: Operator, build: CanonicalFragment) -> None:
    """``Y[n, p] = theta[n] @ (x[p], y[p], 1)``: a product with the constant places of an image from -1 to 1."""
    theta, y = op.input(0), op.output()
    extents = y.shape[1:-1]
    rank = len(extents)
    if theta.shape != (y.shape[0], rank, rank + 1) or y.shape[-1] != rank:
        raise op.unsupported(f"theta {theta} against one matrix {rank}×{rank + 1} per grid of {y}")
    is_aligned = op.integer("align_corners", 0) != 0
    if is_aligned and 1 in extents:
        raise op.unsupported(f"size {list(extents)} with aligned corners against at least 2 (where would 1 be?)")
    build.check_parameter((*extents, rank + 1))
    sides = [
        np.linspace(-1, 1, extent) if is_aligned else (2 * np.arange(extent) + 1) / extent - 1 for extent in extents
    ]
    places = np.meshgrid(*sides, indexing="ij")
    base = np.stack([*reversed(places), np.ones(extents)], axis=-1).reshape(-1, rank + 1)
    points = build.parameter("points", base.astype(theta.dtype))
    build.add_reshaped(MatMul(transpose_b=True), [points, theta], y, "grid", (y.shape[0], len(base), rank))


_MOST_TASKS = 4096  # by default


@expansion(Sample, "map", source="onnx", default=True)
def sample(op: CanonicalNode[Sample], build: MapFragment) -> None:
    """One task in row order of the result, which reads X from memory and its places once per channel and row."""
    _add(op, build)


def _has_images(op: CanonicalNode[Sample]) -> bool:
    images, channels = op.output().shape[:2]
    return channels <= images <= _MOST_TASKS and images > 1


def _has_channels(op: CanonicalNode[Sample]) -> bool:
    images, channels = op.output().shape[:2]
    return images < channels <= _MOST_TASKS


@expansion(Sample, "images", source="onnx", default=_has_images)
def sample_per_image(op: CanonicalNode[Sample], build: MapFragment) -> None:
    """One task per batch of the data, the default where these are many: per channel of what a Resize resizes."""
    _add(op, build, "images", "b")


@expansion(Sample, "channels", source="onnx", default=_has_channels)
def sample_per_channel(op: CanonicalNode[Sample], build: MapFragment) -> None:
    """One task per channel, each of which reads X from memory and all places; the default where channels are more."""
    _add(op, build, "channels", "c")


def _add(op: CanonicalNode[Sample], build: MapFragment, step: str = "", *spatial: str) -> None:
    x, places, y = op.input(0), op.input(1), op.output()
    extents = dict(zip("bcprt", (*y.shape, places.shape[2]), strict=True))
    of_point = ["0" if places.shape[0] == 1 else "b", "p", "t"]
    reads = {"place": (places, of_point)}
    weights = op.optional_input(2)
    if weights is not None:
        reads["weight"] = (weights, of_point)
    element = f"table[b, c, (place + {x.shape[2]}) % {x.shape[2]}, r]"  # what is outside reads some other element
    if x.dtype == "float16":
        element = f"dace.float32({element})"
    code = f"{element if weights is None else f'weight * {element}'} if place >= 0 else 0"
    tasks, write = {name: extents.pop(name) for name in spatial}, (y, ["b", "c", "p", "r"])
    total = op.operator.reduction
    build.map(
        step, spatial=tasks, loops=extents, reads=reads, tables={"table": x}, write=write, code=code, accumulate=total
    )


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
    taps = [_region_taps(op, build, axis, ratio, is_half=coordinates == "half_pixel") for axis in (0, 1)]
    shape = (regions, *bins, ratio, ratio, 2, 2)
    points, count = regions * prod(bins), ratio * ratio * 4
    image = (batch, (0,)) if x.shape[0] > 1 else None
    places = build.view(add_flat_places(build, taps, shape, image), "place_rows", (1, points, count))
    weights = build.view(add_weights(build, taps, shape), "weight_rows", (1, points, count))
    sample, table = Sample(Reduction.SUM if mode == "avg" else Reduction.MAX), _channels_first(build, x)
    sampled = build.made("sampled", sample, [table, places, weights], (1, x.shape[1], points, 1), step="sample")
    by_channel = build.view(sampled, "channels", (x.shape[1], regions, *bins))
    build.add(Copy(read=("i1", "i0", "i2", "i3")), [by_channel], y, step="output")


def _region_taps(op: Operator, build: CanonicalFragment, axis: int, ratio: int, *, is_half: bool) -> AxisTaps:
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
    return taps_around(build, at, (axis, extent), (place, share), (0, 1 + axis, 3 + axis, 5 + axis))


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


@onnx_expansion("DeformConv", "columns", default=True)
def deform_conv(op: Operator, build: CanonicalFragment) -> None:
    """``cols[n, c, (k, y)] = mask * X[n, c, between the four elements around]``, ``Y = W @ cols``, then the bias.

    Places and weights are computed per group of offsets, whose channels share them.
    """
    x, w, offset, bias, y = op.input(0), op.input(1), op.input(2), op.optional_input(3), op.output()
    op.refuse_if(x.rank != 4 or not is_real(x.dtype), f"data {x} against four dimensions of real numbers")
    windows, group = windows_of(op, w.shape[2:]), op.integer("group", 1)
    offset_group = op.integer("offset_group", 1)
    batch, channels, taps_count, count = x.shape[0], x.shape[1], prod(w.shape[2:]), prod(windows.counts)
    # The operands that ONNX's inference does not look at.
    if min(group, offset_group) < 1 or channels % offset_group or channels != w.shape[1] * group:
        raise op.unsupported(f"{channels} channels, {group} groups, {offset_group} groups of offsets")
    if w.shape[0] % group or (bias is not None and bias.shape != w.shape[:1]):
        raise op.unsupported(f"{w.shape[0]} filters against a multiple of {group} groups and one bias each")
    wanted, mask = (batch, offset_group * taps_count, *windows.counts), op.optional_input(4)
    if offset.shape != (wanted[0], 2 * wanted[1], *wanted[2:]) or (mask is not None and mask.shape != wanted):
        raise op.unsupported(f"offsets or mask against {list(wanted)} places of two coordinates")
    groups, points = batch * offset_group, taps_count * count
    given = build.view(offset, "offsets", (groups, taps_count, 2, count))
    taps = [_offset_taps(build, given, windows, x.shape[2 + axis], axis) for axis in (0, 1)]
    factor = None if mask is None else (build.view(mask, "masks", (groups, points)), (0, 1))
    shape = (groups, points, 2, 2)
    places = build.view(add_flat_places(build, taps, shape), "place_rows", (groups, points, 4))
    weights = build.view(add_weights(build, taps, shape, factor), "weight_rows", (groups, points, 4))
    table = build.view(x, "table", (groups, channels // offset_group, prod(x.shape[2:]), 1))
    shape_of_samples = (groups, channels // offset_group, points, 1)
    sampled = build.made("sampled", Sample(), [table, places, weights], shape_of_samples, step="sample")
    window = channels // group * taps_count
    cols = build.view(sampled, "cols", (batch, group, window, count))
    filters = build.view(w, "filters", (1, group, w.shape[0] // group, window))
    rows, dtype = (batch, group, w.shape[0] // group, count), y.dtype if bias is None else sum_dtype(y.dtype)
    product = build.made("product", MatMul(), [filters, cols], rows, dtype, step="matmul")
    if bias is None:
        build.view_as(product, y)
    else:
        sums = build.view(product, "rows", y.shape)
        build.elementwise("a + b", [sums, bias], y, axes=[(0, 1, 2, 3), (1,)], step="bias")


def _offset_taps(build: CanonicalFragment, offsets: Tensor, windows: Windows, extent: int, axis: int) -> AxisTaps:
    """Return the two elements on both sides of each point along an axis, each ``[n, p, 2]``."""
    groups, taps_count, _, count = offsets.shape
    kernel = np.indices(windows.kernel)[axis].ravel() * windows.dilations[axis]
    corner = np.indices(windows.counts)[axis].ravel() * windows.strides[axis] - windows.pads_begin[axis]
    dtype = sum_dtype(offsets.dtype)
    given = build.copied(f"given{axis}", offsets, ("i0", "i1", str(axis), "i2"), (groups, taps_count, count))
    base = build.parameter(f"base{axis}", (kernel[:, None] + corner).astype(dtype))
    at = build.computed(f"at{axis}", "a + b", [given, base], given.shape, dtype)
    coordinate = build.view(at, f"coordinate{axis}", (groups, taps_count * count))
    place = "floor(a) + b"
    code = f"{place} if {place} >= 0 and {place} < {extent} else -1", "1 - abs(a - floor(a) - b)"
    return taps_around(build, coordinate, (axis, extent), code, (0, 1, 2 + axis))
