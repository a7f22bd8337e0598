"""ONNX GridSample and AffineGrid: images read at places that the model computes; the canonical Sample."""

from collections.abc import Callable, Mapping, Sequence
from math import prod

import numpy as np
from msgspec import Struct

from dfcompile.lowering import CanonicalFragment, CanonicalNode, MapFragment, Operator, Tensor
from dfcompile.lowering.expansion import expansion, onnx_expansion
from dfcompile.lowering.expressions import is_real, sum_dtype
from dfcompile.lowering.operators import MatMul, Sample
from dfcompile.lowering.sampled_points import AxisTaps, add_flat_places, add_weights, taps_beside

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
        taps.append(_axis_taps(build, given, side, _MODES[mode], padding, axis))
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


def _axis_taps(
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
    return taps_beside(build, coordinate, (axis, side.extent), code, (0, 1, 2 + axis), offsets)


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
