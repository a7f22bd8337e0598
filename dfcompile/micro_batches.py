"""Micro-batches: a model runs on some indices of a dimension after others, on groups of processing elements."""

from collections.abc import Callable, Iterator, Sequence
from math import inf

from dfcompile import dfmodel_backend as backend
from dfcompile.options import MicroBatches

_WORTH_IT = 1.1  # times what no lowering falls below; nearer to it, micro-batches are not looked at
_ENOUGH = 1.05  # times it; nearer to it, no others are
_TIMES_AS_MANY = 4  # groups, from one number that is looked at to the next


class RunMicroBatches(MicroBatches, frozen=True, kw_only=True):
    """The micro-batches that a model runs in.

    Attributes:
        count: of them.
        pes: of the chip.
        system: with all of it.
        proved_bytes: that every run of the whole model moves.
    """

    count: int
    pes: int
    system: backend.System
    proved_bytes: int

    @property
    def rounds(self) -> int:
        """How many micro-batches a group runs, at most."""
        return -(-self.count // self.at_once)


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


def groups_of(count: int, pes: int) -> tuple[int, ...]:
    """Return numbers of groups that so many micro-batches are run on: the fewest with which each runs as few.

    >>> groups_of(18, 1024)
    (1, 4, 9, 18)
    """
    found, most = [1], 1
    while most < min(count, pes):
        most = min(most * _TIMES_AS_MANY, count, pes)
        rounds = -(-count // most)
        found.append(-(-count // rounds))
    return tuple(dict.fromkeys(found))


Time = Callable[[int, int, float], float]  # of all of a size on so many groups, if it may be less than another


class FastestMicroBatches:
    """The search for the size of micro-batches, and the groups, with which all of them take the least time.

    Of small ones and small groups fewer elements wait for one another; in large ones arrays are shared.

    Attributes:
        best: size and groups; None: the whole is not slower than any.
    """

    def __init__(self, extent: int, groups: Callable[[int], Sequence[int]], limits: tuple[float, float], time: Time):
        """Begin.

        Args:
            extent: of the dimension.
            groups: numbers of them to look at for a size.
            limits: time of the whole, and what no lowering falls below.
            time: see `Time`; infinite for a size that there is not.
        """
        self._groups = [(size, groups(size)) for size in sizes_of(extent)]
        self._least_s, self._floor_s = limits
        self._time = time
        self._known: dict[tuple[int, int], float] = {}
        self.best: tuple[int, int] | None = None

    def found(self) -> tuple[int, int] | None:
        """Return the best: from the smallest micro-batches in one group on, a step at a time while that is faster."""
        if self._least_s <= _WORTH_IT * self._floor_s:
            return None
        for start in range(len(self._groups)):
            at, now_s = (start, 0), self._of((start, 0))
            while True:
                nearest = min(self._neighbours(*at), key=self._of, default=at)
                if self._of(nearest) >= now_s:
                    break
                at, now_s = nearest, self._of(nearest)
            if self.best is not None:
                break
        return self.best

    def _of(self, place: tuple[int, int]) -> float:
        """Return the time at a place, infinite where it is not looked at: the best is hardly to be beaten."""
        if place not in self._known and self._least_s > _ENOUGH * self._floor_s:
            size, groups = self._groups[place[0]]
            chosen = size, groups[place[1]]
            self._known[place] = self._time(*chosen, self._least_s)
            if self._known[place] < self._least_s:
                self._least_s, self.best = self._known[place], chosen
        return self._known.get(place, inf)

    def _neighbours(self, size: int, groups: int) -> Iterator[tuple[int, int]]:
        most = len(self._groups[size][1])
        yield from ((size, other) for other in (groups + 1, groups - 1) if 0 <= other < most)
        for other in (size + 1, size - 1):
            if 0 <= other < len(self._groups):
                yield other, min(groups, len(self._groups[other][1]) - 1)
