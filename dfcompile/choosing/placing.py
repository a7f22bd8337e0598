"""Families of tasks placed one after another, whole rounds over the elements at once."""

from bisect import insort
from collections.abc import Sequence
from heapq import heappop, heappush

from msgspec import Struct

from dfcompile.canonical_dag.extraction.families import MemberVolumes
from dfcompile.canonical_dag.extraction.flow import Flow
from dfcompile.records import replace

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


_LOOKED_AHEAD = 16  # parts of families that wait: among them is mostly one that is more urgent, or none is


class Producer(Struct, frozen=True):
    """A family that another one reads from.

    Attributes:
        number: of it.
        streams: whether it is not read from memory.
        members: of it.
        slices: groups of tasks of both that wait for one another alone: a task of the one streams to a task of the
            other, or an array in memory is in slices.
    """

    number: int
    streams: bool
    members: int
    slices: int


class Family(Struct, frozen=True):
    """A family of tasks.

    Attributes:
        tasks: cycles of each.
        longest: cycles of the longest one.
        shortest: cycles of the shortest one.
        least: cycles of all of them together, on all elements.
        producers: what it reads from.
    """

    tasks: MemberVolumes
    longest: int
    shortest: int
    least: int
    producers: tuple[Producer, ...]

    @classmethod
    def of(cls, flow: Flow, number: int, pes: int) -> "Family":
        """Look at a family of a flow that is to run on so many processing elements."""
        tasks = flow.task_cycles[number]
        longest = max(tasks.whole, tasks.last, 1)
        shortest = max(min(tasks.whole, tasks.last), 1)
        return cls(tasks, longest, shortest, longest, _producers(flow, number)).on(pes)

    def on(self, pes: int) -> "Family":
        """Return the family on another number of processing elements."""
        return replace(self, least=max(self.longest, -(-self.tasks.total // pes)))

    def through_memory(self) -> "Family":
        """Return the family where nothing streams."""
        stored = (replace(each, streams=False, slices=1 if each.streams else each.slices) for each in self.producers)
        return replace(self, producers=tuple(stored))


def _producers(flow: Flow, number: int) -> tuple[Producer, ...]:
    """Return the families that write what one reads."""
    members = flow.families[number].members
    found: dict[tuple[int, bool, int], Producer] = {}
    reads = ((read.array, flow.uses[read.array].stream_of(number, read)) for read in flow.families[number].scope.reads)
    for array, streams in dict.fromkeys((array, stream is not None) for array, stream in reads):
        in_slices = flow.slices.get(array)
        for producer, _ in flow.uses[array].writers:
            others = flow.families[producer].members
            slices = (others if others == members else 1) if streams else 1 if in_slices is None else in_slices.count
            if (producer, streams, slices) not in found:
                found[producer, streams, slices] = Producer(producer, streams, others, slices)
    return tuple(found.values())


_Ended = tuple[int, int]  # a cycle, and how many tasks of a family have ended by then


class Times:
    """Starts and ends of families."""

    def __init__(self, families: int) -> None:
        self.start, self.end = [0] * families, [0] * families
        self._sooner: list[_Ended] = [(0, 0)] * families  # without the last round over the elements

    def note(self, number: int, placed: Sequence[Placed]) -> None:
        """Note where the tasks of a family were put."""
        self.start[number], end = min(each.first for each in placed), max(each.end for each in placed)
        self.end[number] = end
        last = max(placed, key=lambda each: each.end)
        round_begins = [last.end - last.cycles] if last.sooner else []
        cycle = max([*round_begins, *(each.end for each in placed if each.end < end)], default=0)
        sooner = last.sooner + sum(each.members for each in placed if each.end <= cycle)
        self._sooner[number] = cycle, sooner

    def ready(self, producers: Sequence[Producer], cycles: int | None) -> int:
        """Return when a family can begin, or should, to end with those that it takes streams from.

        Args:
            producers: of what the family reads.
            cycles: of its tasks; ``None``: as early as it can.
        """
        return max([self._behind(each, self.end[each.number], cycles) for each in producers], default=0)

    def soon(self, producers: Sequence[Producer], members: int, cycles: int) -> _Ended:
        """Return how many tasks of a family can begin when, without waiting for the last rounds of producers."""
        begin, own = 0, members
        for each in producers:
            cycle, ended = self._sooner[each.number] if each.slices > 1 else (self.end[each.number], each.members)
            ready = ended * each.slices // each.members * own // each.slices
            begin, members = max(begin, self._behind(each, cycle, cycles)), min(members, ready)
        return begin, members

    def _behind(self, producer: Producer, end: int, cycles: int | None) -> int:
        """Return when tasks can begin that read what one family has written up to a cycle."""
        if not producer.streams:
            return end
        begun = self.start[producer.number] + 1
        return begun if cycles is None else max(begun, end + 1 - cycles)


class _Part(Struct):
    """Equal tasks of a family that can begin at the same cycle, those that are not placed yet."""

    family: int
    ready: int
    members: int
    cycles: int


class Placing:
    """Families placed so far, and parts of families that wait for their cycle, or for elements."""

    def __init__(self, order: Sequence[int], families: Sequence[Family], pes: int) -> None:
        self.times = Times(len(families))
        self._families, self._elements, self.rank = families, Elements(pes), _ranks(order, families)
        producers = [{other.number for other in each.producers} for each in families]
        self._missing = list(map(len, producers))
        self._consumers: list[list[int]] = [[] for _ in families]
        for number, others in enumerate(producers):
            for other in others:
                self._consumers[other].append(number)
        self._unplaced = [each.tasks.members for each in families]
        self._placed: list[list[Placed]] = [[] for _ in families]
        self._waiting: list[tuple[int, int, _Part]] = []  # by the cycle when they can begin, the first one last
        self._pool: list[tuple[int, int, _Part]] = []  # by rank
        self._parts = 0

    def run(self) -> None:
        """Place all: the clock stands where the next element gets free."""
        for number, missing in enumerate(self._missing):
            if not missing:
                self._admit(number)
        waiting, pool = self._waiting, self._pool
        while waiting or pool:
            now = self._elements.first_free
            if not pool:
                now = max(now, waiting[-1][2].ready)
            while waiting and waiting[-1][2].ready <= now:
                _, order, part = waiting.pop()
                heappush(pool, (self.rank[part.family], order, part))
            rank, order, part = heappop(pool)
            coming = waiting[
                : -_LOOKED_AHEAD - 1 : -1
            ]  # the next part that is more urgent, of those that can begin next
            limit = next((each.ready for _, _, each in coming if self.rank[each.family] < rank), None)
            placed = self._elements.place(now, part.members, part.cycles, limit)
            self._placed[part.family].append(placed)
            part.members -= placed.members
            if part.members:
                heappush(pool, (rank, order, part))
            self._note(part.family, placed.members)

    def _note(self, number: int, members: int) -> None:
        """Note that tasks of a family have been placed; after the last let those wait that need nothing more."""
        self._unplaced[number] -= members
        if self._unplaced[number]:
            return
        self.times.note(number, self._placed[number])
        for consumer in self._consumers[number]:
            self._missing[consumer] -= 1
            if not self._missing[consumer]:
                self._admit(consumer)

    def _admit(self, number: int) -> None:
        """Let the tasks of a family wait: behind the last round of a producer or not, long ones and short ones."""
        family = self._families[number]
        tasks = family.tasks
        ready = self.times.ready(family.producers, family.longest)
        soon = self.times.soon(family.producers, tasks.members, family.longest)
        for begin, members in (soon, (ready, tasks.members - soon[1])):
            shorter = 0 if tasks.is_even else members // tasks.row
            for count, cycles in ((members - shorter, max(tasks.whole, 1)), (shorter, max(tasks.last, 1))):
                if count:
                    self._parts += 1
                    insort(self._waiting, (-begin, self._parts, _Part(number, begin, count, cycles)))


def _ranks(order: Sequence[int], families: Sequence[Family]) -> list[int]:
    """Return the places of the families by what follows each of them at least, itself included: the longest first."""
    left = [each.least for each in families]
    for number in reversed(order):
        for other in families[number].producers:
            beside = families[number].least if other.streams else 0
            before = max(families[other.number].least - beside, 0)
            left[other.number] = max(left[other.number], before + left[number])
    ranks = [0] * len(families)
    for rank, number in enumerate(sorted(range(len(families)), key=lambda number: -left[number])):
        ranks[number] = rank
    return ranks
