"""Points between the elements of an image: their taps along each axis become the places and weights of a Sample."""

from collections.abc import Sequence
from math import prod
from typing import TypeAlias

import numpy as np
from msgspec import Struct

from dfcompile.lowering import CanonicalFragment, Tensor
from dfcompile.lowering.expressions import operand_names

Placed: TypeAlias = tuple[Tensor, tuple[int, ...]]  # an array, and for each of its dimensions that of the result


class AxisTaps(Struct, frozen=True):
    """The taps of all points along one axis of an image: the elements that interpolation reads, and their weights.

    Attributes:
        extent: of the axis, in elements.
        places: positions of taps along the axis; negative outside of the image.
        weights: of the taps, of the same shape; ``None`` if each point has one tap, of weight 1.
        axes: for each dimension of places and weights, that of an array over the taps of all axes.
    """

    extent: int
    places: Tensor
    weights: Tensor | None
    axes: tuple[int, ...]


def taps_around(
    build: CanonicalFragment,
    coordinates: Tensor,
    axis: tuple[int, int],
    code: tuple[str, str | None],
    axes: tuple[int, ...],
    offsets: Sequence[int] = (0, 1),
) -> AxisTaps:
    """Return the taps around coordinates along an axis: places and weights ``[…, offset]``.

    Args:
        build: what to add the tasks to.
        coordinates: of points along the axis, in elements.
        axis: its number among the axes of an image, and its extent.
        code: expressions of the place at an offset ``b`` from the coordinate ``a``, and of its weight unless that is 1.
        axes: see `AxisTaps`.
        offsets: of the taps from the coordinate, rounded down.
    """
    (number, extent), (place, weight) = axis, code
    beside = build.parameter(f"beside{number}", np.asarray(offsets, coordinates.dtype))
    shape, operands = (*coordinates.shape, len(offsets)), [coordinates, beside]
    operand_axes = [range(coordinates.rank), (coordinates.rank,)]
    places = build.computed(f"place{number}", f"dace.int64({place})", operands, shape, "int64", axes=operand_axes)
    weights = None
    if weight is not None:
        weights = build.computed(f"weight{number}", weight, operands, shape, coordinates.dtype, axes=operand_axes)
    return AxisTaps(extent, places, weights, axes)


def add_flat_places(
    build: CanonicalFragment, taps: Sequence[AxisTaps], shape: Sequence[int], image: Placed | None = None
) -> Tensor:
    """Add the task that computes the places of all combinations of taps in the flattened image; -1 if one is outside.

    Args:
        build: what to add the task to.
        taps: of each axis of the image.
        shape: of the result.
        image: number of the image, if there are several, and its dimensions in the result.
    """
    names = operand_names(len(taps) + 1)
    flat = names[0]
    for name, axis in zip(names[1:], taps[1:], strict=False):
        flat = f"({flat}) * {axis.extent} + {name}"
    operands, axes = [axis.places for axis in taps], [axis.axes for axis in taps]
    if image is not None:
        flat = f"{names[-1]} * {prod(axis.extent for axis in taps)} + {flat}"
        operands.append(image[0])
        axes.append(image[1])
    is_inside = " and ".join(f"{name} >= 0" for name in names[: len(taps)])
    return build.computed("places", f"{flat} if {is_inside} else -1", operands, shape, "int64", axes=axes)


def add_weights(
    build: CanonicalFragment, taps: Sequence[AxisTaps], shape: Sequence[int], factor: Placed | None = None
) -> Tensor:
    """Add the task that multiplies weights along all axes, and a factor; the taps are those of `add_flat_places`."""
    factors = [(axis.weights, axis.axes) for axis in taps if axis.weights is not None]
    operands, axes = zip(*(factors if factor is None else [*factors, factor]), strict=True)
    source = " * ".join(operand_names(len(operands)))
    return build.computed("weights", source, operands, shape, operands[0].dtype, axes=axes)
