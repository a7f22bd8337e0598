"""Formats whose elements share scales in groups."""

from collections.abc import Sequence

from msgspec import Struct

from dfcompile.language_models.formats import FORMATS, NumberFormat
from dfcompile.language_models.quantisation.keys import Place

MOST_BITS = 16
LARGEST_GROUP = 2**20
FP32_BITS, FP16_BITS = 32, 16
FP8, INT8 = FORMATS["fp8"], FORMATS["int8"]
_NARROW = {16: "nvfp4", 32: "mxfp4"}  # FP4, by the elements that share a scale of 8 bits


class Recipe(Struct, frozen=True):
    """What a named algorithm makes of a matrix and of what is multiplied with it.

    Attributes:
        kind: of a weight, ``int`` or ``fp``.
        bits: of a weight; 0: as the file says.
        group: elements that share a scale, unless the file says it; 0: a row or the tensor.
        scale_bits: of a scale; 0: of the configuration's dtype.
        zero_bits: of a zero point beside a scale.
        activations: none where they stay as they are.
    """

    kind: str
    bits: int
    group: int = 0
    scale_bits: int = 0
    zero_bits: int = 0
    activations: NumberFormat | None = None


def scaled(kind: str, bits: int, group: int, scale_bits: int, zero_bits: int = 0) -> NumberFormat:
    """Return a format of integers or floating-point numbers.

    Args:
        kind: ``int`` or ``fp``.
        bits: of an element.
        group: elements that share a scale; 0: a row, a column or the whole tensor, whose scales are not counted.
        scale_bits: of a scale.
        zero_bits: of the zero point that stands beside a scale of integers.
    """
    name = f"{kind}{bits}"
    if name == "fp4" and scale_bits == 8:
        name = _NARROW.get(group, name)
    if not group:
        return NumberFormat(name, bits)
    return NumberFormat(name, bits, group, scale_bits + (zero_bits if kind == "int" else 0))


def width_of(bits: int, place: Place, among: Sequence[int] = range(1, MOST_BITS + 1)) -> int:
    """Return the bits of an element.

    Raises:
        UserError: no format has so many.
    """
    if bits not in among:
        shown = f"{among[0]} to {among[-1]}" if isinstance(among, range) else ", ".join(map(str, among))
        raise place.wrong(bits, f"{shown} bits")
    return bits


def group_of(size: int | None, place: Place) -> int:
    """Return the elements that share a scale; 0 where none or -1 is said: a row, a column or the tensor.

    Raises:
        UserError: another number.
    """
    if size is None or size == -1:
        return 0
    if not 1 <= size <= LARGEST_GROUP:
        raise place.wrong(size, f"1 to {LARGEST_GROUP:,} elements, or -1")
    return size


def block_of(extents: Sequence[int], place: Place) -> int:
    """Return the elements of a block of two extents, which share a scale.

    Raises:
        UserError: there are not two of them, or no positive ones.
    """
    if len(extents) != 2 or min(extents) < 1:
        raise place.wrong(list(extents), "two positive extents")
    return group_of(extents[0] * extents[1], place)
