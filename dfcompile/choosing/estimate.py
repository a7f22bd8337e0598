"""What families of tasks take on a number of processing elements, estimated without looking at single tasks."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dfcompile.canonical_dag.dag import Int64
from dfcompile.canonical_dag.extraction.flow import Flow


@dataclass(frozen=True, slots=True)
class Estimate:
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
    free: Int64 = np.zeros(pes, dtype=np.int64)
    planned, least = _Times(len(flow.families)), _Times(len(flow.families))
    total = tasks = 0
    for number in flow.order:
        members, work = flow.families[number].members, flow.work(number)
        cycles = max(-(-work // members), 1)
        ready = planned.ready(flow, number, cycles)
        planned.start[number], planned.end[number] = _place(free, ready, members, cycles)
        begin, last = least.ready(flow, number, None), least.last(flow, number)
        least.start[number] = begin
        least.end[number] = max(begin + max(cycles, -(-work // pes)), last)
        total, tasks = total + work, tasks + members
    bound = max(-(-total // pes), *least.end) if least.end else 0
    return Estimate(max(planned.end, default=0), bound, total, tasks)


class _Times:
    """Starts and ends of families."""

    def __init__(self, families: int) -> None:
        self.start, self.end = [0] * families, [0] * families

    def ready(self, flow: Flow, number: int, cycles: int | None) -> int:
        """Return when a family can begin, or should, to end with those that it takes streams from.

        Args:
            flow: with the families.
            number: of the family.
            cycles: of its tasks; ``None``: as early as it can.
        """
        ready = 0
        for producer, streams in _producers(flow, number):
            begun = self.start[producer] + 1
            if cycles is not None:
                begun = max(begun, self.end[producer] + 1 - cycles)
            ready = max(ready, begun if streams else self.end[producer])
        return ready

    def last(self, flow: Flow, number: int) -> int:
        """Return when the last elements of streams have gone through a family."""
        return max((self.end[producer] + 1 for producer, streams in _producers(flow, number) if streams), default=0)


def _producers(flow: Flow, number: int) -> Iterator[tuple[int, bool]]:
    """Yield the families that write what one reads, and whether it comes as a stream."""
    for read in flow.families[number].scope.reads:
        use = flow.uses[read.array]
        streams = use.stream_of(number, read) is not None
        for producer, _ in use.writers:
            yield producer, streams


def _place(free: Int64, ready: int, members: int, cycles: int) -> tuple[int, int]:
    """Put equal tasks on elements, none before a cycle; return the first start and the last end.

    Args:
        free: when each element gets free, changed, shape [P].
        ready: when the tasks can begin.
        members: their number.
        cycles: of each.
    """
    begin = np.maximum(free, ready)
    first = int(begin.min())
    rounds = cycles * -(-members // len(begin))
    low, high = first + rounds, int(begin.max()) + rounds
    while low < high:  # the least cycle by which all of them can have ended
        middle = (low + high) // 2
        if int(np.maximum((middle - begin) // cycles, 0).sum()) >= members:
            high = middle
        else:
            low = middle + 1
    counts = np.maximum((low - begin) // cycles, 0)
    surplus = int(counts.sum()) - members
    latest = np.flatnonzero((counts > 0) & (begin + counts * cycles == low))[:surplus]
    counts[latest] -= 1
    free[:] = np.where(counts > 0, begin + counts * cycles, free)
    return first, low
