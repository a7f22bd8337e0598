"""Where a Resize reads along an axis: a few places of the data per element of the result, and their weights.

Coordinates are computed in single precision, as onnxruntime does: to the nearest element, the last bit can decide.
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from msgspec import Struct

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

    @property
    def is_fractional(self) -> bool:
        """Whether the scale asks for another number of elements than the result has."""
        return bool(abs(self.scale * self.extent - self.size) > 1e-6 * self.size)


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
    first = np.floor(at).astype(np.int64)[:, None]
    places = first + np.arange(1 - reach, reach + 1)
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
