"""ONNX Resize, axis by axis, since interpolation is separable: a few places of the data per element of the result.

Coordinates are computed in single precision, as onnxruntime does: to the nearest element, the last bit can decide.
"""

from collections.abc import Callable, Iterator, Mapping
from math import prod
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from dfcompile.lowering import CanonicalFragment, Operator, Tensor, onnx_expansion
from dfcompile.lowering.expansions.indexed import progressions
from dfcompile.lowering.expansions.movement import repeated
from dfcompile.lowering.expressions import is_real, literal, operand_names, sum_dtype
from dfcompile.lowering.operators import Copy, Gather, Lookup, MatMul, Sample

Reals: TypeAlias = npt.NDArray[np.float32]
Weights: TypeAlias = npt.NDArray[np.float64]
Places: TypeAlias = npt.NDArray[np.int64]

SIMPLE = "simple"  # the rounding before operator set 11: up where an axis shrinks, else down
_RADIUS = {"linear": 1, "cubic": 2}  # of the filter, in elements of the data


class ResizedAxis(Struct, frozen=True):
    """An axis of a Resize.

    Attributes:
        extent: of the data.
        size: of the result.
        scale: elements of the result per element of the data, as the model gives it or as the sizes do.
        roi: begin and end of what is read, as parts of the data; for ``tf_crop_and_resize``.
    """

    extent: int
    size: int
    scale: float
    roi: tuple[float, float] = (0.0, 1.0)


class ResizeMode(Struct, frozen=True):
    """How a Resize interpolates, by ONNX's names.

    Attributes:
        mode: ``nearest``, ``linear`` or ``cubic``.
        coordinates: where an element of the result lies in the data.
        rounding: to the nearest element.
        cubic_a: the parameter of the cubic filter.
        is_antialiased: the filter is as wide as an element of the result, where that is wider than one of the data.
        excludes_outside: what lies outside has no weight, rather than being that of the edge.
    """

    mode: str
    coordinates: str
    rounding: str
    cubic_a: float
    is_antialiased: bool
    excludes_outside: bool


class Taps(Struct, frozen=True):
    """What the elements of the result read along an axis.

    Attributes:
        places: ``[size, taps]``, in the data.
        weights: ``[size, taps]``.
        is_outside: ``[size]``, whether the element lies outside of the data and has the value for that.
    """

    places: Places
    weights: Weights
    is_outside: npt.NDArray[np.bool_]

    @property
    def is_gather(self) -> bool:
        """Whether every element of the result is an element of the data."""
        return self.places.shape[1] == 1 and bool((self.weights == 1).all())

    def repeats(self, extent: int) -> bool:
        """Whether the elements of the data come one after another, each as often as the others."""
        size = len(self.places)
        every = np.arange(size) // max(size // extent, 1)
        return self.is_gather and size % extent == 0 and bool((self.places[:, 0] == every).all())

    def matrix(self, extent: int) -> Weights:
        """Return ``M[size, extent]``, whose product with the data, of that extent, is the result."""
        matrix = np.zeros((len(self.places), extent))
        np.add.at(matrix, (np.arange(len(self.places))[:, None], self.places), self.weights)
        return matrix


def _half_pixel(axis: ResizedAxis, at: Reals) -> Reals:
    return (at + np.float32(0.5)) / np.float32(axis.scale) - np.float32(0.5)


def _symmetric(axis: ResizedAxis, at: Reals) -> Reals:
    adjustment = np.float32(axis.size) / (np.float32(axis.scale) * np.float32(axis.extent))
    offset = np.float32(axis.extent / 2) * (1 - adjustment)
    return offset + (at + np.float32(0.5)) / np.float32(axis.scale) - np.float32(0.5)


def _align_corners(axis: ResizedAxis, at: Reals) -> Reals:
    if axis.size == 1:
        return np.zeros_like(at)
    return at * np.float32(axis.extent - 1) / np.float32(axis.size - 1)


def _crop(axis: ResizedAxis, at: Reals) -> Reals:
    (begin, end), last = (np.float32(part) for part in axis.roi), np.float32(axis.extent - 1)
    if axis.size == 1:
        return np.zeros_like(at) + np.float32(0.5) * (begin + end) * last
    return begin * last + at * (end - begin) * last / np.float32(axis.size - 1)


COORDINATES: Mapping[str, Callable[[ResizedAxis, Reals], Reals]] = {
    "align_corners": _align_corners,
    "asymmetric": lambda axis, at: at / np.float32(axis.scale),
    "half_pixel": _half_pixel,
    "half_pixel_symmetric": _symmetric,
    "pytorch_half_pixel": lambda axis, at: _half_pixel(axis, at) if axis.size > 1 else np.zeros_like(at),
    "tf_crop_and_resize": _crop,
    "tf_half_pixel_for_nn": lambda axis, at: (at + np.float32(0.5)) / np.float32(axis.scale),
}
ROUNDINGS: Mapping[str, Callable[[Reals], Reals]] = {
    "ceil": np.ceil,
    "floor": np.floor,
    "round_prefer_ceil": lambda at: np.floor(at + np.float32(0.5)),
    "round_prefer_floor": lambda at: np.ceil(at - np.float32(0.5)),
}


