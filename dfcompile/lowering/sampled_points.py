"""Points between the elements of an image: what is read along each of its axes becomes what a Sample reads."""

from collections.abc import Sequence
from math import prod
from typing import TypeAlias

import numpy as np
from msgspec import Struct

from dfcompile.lowering import CanonicalFragment, Tensor
from dfcompile.lowering.expressions import operand_names

Placed: TypeAlias = tuple[Tensor, tuple[int, ...]]  # an array, and dimensions of another one that its own stand for


class AxisTaps(Struct, frozen=True):
    """What is read along an axis of an image.

    Attributes:
        extent: of the axis, in elements.
        places: along the axis; negative outside.
        weights: of the same shape; ``None`` if there is one place with a weight of 1.
        axes: dimensions of an array over all axes that the dimensions of places and weights stand for.
    """

    extent: int
    places: Tensor
    weights: Tensor | None
    axes: tuple[int, ...]


def taps_beside(
    build: CanonicalFragment,
    coordinates: Tensor,
    axis: tuple[int, int],
    code: tuple[str, str | None],
    axes: tuple[int, ...],
    offsets: Sequence[int] = (0, 1),
) -> AxisTaps:
    """Return the elements beside coordinates along an axis: their places and weights ``[…, offset]``.

    Args:
        build: of the operator.
        coordinates: along the axis, in elements.
        axis: its number among the axes of an image, and its extent.
        code: the place at an offset ``b`` from the coordinate ``a``, and its weight, if it has any.
        axes: see `AxisTaps`.
        offsets: of the elements from the coordinate, rounded down.
    """
    (number, extent), (place, weight) = axis, code
    beside = build.parameter(f"beside{number}", np.asarray(offsets, coordinates.dtype))
    shape, operands = (*coordinates.shape, len(offsets)), [coordinates, beside]
    of_each = [range(coordinates.rank), (coordinates.rank,)]
    places = build.computed(f"place{number}", f"dace.int64({place})", operands, shape, "int64", axes=of_each)
    weights = None
    if weight is not None:
        weights = build.computed(f"weight{number}", weight, operands, shape, coordinates.dtype, axes=of_each)
    return AxisTaps(extent, places, weights, axes)


def add_flat_places(
    build: CanonicalFragment, taps: Sequence[AxisTaps], shape: Sequence[int], image: Placed | None = None
) -> Tensor:
    """Add the places in an image whose axes are one behind the other; negative where one of them is.

    Args:
        build: of the operator.
        taps: of each axis of the image.
        shape: of the array that is made.
        image: which of several images is meant, and its dimensions in that array.
    """
    names = operand_names(len(taps) + 1)
    flat = names[0]
    for name, axis in zip(names[1:], taps[1:], strict=False):
        flat = f"({flat}) * {axis.extent} + {name}"
    operands, axes = [each.places for each in taps], [each.axes for each in taps]
    if image is not None:
        flat = f"{names[-1]} * {prod(axis.extent for axis in taps)} + {flat}"
        operands.append(image[0])
        axes.append(image[1])
    is_inside = " and ".join(f"{name} >= 0" for name in names[: len(taps)])
    return build.computed("places", f"{flat} if {is_inside} else -1", operands, shape, "int64", axes=axes)


def add_weights(
    build: CanonicalFragment, taps: Sequence[AxisTaps], shape: Sequence[int], factor: Placed | None = None
) -> Tensor:
    """Add the weights of `add_flat_places`: the products of those along the axes, and of a factor."""
    given = [(each.weights, each.axes) for each in taps if each.weights is not None]
    operands, axes = zip(*(given if factor is None else [*given, factor]), strict=True)
    source = " * ".join(operand_names(len(operands)))
    return build.computed("weights", source, operands, shape, operands[0].dtype, axes=axes)
