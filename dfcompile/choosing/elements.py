"""Processing elements on which equal tasks are put, many at a time."""

from msgspec import Struct

_Run = tuple[int, int]  # cycle when elements get free, and how many of them


class Placed(Struct, frozen=True):
    """Equal tasks on elements.

    Attributes:
        first: start of the first one.
        end: of the last one.
        cycles: of each.
        members: their number.
        sooner: how many of them have ended when those of the last round begin.
    """

    first: int
    end: int
    cycles: int
    members: int
    sooner: int


class Elements:
    """When processing elements get free: how many at which cycle; the clock does not go back."""

    def __init__(self, pes: int) -> None:
        self._free: list[_Run] = [(0, pes)]  # the cycles rise

    @property
    def first_free(self) -> int:
        """When the next element gets free."""
        return self._free[0][0]

    def place(self, now: int, members: int, cycles: int, limit: int | None = None) -> Placed:
        """Put equal tasks on the elements that get free first.

        Args:
            now: from where on tasks begin, these and all that are placed later.
            members: their number.
            cycles: of each.
            limit: tasks that do not begin before this later cycle are left, if some do.
        """
        self._wait_until(now)
        first = self._free[0][0]
        used, level = self._filled(members * cycles)
        # Each element ends one task from this level on and within the cycles of a task.
        left, ends = members, []
        for at in range(used):
            begin, count = self._free[at]
            rounds = -((begin - level) // cycles)
            ends.append((begin + rounds * cycles, rounds))
            left -= (rounds - 1) * count
        end = level
        for cycle, at in sorted([(cycle, at) for at, (cycle, _) in enumerate(ends)]):
            if left <= 0 and cycle > end:
                break
            end = cycle
            left -= self._free[at][1]
        if limit is not None and first < limit <= end - cycles:
            ends = [_before(limit, begin, cycles) for begin, _ in self._free if begin < limit]
            members = sum([rounds * self._free[at][1] for at, (_, rounds) in enumerate(ends)])
            end, left = max(ends)[0], 0
        return Placed(first, end, cycles, members, self._occupy(ends, end, -left, cycles))

    def _wait_until(self, now: int) -> None:
        """Let no element be free before a cycle."""
        past = 0
        for cycle, _ in self._free:
            if cycle > now:
                break
            past += 1
        if past > 1 or self._free[0][0] < now:
            self._free[:past] = [(now, sum([count for _, count in self._free[:past]]))]

    def _filled(self, work: int) -> tuple[int, int]:
        """Return how many runs of elements get work if it is divided like water, and up to which cycle it goes."""
        elements = area = used = 0
        for begin, count in self._free:
            if used and work + area <= begin * elements:
                break
            used, elements, area = used + 1, elements + count, area + begin * count
        return used, -(-(work + area) // elements)

    def _occupy(self, ends: list[_Run], end: int, spared: int, cycles: int) -> int:
        """Give tasks to each of the first runs of elements, one less where those would end after all others.

        Args:
            ends: when the last task of each element of a run ends, and how many tasks it has.
            end: when the last task of all ends.
            spared: elements that would end then too and have one less: those that get free last.
            cycles: of each task.

        Returns:
            How many tasks have ended when those of the last round begin.
        """
        free = dict(self._free[len(ends) :])
        sooner = 0
        for at in range(len(ends) - 1, -1, -1):
            count = self._free[at][1]
            cycle, rounds = ends[at]
            without = 0
            if cycle > end:
                without, rounds = count, rounds - 1
            elif cycle == end and spared:
                without = min(spared, count)
                spared -= without
            # Of an element all tasks but the last have ended, and that one too if it ends a whole round sooner.
            sooner += max(rounds - (end - cycle < cycles), 0) * count
            if without:
                free[cycle - cycles] = free.get(cycle - cycles, 0) + without
            if count > without:
                free[cycle] = free.get(cycle, 0) + count - without
        self._free = sorted(free.items())
        return sooner


def _before(limit: int, begin: int, cycles: int) -> _Run:
    """Return when the last task ends that begins on an element before a cycle, and how many do."""
    rounds = -((begin - limit) // cycles)
    return begin + rounds * cycles, rounds
