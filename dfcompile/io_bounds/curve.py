"""Curves: the least traffic for every buffer size, as sorted columns of exact integers; and tiles that are tried."""

from collections.abc import Sequence
from enum import StrEnum, unique
from functools import cache
from math import isqrt
from typing import TypeVar, assert_never

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from dfcompile.distinct import distinct
from dfcompile.errors import UserError

Int64 = npt.NDArray[np.int64]

MOST_WORDS = 2**62  # a sum of two still fits a column
_SORTED_AT_ONCE = 4096  # points; above, what is clearly dominated goes first
_BIN_SHIFT = 49  # of the bits of a float: its exponent and three bits of its fraction stay


class Curve(Struct, frozen=True, eq=False):
    """A step-wise falling function: with ``sizes[i]`` words of buffer, ``traffic[i]`` words move.

    Attributes:
        sizes: of the buffer, ascending, in words, shape [points].
        traffic: to and from the memory behind, descending, in words, shape [points].
        tilings: tile of each rank that reaches the point, shape [points, ranks]; no columns where none is kept.
    """

    sizes: Int64
    traffic: Int64
    tilings: Int64

    @property
    def points(self) -> int:
        """Number of steps."""
        return len(self.sizes)

    @property
    def least_size(self) -> int:
        """Words of the smallest buffer that suffices at all."""
        return int(self.sizes[0])

    @property
    def least_traffic(self) -> int:
        """Words that move however large the buffer is."""
        return int(self.traffic[-1])

    @property
    def maximal_effectual_size(self) -> int:
        """Words of the smallest buffer with which no larger one saves anything [huang24]."""
        return int(self.sizes[-1])

    def at(self, size: int) -> int | None:
        """Return the traffic with a buffer of ``size`` words; ``None`` if the buffer is too small for any tile."""
        step = self.step_at(size)
        return None if step < 0 else int(self.traffic[step])

    def step_at(self, size: int) -> int:
        """Return the number of the point that holds at ``size``; -1 below the least size."""
        return int(np.searchsorted(self.sizes, size, side="right")) - 1

    def size_within(self, traffic: int) -> int | None:
        """Return the smallest buffer with which at most ``traffic`` words move; ``None`` if there is none."""
        step = int(np.searchsorted(-self.traffic, -traffic, side="left"))
        return None if step == self.points else int(self.sizes[step])

    def times(self, count: int) -> "Curve":
        """Return the curve of ``count`` equal operations, one after the other in the same buffer."""
        return _curve(self.sizes, self.traffic * count, self.tilings)

    def scaled(self, units: int) -> "Curve":
        """Return the curve in units of which a word takes so many."""
        return _curve(self.sizes * units, self.traffic * units, self.tilings)

    def plus(self, words: int) -> "Curve":
        """Return the curve with a constant traffic more, or less if it is negative."""
        return _curve(self.sizes, self.traffic + words, self.tilings)

    def shifted(self, words: int) -> "Curve":
        """Return the curve of the same operation beside ``words`` that the buffer holds for others."""
        return _curve(self.sizes + words, self.traffic, self.tilings)


class Slope(Struct, frozen=True, eq=False):
    """A curve as it is drawn.

    Attributes:
        name: of what moves, and what is held.
        curve: in bytes.
        operations: additions and multiplications.
        cloud: of all tilings: bytes of buffer and bytes that move, shape [2, tilings]; empty if nobody asked.
    """

    name: str
    curve: Curve
    operations: int
    cloud: Int64 = np.empty((2, 0), dtype=np.int64)


def front(sizes: Int64, traffic: Int64, tilings: Int64 | None = None) -> Curve:
    """Return the points that no other beats in both, as a curve.

    Args:
        sizes: of the buffer, in any order; of any shape, each element is a point.
        traffic: with them; both may be broadcast.
        tilings: of the points, shape [points, ranks].
    """
    sizes, traffic = (column.ravel() for column in np.broadcast_arrays(sizes, traffic))
    kept = front_numbers(sizes, traffic)
    none = np.zeros((len(kept), 0), dtype=np.int64)
    return _curve(sizes[kept], traffic[kept], none if tilings is None else tilings[kept])


