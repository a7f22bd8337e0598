"""Micro-batches: a model runs on some indices of a dimension at a time, on groups of processing elements."""

from collections.abc import Callable, Iterator, Sequence
from math import inf

from dfcompile import dfmodel_backend as backend
from dfcompile.options import MicroBatches

_WORTH_IT = 1.1  # a model within this factor of the lower bound of all lowerings is not tried in micro-batches
_ENOUGH = 1.05  # within this factor of it no others are tried
_GROUP_FACTOR = 4  # from one number of groups that is tried to the next


class RunMicroBatches(MicroBatches, frozen=True, kw_only=True):
    """The micro-batches that a model runs in.

    Attributes:
        count: number of micro-batches.
        pes: of the chip, over all groups.
        system: with the whole chip.
        proved_bytes: of DRAM traffic, at least, of the whole model however it runs.
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
    """Yield divisors of an extent that are smaller than it, ascending, each at least twice the one before.

    >>> list(sizes_of(36))
    [1, 2, 4, 9, 18]
    """
    least = 1
    for size in range(1, extent // 2 + 1):
        if size >= least and extent % size == 0:
            yield size
            least = 2 * size


def groups_of(count: int, pes: int) -> tuple[int, ...]:
    """Return the numbers of groups to try for so many micro-batches; fewer groups would each have to run more.

    >>> groups_of(18, 1024)
    (1, 4, 9, 18)
    """
    numbers, most = [1], 1
    while most < min(count, pes):
        most = min(most * _GROUP_FACTOR, count, pes)
        rounds = -(-count // most)
        numbers.append(-(-count // rounds))
    return tuple(dict.fromkeys(numbers))


Time = Callable[[int, int, float], float]  # size, groups, limit -> seconds of all; may be inf from the limit on


class FastestMicroBatches:
    """The search for the size of micro-batches, and the groups, with which all of them take the least time.

    In small ones and small groups fewer processing elements wait for one another; in large ones more share an array.

    Attributes:
        best: size and groups; None: none are faster than the whole.
    """

    def __init__(self, extent: int, groups: Callable[[int], Sequence[int]], limits: tuple[float, float], time: Time):
        """Prepare the search.

        Args:
            extent: of the dimension.
            groups: gives the numbers of groups to try for a size.
            limits: seconds that the whole takes, and a lower bound over all lowerings.
            time: see `Time`; infinite for a size that cannot run.
        """
        self._groups = [(size, groups(size)) for size in sizes_of(extent)]
        self._least_s, self._floor_s = limits
        self._time = time
        self._known: dict[tuple[int, int], float] = {}
        self.best: tuple[int, int] | None = None

    def search(self) -> tuple[int, int] | None:
        """Return the best: a descent from the smallest ones in one group, to a faster neighbour while there is one."""
        if self._least_s <= _WORTH_IT * self._floor_s:
            return None
        for start in range(len(self._groups)):
            place, place_s = (start, 0), self._time_at((start, 0))
            while True:
                fastest = min(self._neighbours(*place), key=self._time_at, default=place)
                if self._time_at(fastest) >= place_s:
                    break
                place, place_s = fastest, self._time_at(fastest)
            if self.best is not None:
                break
        return self.best

    def _time_at(self, place: tuple[int, int]) -> float:
        """Return the time of a size and groups, by position; infinite if it is not tried as the best is good enough."""
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
