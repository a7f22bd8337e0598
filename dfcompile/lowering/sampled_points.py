"""Points between the elements of an image: what is read along each of its axes becomes what a Sample reads."""

from collections.abc import Sequence

from msgspec import Struct

from dfcompile.lowering.canonical_fragment import CanonicalFragment
from dfcompile.lowering.expressions import operand_names
from dfcompile.lowering.tensor import Tensor


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


def add_flat_places(
    build: CanonicalFragment,
    taps: Sequence[AxisTaps],
    shape: Sequence[int],
    image: tuple[Tensor, tuple[int, ...]] | None = None,
) -> Tensor:
    """Add the places in an image whose axes are one behind the other; negative where one of them is.

    Args:
        build: of the operator.
        taps: of each axis of the image.
        shape: of the array that is made.
        image: which of several images is meant, and its dimensions in that array.
    """
    names = operand_names(len(taps) + 1)
    flat, elements = names[0], 1
    for name, axis in zip(names[1:], taps[1:], strict=False):
        flat = f"({flat}) * {axis.extent} + {name}"
    for axis in taps:
        elements *= axis.extent
    operands, axes = [each.places for each in taps], [each.axes for each in taps]
    if image is not None:
        flat = f"{names[-1]} * {elements} + {flat}"
        operands.append(image[0])
        axes.append(image[1])
    is_inside = " and ".join(f"{name} >= 0" for name in names[: len(taps)])
    places = build.array("places", shape, "int64")
    build.elementwise(f"{flat} if {is_inside} else -1", operands, places, axes=axes, step="places")
    return places


def add_weights(
    build: CanonicalFragment,
    taps: Sequence[AxisTaps],
    shape: Sequence[int],
    factor: tuple[Tensor, tuple[int, ...]] | None = None,
) -> Tensor:
    """Add the weights of `add_flat_places`: the products of those along the axes, and of a factor."""
    weighted = [(each.weights, each.axes) for each in taps if each.weights is not None]
    given = [*weighted, factor] if factor is not None else weighted
    operands, axes = [tensor for tensor, _ in given], [axes for _, axes in given]
    weights = build.array("weights", shape, operands[0].dtype)
    build.elementwise(" * ".join(operand_names(len(operands))), operands, weights, axes=axes, step="weights")
    return weights
