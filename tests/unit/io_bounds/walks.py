"""Einsums tiled by force: every tiling, every loop order, and a walk that counts the words that move.

Nothing here is shared with `dfcompile.io_bounds` but what the rules are called. A tile's words are the bits of an int.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from math import prod

from dfcompile.io_bounds.tilings import Rules, Tiles

Ranges = Sequence[range]  # of each rank in a tile


@dataclass(frozen=True)
class WalkedTensor:
    """A tensor as boxes: the words that a tile needs, by the ranges of the ranks."""

    box: Callable[[Ranges], tuple[range, ...]]  # of the tensor's own axes
    shape: tuple[int, ...]
    is_result: bool = False
    units: int = 1  # that a word takes, of the buffer and of what moves


@dataclass(frozen=True)
class Walked:
    """An einsum to be walked over."""

    extents: tuple[int, ...]
    tensors: tuple[WalkedTensor, ...]


def tiles(extent: int, *, divisors: bool) -> list[int]:
    """Return the tile sizes of an extent."""
    return [tile for tile in range(1, extent + 1) if not divisors or extent % tile == 0]


def points(einsum: Walked, rules: Rules) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """Yield the buffer size, the least traffic over all orders, and the tiling, for every tiling."""
    divisors = rules.tiles is Tiles.DIVISORS
    for tiling in product(*(tiles(extent, divisors=divisors) for extent in einsum.extents)):
        ranges = [
            [range(start, min(start + tile, extent)) for start in range(0, extent, tile)]
            for extent, tile in zip(einsum.extents, tiling, strict=True)
        ]
        trips = [len(parts) for parts in ranges]
        real = [rank for rank, count in enumerate(trips) if count > 1]
        least = None
        places = [_Places(tensor, ranges) for tensor in einsum.tensors]
        for order in permutations(real):
            moved = sum(
                place.tensor.units * _walk(place, order, trips, elides=rules.elides_first_read) for place in places
            )
            least = moved if least is None else min(least, moved)
        assert least is not None
        yield sum(place.tensor.units * place.footprint for place in places), least, tiling


class _Places:
    """The boxes of a tensor for all iterations."""

    def __init__(self, tensor: WalkedTensor, ranges: Sequence[Sequence[range]]) -> None:
        self.tensor = tensor
        boxes: list[tuple[range, ...]] = []
        self.masks: dict[tuple[int, ...], int] = {}
        for place in product(*(range(len(parts)) for parts in ranges)):
            box = tensor.box([parts[number] for parts, number in zip(ranges, place, strict=True)])
            clipped = tuple(
                range(max(0, side.start), max(0, side.start, min(size, side.stop)))
                for side, size in zip(box, tensor.shape, strict=True)
            )
            boxes.append(box)
            self.masks[place] = _mask(clipped, tensor.shape)
        self.footprint = prod(
            max(len(range(max(0, box[axis].start), min(size, box[axis].stop))) for box in boxes)
            for axis, size in enumerate(tensor.shape)
        )
        self.whole = 0
        for mask in self.masks.values():
            self.whole |= mask


def _mask(box: tuple[range, ...], shape: tuple[int, ...]) -> int:
    mask = 0
    for place in product(*box):
        number = 0
        for index, size in zip(place, shape, strict=True):
            number = number * size + index
        mask |= 1 << number
    return mask


def _walk(places: _Places, order: Sequence[int], trips: Sequence[int], *, elides: bool) -> int:
    """Return the words that a tensor moves; ``order`` has the outermost loop first."""
    moved, before = 0, 0
    for numbers in product(*(range(trips[rank]) for rank in order)):
        place = [0] * len(trips)
        for rank, number in zip(order, numbers, strict=True):
            place[rank] = number
        mask = places.masks[tuple(place)]
        moved += (mask & ~before).bit_count()
        before = mask
    if not places.tensor.is_result:
        return moved
    return 2 * moved - (places.whole.bit_count() if elides else 0)


def front(found: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the points that no other beats, by ascending size."""
    kept: list[tuple[int, int]] = []
    for size, traffic in sorted(found):
        if not kept or traffic < kept[-1][1]:
            kept.append((size, traffic))
    return kept
