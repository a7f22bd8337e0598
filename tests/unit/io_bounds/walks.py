"""Einsums tiled by force: every tiling, every loop order, and a walk that counts the words that move.

Nothing here is shared with `dfcompile.io_bounds` but what the rules are called. A tile's words are the bits of an int.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from math import prod

from dfcompile.io_bounds.curve import Halo, Rules, Tiles

Ranges = Sequence[range]  # of each rank in a tile


@dataclass(frozen=True)
class WalkedTensor:
    """A tensor as boxes: the words that a tile needs, by the ranges of the ranks."""

    box: Callable[[Ranges], tuple[range, ...]]  # of the tensor's own axes
    shape: tuple[int, ...]
    steps: Callable[[Sequence[int]], tuple[int, ...]]  # by tile sizes per rank: by how much each rank moves the box
    axis_of_rank: tuple[int, ...]  # the axis that a rank moves, -1 for none
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
    divisors, forgets = rules.tiles is Tiles.DIVISORS, rules.halo is Halo.FORGET
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
                place.tensor.units
                * _walk(place, order, trips, tiling, (forgets, divisors), elides=rules.elides_first_read)
                for place in places
            )
            least = moved if least is None else min(least, moved)
        assert least is not None
        yield sum(place.tensor.units * place.footprint for place in places), least, tiling


class _Places:
    """The boxes of a tensor for all iterations."""

    def __init__(self, tensor: WalkedTensor, ranges: Sequence[Sequence[range]]) -> None:
        self.tensor = tensor
        self.boxes: dict[tuple[int, ...], tuple[range, ...]] = {}
        self.masks: dict[tuple[int, ...], int] = {}
        for place in product(*(range(len(parts)) for parts in ranges)):
            box = tensor.box([parts[number] for parts, number in zip(ranges, place, strict=True)])
            clipped = tuple(
                range(max(0, side.start), max(0, side.start, min(size, side.stop)))
                for side, size in zip(box, tensor.shape, strict=True)
            )
            self.boxes[place] = box
            self.masks[place] = _mask(clipped, tensor.shape)
        self.footprint = prod(
            max(len(range(max(0, box[axis].start), min(size, box[axis].stop))) for box in self.boxes.values())
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


def _walk(
    places: _Places,
    order: Sequence[int],
    trips: Sequence[int],
    tiling: Sequence[int],
    rule: tuple[bool, bool],
    *,
    elides: bool,
) -> int:
    """Return the words that a tensor moves; ``order`` has the outermost loop first.

    The rule is whether the tool's is taken, and whether it is as it is, also where it finds what is not there.
    """
    forgets, as_it_is = rule
    tensor, moved, before = places.tensor, 0, 0
    steps = tensor.steps(tiling)
    remembered: tuple[int, ...] | None = None
    previous: list[int] | None = None
    for numbers in product(*(range(trips[rank]) for rank in order)):
        place = [0] * len(trips)
        for rank, number in zip(order, numbers, strict=True):
            place[rank] = number
        mask = places.masks[tuple(place)]
        if not forgets or tensor.is_result:
            moved += (mask & ~before).bit_count()
        elif previous is None:
            moved += mask.bit_count()
        else:
            vector = _vector(tensor, order, previous, place, steps)
            kept = mask if not any(vector) else _covered(places, tuple(place), vector, tiling)
            if remembered is None:
                remembered = vector  # the first advance is the innermost loop's; the tool returns to it at once
            there = kept if as_it_is else kept & before
            moved += (mask & ~(there if vector == remembered else 0)).bit_count()
        before, previous = mask, place
    if not tensor.is_result:
        return moved
    return 2 * moved - (places.whole.bit_count() if elides else 0)


def _vector(
    tensor: WalkedTensor, order: Sequence[int], previous: Sequence[int], place: Sequence[int], steps: Sequence[int]
) -> tuple[int, ...]:
    """Return by how much the tool takes the box to move: a loop that begins anew goes back by one step."""
    vector = [0] * len(tensor.shape)
    for rank in order:
        axis = tensor.axis_of_rank[rank]
        if axis >= 0 and place[rank] != previous[rank]:
            vector[axis] += steps[rank] if place[rank] > previous[rank] else -steps[rank]
    return tuple(vector)


def _covered(places: _Places, place: tuple[int, ...], vector: Sequence[int], tiling: Sequence[int]) -> int:
    """Return the words of a box that a whole tile covers which lies one vector back."""
    tensor = places.tensor
    whole = tensor.box([range(tile) for tile in tiling])
    box = places.boxes[place]
    covered = tuple(
        range(max(side.start, side.start - by), max(side.start, min(side.stop, side.start - by + len(full))))
        for side, by, full in zip(box, vector, whole, strict=True)
    )
    return _mask(covered, tensor.shape)


def front(found: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the points that no other beats, by ascending size."""
    kept: list[tuple[int, int]] = []
    for size, traffic in sorted(found):
        if not kept or traffic < kept[-1][1]:
            kept.append((size, traffic))
    return kept
