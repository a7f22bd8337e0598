"""Tiles: the sizes into which a rank may be cut, and what is counted of their traffic."""

from enum import StrEnum, unique
from functools import cache
from math import isqrt
from typing import TypeVar, assert_never

import numpy as np
from msgspec import Struct

from dfcompile.io_bounds.curve import Int64


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
