"""Micro-batches: a model runs in parts of a dimension, one after the other, each lowered and mapped as a model."""

from collections.abc import Callable, Iterator
from math import inf

from msgspec import Struct

_WORTH_IT = 1.05  # times what no lowering falls below; nearer to it, parts are not looked at
_IN_VAIN = 4  # sizes in a row that are not faster end the search


class Parts(Struct, frozen=True):
    """The parts that a model runs in.

    Attributes:
        dimension: of which each has some indices.
        size: how many indices a part has.
        count: of parts.
        proved_bytes: that every run of the whole model moves.
    """

    dimension: str
    size: int
    count: int
    proved_bytes: int


def sizes_of(extent: int) -> Iterator[int]:
    """Yield divisors of an extent, the smallest first, each at least twice the one before, without the extent.

    >>> list(sizes_of(36))
    [1, 2, 4, 9, 18]
    """
    least = 1
    for size in range(1, extent // 2 + 1):
        if size >= least and extent % size == 0:
            yield size
            least = 2 * size


def is_far(time_s: float, floor_s: float) -> bool:
    """Return whether a time is so far above what no lowering falls below that parts are worth a search."""
    return time_s > _WORTH_IT * floor_s


def fastest_size(extent: int, whole_s: float, floor_s: float, time_of: Callable[[int, float], float]) -> int:
    """Return the size of parts with which all of them take the least time; the extent if none is faster than the whole.

    Small parts leave elements idle, and large ones have too few or too large tasks: so sizes are looked at from the
    smallest on, until several in a row are no better, or it cannot get much better.

    Args:
        extent: of the dimension.
        whole_s: time of the whole.
        floor_s: what no lowering falls below.
        time_of: gives the time of all parts of a size, if it may be less than another one.
    """
    best_s, best, in_vain = whole_s, extent, 0
    for size in sizes_of(extent):
        if in_vain == _IN_VAIN or not is_far(best_s, floor_s):
            break
        found_s = time_of(size, best_s)
        if found_s < best_s:
            best_s, best, in_vain = found_s, size, 0
        elif found_s < inf and best != extent:
            in_vain += 1
    return best