def front_numbers(sizes: Int64, traffic: Int64) -> Int64:
    """Return the numbers of the points that no other beats in both, by ascending size; of equal points the first."""
    numbers = np.arange(len(sizes), dtype=np.int64)
    if len(sizes) > _SORTED_AT_ONCE:
        # which points are below all in bins of smaller sizes; the bins are of floats, whose bits are ordered
        bins = sizes.astype(np.float64).view(np.int64) >> _BIN_SHIFT
        bins -= bins.min()
        least = np.full(int(bins.max()) + 2, np.iinfo(np.int64).max)
        np.minimum.at(least, bins + 1, traffic)
        numbers = numbers[np.asarray(traffic < np.minimum.accumulate(least)[bins])]
    order = numbers[np.lexsort((traffic[numbers], sizes[numbers]))]
    falling = traffic[order]
    is_kept = np.ones(len(order), dtype=np.bool_)
    is_kept[1:] = falling[1:] < np.minimum.accumulate(falling)[:-1]
    return order[is_kept]


def least(curves: Sequence[Curve]) -> Curve:
    """Return what the best of several gives at every size; tilings are kept if all have the same ranks."""
    widths = {curve.tilings.shape[1] for curve in curves}
    return front(
        np.concatenate([curve.sizes for curve in curves]),
        np.concatenate([curve.traffic for curve in curves]),
        np.concatenate([curve.tilings for curve in curves]) if len(widths) == 1 else None,
    )


def total(curves: Sequence[Curve]) -> Curve:
    """Return the curve of operations that run one after the other, each with the whole buffer."""
    sizes = distinct(np.concatenate([curve.sizes for curve in curves]))
    sizes = sizes[sizes >= max(curve.least_size for curve in curves)]
    traffic = np.zeros(len(sizes), dtype=np.int64)
    for curve in curves:
        traffic += curve.traffic[np.searchsorted(curve.sizes, sizes, side="right") - 1]
    return front(sizes, traffic)


def constant(traffic: int, size: int) -> Curve:
    """Return the curve of an operation that moves ``traffic`` words with any buffer of ``size`` words and more."""
    return front(np.array([size], dtype=np.int64), np.array([traffic], dtype=np.int64))


def check_words(where: str, words: int) -> None:
    """Check that figures of that many words fit the columns.

    Raises:
        UserError: they do not.
    """
    if words >= MOST_WORDS:
        raise UserError(f"{where}: up to {words:.3g} words of traffic against {MOST_WORDS:.3g} at most")


def _curve(sizes: Int64, traffic: Int64, tilings: Int64) -> Curve:
    for column in (sizes, traffic, tilings):
        column.setflags(write=False)
    return Curve(sizes, traffic, tilings)


@unique
class Tiles(StrEnum):
    """Which tile sizes are tried."""

    INTEGER = "integer"  # all; the last tile of a rank may be smaller
    DIVISORS = "divisors"  # those alone that divide the extent, as in [huang24]


@unique
class Halo(StrEnum):
    """Which words of a window's box a tile finds in the buffer from the tile before."""

    TRUE = "true"  # all that are in both boxes; padding is never moved
    FORGET = "forget"  # none, unless the window moved as in the move before, as the tool of [huang24] counts


Words = TypeVar("Words", int, Int64)


class Rules(Struct, frozen=True):
    """How traffic is counted.

    Attributes:
        tiles: sizes that are tried.
        halo: what overlapping boxes save.
        elides_first_read: whether the first visit to a tile of the result reads nothing.
    """

    tiles: Tiles = Tiles.INTEGER
    halo: Halo = Halo.TRUE
    elides_first_read: bool = True

    def result_words(self, moved: Words, whole: int) -> Words:
        """Return what a result costs of whose tiles ``moved`` words are written, ``whole`` of them first."""
        return 2 * moved - (whole if self.elides_first_read else 0)


@cache
def tile_sizes(extent: int, tiles: Tiles) -> Int64:
    """Return the tile sizes that matter, ascending: of those with equal trip counts the smallest.

    >>> tile_sizes(10, Tiles.INTEGER).tolist(), tile_sizes(10, Tiles.DIVISORS).tolist()
    ([1, 2, 3, 4, 5, 10], [1, 2, 5, 10])
    """
    root = isqrt(extent)
    match tiles:
        case Tiles.INTEGER:
            trips = {*range(1, -(-extent // (root + 1)) + 1), *(-(-extent // tile) for tile in range(1, root + 1))}
            found = sorted({-(-extent // count) for count in trips})
        case Tiles.DIVISORS:
            small = [tile for tile in range(1, root + 1) if extent % tile == 0]
            found = sorted({*small, *(extent // tile for tile in small)})
        case _:
            assert_never(tiles)
    sizes = np.array(found, dtype=np.int64)
    sizes.setflags(write=False)
    return sizes


def trips_of(extent: int, sizes: Int64) -> Int64:
    """Return how many tiles of each size cover an extent."""
    return -(-extent // sizes)