def taps_of(axis: ResizedAxis, how: ResizeMode) -> Taps:
    """Return what an axis reads; columns of weight 0 are left out."""
    at = np.arange(axis.size, dtype=np.float32)
    if axis.scale != 1 or axis.size != axis.extent:
        at = COORDINATES[how.coordinates](axis, at)
    is_outside = np.zeros(axis.size, np.bool_)
    if how.coordinates == "tf_crop_and_resize":
        is_outside = (at < 0) | (at > axis.extent - 1)
    if how.mode == "nearest":
        rounding = how.rounding if how.rounding != SIMPLE else "ceil" if axis.scale < 1 else "floor"
        places = ROUNDINGS[rounding](at).astype(np.int64)[:, None]
        return Taps(np.clip(places, 0, axis.extent - 1), np.ones(places.shape), is_outside)
    narrowing = min(axis.scale, 1.0) if how.is_antialiased else 1.0
    reach = int(np.ceil(_RADIUS[how.mode] / narrowing))
    places = np.floor(at).astype(np.int64)[:, None] + np.arange(1 - reach, reach + 1)
    distances: Weights = (places - at[:, None].astype(np.float64)).astype(np.float64) * np.float64(narrowing)
    weights: Weights = np.maximum(1 - np.abs(distances), 0.0)
    if how.mode == "cubic":
        weights = _cubic(distances, how.cubic_a)
    if how.excludes_outside:
        weights = np.where((places < 0) | (places >= axis.extent), 0.0, weights)
    if how.excludes_outside or how.is_antialiased:
        weights /= weights.sum(axis=1, keepdims=True)
    return _shortened(Taps(np.clip(places, 0, axis.extent - 1), weights, is_outside))


def _cubic(distances: Weights, a: float) -> Weights:
    """Return the weights of cubic convolution, which has the parameter ``a``."""
    x = np.abs(distances)
    near, far = ((a + 2) * x - (a + 3)) * x * x + 1, ((x - 5) * x + 8) * a * x - 4 * a
    found: Weights = np.where(x <= 1, near, np.where(x < 2, far, 0.0))
    return found


def _shortened(taps: Taps) -> Taps:
    """Leave out columns without weight; places that are read alone, with any weight, are one column."""
    is_used = (taps.weights != 0).any(axis=0)
    if not is_used.any():
        is_used[0] = True
    rows = np.arange(len(taps.places))
    if ((taps.weights != 0).sum(axis=1) == 1).all():
        column = (taps.weights != 0).argmax(axis=1)
        return Taps(taps.places[rows, column][:, None], taps.weights[rows, column][:, None], taps.is_outside)
    return Taps(taps.places[:, is_used], taps.weights[:, is_used], taps.is_outside)


# Adds the operators that interpolate X[images, rows, extent, inner] along its third axis, in a data type and with a
# begin of their names. Returns the array that holds the result in row order.
_Interpolation: TypeAlias = Callable[[CanonicalFragment, Tensor, str, Taps, str], Tensor]

_KEEPS_RATIO = {"not_larger": min, "not_smaller": max}


def _repeats(op: Operator) -> bool:
    """Whether every axis repeats its elements."""
    every = zip(_taps(op), op.input(0).shape, strict=True)
    return all(not taps.is_outside.any() and taps.repeats(extent) for taps, extent in every)


