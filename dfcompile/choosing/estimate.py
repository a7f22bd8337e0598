"""What families of tasks take on a number of processing elements, estimated without looking at single tasks."""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from dfcompile.canonical_dag.extraction.flow import Flow


class Estimate(Struct, frozen=True):
    """An estimate of the schedule of a flow.

    Attributes:
        cycles: until the last task has ended.
        bound_cycles: what every schedule takes at least: a critical path on which families share all elements.
        work_cycles: of all tasks.
        tasks: their number.
    """

    cycles: int
    bound_cycles: int
    work_cycles: int
    tasks: int


def estimate(flow: Flow, pes: int) -> Estimate:
    """Place the families one after another, each as early as it can, its tasks in turn on the elements that are free.

    A family that takes a stream begins early enough to end with its producer, one past memory after all of it.

    Args:
        flow: families, and which of their reads are streams.
        pes: number of processing elements P.
    """
    elements = Elements(pes)
    planned, least = _Times(len(flow.families)), _Times(len(flow.families))
    total = tasks = 0
    for number in flow.order:
        members, work = flow.families[number].members, flow.work(number)
        producers = tuple(_producers(flow, number))
        cycles = max(-(-work // members), 1)
        ready = planned.ready(producers, cycles)
        planned.start[number], planned.end[number] = elements.place(ready, members, cycles)
        begin, last = least.ready(producers, None), least.last(producers)
        least.start[number] = begin
        least.end[number] = max(begin + max(cycles, -(-work // pes)), last)
        total, tasks = total + work, tasks + members
    bound = max(-(-total // pes), *least.end) if least.end else 0
    return Estimate(max(planned.end, default=0), bound, total, tasks)


class _Times:
    """Starts and ends of families."""

    def __init__(self, families: int) -> None:
        self.start, self.end = [0] * families, [0] * families

    def ready(self, producers: Sequence[tuple[int, bool]], cycles: int | None) -> int:
        """Return when a family can begin, or should, to end with those that it takes streams from.

        Args:
            producers: of what the family reads, and whether it comes as a stream.
            cycles: of its tasks; ``None``: as early as it can.
        """
        ready = 0
        for producer, streams in producers:
            begun = self.start[producer] + 1
            if cycles is not None:
                begun = max(begun, self.end[producer] + 1 - cycles)
            ready = max(ready, begun if streams else self.end[producer])
        return ready

    def last(self, producers: Sequence[tuple[int, bool]]) -> int:
        """Return when the last elements of streams have gone through a family that has such producers."""
        return max((self.end[producer] + 1 for producer, streams in producers if streams), default=0)


def _producers(flow: Flow, number: int) -> Iterator[tuple[int, bool]]:
    """Yield the families that write what one reads, and whether it comes as a stream."""
    for read in flow.families[number].scope.reads:
        use = flow.uses[read.array]
        streams = use.stream_of(number, read) is not None
        for producer, _ in use.writers:
            yield producer, streams


class Elements:
    """When processing elements get free: runs of neighbours that get free in one cycle, mostly a few."""

    def __init__(self, pes: int) -> None:
        self._runs = [(0, pes)]  # cycle and number of elements

    def place(self, ready: int, members: int, cycles: int) -> tuple[int, int]:
        """Put equal tasks on elements, none before a cycle; return the first start and the last end.

        Args:
            ready: when the tasks can begin.
            members: their number.
            cycles: of each.
        """
        begins = {max(free, ready): 0 for free, _ in self._runs}
        for free, count in self._runs:
            begins[max(free, ready)] += count
        first, rounds = min(begins), cycles * -(-members // sum(begins.values()))
        low, high = first + rounds, max(begins) + rounds
        while low < high:  # the least cycle by which all of them can have ended
            middle = (low + high) // 2
            if _ended(begins, middle, cycles) >= members:
                high = middle
            else:
                low = middle + 1
        self._occupy(ready, cycles, low, _ended(begins, low, cycles) - members)
        return first, low

    def _occupy(self, ready: int, cycles: int, end: int, surplus: int) -> None:
        """Give each element the tasks that end up to a cycle, some of those that end last a task less, the first."""
        runs, self._runs = self._runs, []
        for free, count in runs:
            begin = max(free, ready)
            tasks = max((end - begin) // cycles, 0)
            last = begin + tasks * cycles
            spared = min(surplus, count) if tasks and last == end else 0
            surplus -= spared
            self._add(last - cycles if tasks > 1 else free, spared)
            self._add(last if tasks else free, count - spared)

    def _add(self, free: int, count: int) -> None:
        if not count:
            return
        if self._runs and self._runs[-1][0] == free:
            count += self._runs.pop()[1]
        self._runs.append((free, count))


def _ended(begins: Mapping[int, int], cycle: int, cycles: int) -> int:
    """Return how many tasks can have ended up to a cycle on elements that are free from other ones on."""
    return sum([(cycle - begin) // cycles * count for begin, count in begins.items() if begin < cycle])