@onnx_expansion("Resize", "repeat", default=_repeats)
def repeat(op: Operator, build: CanonicalFragment) -> None:
    """``Y[f*i + r, …] = X[i, …]`` for r < f: one upsampler; a view if all factors are 1."""
    x, y = op.input(0), op.output()
    if not _repeats(op):
        raise op.unsupported(f"from {list(x.shape)} to {list(y.shape)} against whole factors to the nearest element")
    if x.shape == y.shape:
        build.view_as(x, y)
        return
    factors = [size // extent for size, extent in zip(y.shape, x.shape, strict=True)]
    build.add(repeated(x.shape, factors, reads_inner=False), [x], y)


@onnx_expansion("Resize", "taps", default=True)
def taps(op: Operator, build: CanonicalFragment) -> None:
    """One task per axis that changes: each element is the weighted sum of a few of the data, at constant places."""
    _add_axes(op, build, _add_sample)


@onnx_expansion("Resize", "matmul")
def matmul(op: Operator, build: CanonicalFragment) -> None:
    """One matrix product per axis that interpolates, with a constant matrix that is mostly zeros."""
    _add_axes(op, build, _add_product)


def _add_axes(op: Operator, build: CanonicalFragment, interpolate: _Interpolation) -> None:
    x, y = op.input(0), op.output()
    every = _taps(op)
    columns = enumerate(zip(every, x.shape, y.shape, strict=True))
    changing = [axis for axis, (each, extent, size) in columns if size != extent or not each.repeats(extent)]
    changing.sort(key=lambda axis: y.shape[axis] / x.shape[axis])  # few elements first
    is_exact = all(each.is_gather for each in every)
    is_finished = not any(each.is_outside.any() for each in every) and (is_exact or is_real(x.dtype))
    wide = x.dtype if is_exact else sum_dtype(x.dtype) if is_real(x.dtype) else "float32"
    data = x
    for axis in changing:
        is_last = is_finished and axis == changing[-1]
        shape = (*data.shape[:axis], y.shape[axis], *data.shape[axis + 1 :])
        step = "" if len(changing) == 1 and is_finished else f"axis{axis}"
        if every[axis].is_gather:
            gathered = y if is_last else build.array(f"resized{axis}", shape, data.dtype)
            _add_gather(build, data, gathered, axis, every[axis], step)
            data = gathered
            continue
        # Channels are images: what is behind the first two axes is of one of them.
        outer = (prod(shape[: min(axis, 2)]), prod(shape[min(axis, 2) : axis]))
        table = build.view(data, f"data{axis}", (*outer, data.shape[axis], prod(shape[axis + 1 :])))
        found = interpolate(build, table, y.dtype if is_last else wide, every[axis], step)
        if is_last:
            build.view_as(found, y)
        else:
            data = build.view(found, f"resized{axis}", shape)
    if not is_finished:
        _finish(op, build, data, every)
    elif not changing:
        build.view_as(x, y)


def _finish(op: Operator, build: CanonicalFragment, data: Tensor, every: list[Taps]) -> None:
    """Put the value for what is outside where it belongs, and round to integers."""
    y = op.output()
    source = "a"
    if data.dtype != y.dtype and not is_real(y.dtype):
        limits = np.iinfo(y.dtype)
        source = f"max({float(limits.min)!r}, min({float(limits.max)!r}, a))"  # what is behind the point is cut
    outside = [axis for axis, each in enumerate(every) if each.is_outside.any()]
    operands = [data, *(build.parameter(f"outside{axis}", every[axis].is_outside) for axis in outside)]
    axes = [tuple(range(y.rank)), *((axis,) for axis in outside)]
    if outside:
        value = literal(op.real("extrapolation_value", 0.0), y.dtype)
        source = f"{value} if {' or '.join(operand_names(len(operands))[1:])} else {source}"
    build.elementwise(source, operands, y, axes=axes, step="finish")


def _add_gather(build: CanonicalFragment, x: Tensor, y: Tensor, axis: int, taps: Taps, step: str) -> None:
    extent, places = x.shape[axis], taps.places[:, 0]
    runs = progressions(places.tolist())
    if taps.repeats(extent):
        factor = len(places) // extent
        loops = (*x.shape[: axis + 1], factor, *x.shape[axis + 1 :])
        names = tuple(f"i{at}" for at in range(len(loops)) if at != axis + 1)
        write = (*names[:axis], f"{factor}*i{axis} + i{axis + 1}", *names[axis + 1 :])
        build.add(Copy(loops, names, write), [x], y, step=step)
    elif len(runs) == 1:
        build.add(Gather(axis, runs), [x], y, step=step)
    else:
        build.add(Lookup(axis), [x, build.parameter(f"places{axis}", places)], y, step=step)


def _add_sample(build: CanonicalFragment, x: Tensor, dtype: str, taps: Taps, step: str) -> Tensor:
    images, rows, _, inner = x.shape
    # What counts nothing is outside: an infinity there, which 0 times is no number, is not read.
    places = build.parameter(f"{step}places", np.where(taps.weights == 0, -1, taps.places)[None])
    weights = build.parameter(f"{step}weights", taps.weights[None].astype(_weight_dtype(x)))
    shape = (images, rows, len(taps.places), inner)
    return build.made(f"{step}sampled", Sample(), [x, places, weights], shape, dtype, step=step)


def _add_product(build: CanonicalFragment, x: Tensor, dtype: str, taps: Taps, step: str) -> Tensor:
    images, rows, extent, inner = x.shape
    outer, size = images * rows, len(taps.places)
    build.check_parameter((size, extent))
    weights = build.parameter(f"{step}matrix", taps.matrix(extent).astype(_weight_dtype(x)))
    name = f"{step}product"
    if inner == 1:
        flat = build.view(x, f"{step}rows", (outer, extent))
        return build.made(name, MatMul(transpose_b=True), [flat, weights], (outer, size), dtype, step=step)
    matrices = build.view(x, f"{step}matrices", (outer, extent, inner))
    return build.made(name, MatMul(), [weights, matrices], (outer, size, inner), dtype, step=step)


def _weight_dtype(x: Tensor) -> str:
    return sum_dtype(x.dtype) if is_real(x.dtype) else "float32"


def _taps(op: Operator) -> list[Taps]:
    """Return what every axis of the data reads.

    Raises:
        UnsupportedOpError: the operator contradicts itself, or onnxruntime and ONNX's definition disagree about it.
    """
    mode = op.choice("mode", "nearest", ("nearest", "linear", "cubic"))
    coordinates = op.choice("coordinate_transformation_mode", "half_pixel", COORDINATES)
    rounding = op.choice("nearest_mode", "round_prefer_floor", (*ROUNDINGS, SIMPLE))
    antialias = op.integer("antialias", 0) != 0
    op.refuse_if(antialias and mode == "nearest", "attribute 'antialias' is 1 against 0 in mode 'nearest'")
    if antialias and not is_real(op.input(0).dtype):
        raise op.unsupported("attribute 'antialias' is 1 against 0 for integers (how they are rounded is not defined)")
    if op.input(0).dtype == "bool" and mode != "nearest":
        raise op.unsupported(f"attribute 'mode' is {mode!r} against 'nearest' for truth values")
    cubic_a, excludes = op.real("cubic_coeff_a", -0.75), op.integer("exclude_outside", 0) != 0
    how = ResizeMode(mode, coordinates, rounding, cubic_a, antialias, excludes)
    return [taps_of(axis, how) for axis in _axes(op, how)]


def _axes(op: Operator, how: ResizeMode) -> Iterator[ResizedAxis]:
    x, y = op.input(0), op.output()
    chosen = [op.front_axis(axis, x.rank) for axis in op.integers("axes", tuple(range(x.rank)))]
    scales = _scales(op, chosen)
    rois = _rois(op, chosen) if how.coordinates == "tf_crop_and_resize" else {}
    for axis, (extent, size) in enumerate(zip(x.shape, y.shape, strict=True)):
        resized = ResizedAxis(extent, size, scales.get(axis, 1.0), rois.get(axis, (0.0, 1.0)))
        # What onnxruntime and ONNX's definition disagree about.
        where, scale = f"axis {axis} of {extent} elements", resized.scale
        if scale == 1 and resized.roi != (0.0, 1.0):
            hint = "(give sizes that differ, or slice it first)"
            raise op.unsupported(f"{where} has a region of interest {resized.roi} at scale 1 {hint}")
        is_cornered = how.coordinates in ("align_corners", "tf_crop_and_resize")
        is_fractional = abs(scale * extent - size) > 1e-6 * size  # it asks for another number of elements
        if is_fractional and (is_cornered or (how.coordinates == "pytorch_half_pixel" and size == 1)):
            wanted = "one that gives a whole number of elements (give sizes instead)"
            raise op.unsupported(f"{where} has scale {scale:g} against {wanted}")
        yield resized


def _scales(op: Operator, chosen: list[int]) -> dict[int, float]:
    """Return the scale of each axis that is resized."""
    x, y = op.input(0), op.output()
    sizes = op.static_integers(3, "sizes")
    if op.optional_input(2) is not None:
        found = [float(scale) for scale in op.constant(2, "scales").ravel()]
    elif sizes is None:
        raise op.unsupported("neither scales nor sizes are given")
    else:
        found = [size / x.shape[axis] for size, axis in zip(sizes, chosen, strict=False)]
        policy = op.text("keep_aspect_ratio_policy", "stretch")
        if policy in _KEEPS_RATIO and found:
            found = [_KEEPS_RATIO[policy](found)] * len(found)
    op.refuse_if(len(found) != len(chosen), f"{len(found)} scales or sizes against {len(chosen)} axes")
    for axis, scale in zip(chosen, found, strict=True):
        if not 0 < scale < np.inf or abs(scale * x.shape[axis] - y.shape[axis]) > 1:
            raise op.unsupported(f"scale {scale:g} of axis {axis} from {x.shape[axis]} to {y.shape[axis]} elements")
    return dict(zip(chosen, found, strict=True))


def _rois(op: Operator, chosen: list[int]) -> dict[int, tuple[float, float]]:
    roi = op.optional_input(1)
    if roi is None or roi.value is None:
        raise op.unsupported("operand 'roi' is omitted or computed by the model against a constant")
    ends = [float(end) for end in roi.value.ravel()]
    if len(ends) != 2 * len(chosen) or not np.isfinite(ends).all():
        raise op.unsupported(f"region of interest {ends} against begin and end of {len(chosen)} axes")
    return {axis: (ends[at], ends[at + len(chosen)]) for at, axis in enumerate(chosen)}
