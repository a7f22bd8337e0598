"""What families of tasks take on a number of processing elements, estimated without looking at single tasks."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from dfcompile.canonical_dag.extraction.flow import Flow
from dfcompile.choosing.placing import Family, Placing, Times
from dfcompile.choosing.traffic import Memory, traffic


class Estimate(Struct, frozen=True):
    """An estimate of the schedule of a flow.

    Attributes:
        cycles: until the last task has ended.
        bound_cycles: what every schedule takes at least: a critical path on which families share all elements.
        work_cycles: of all tasks.
        tasks: their number.
        families: of the tasks, with streams as they are proved.
        memory_cycles: in which DRAM moves what it has to; 0 where memory is not looked at.
    """

    cycles: int
    bound_cycles: int
    work_cycles: int
    tasks: int
    families: tuple[Family, ...] = ()
    memory_cycles: int = 0

    @property
    def time(self) -> int:
        """Cycles of tasks or of DRAM, whichever are more."""
        return max(self.cycles, self.memory_cycles)


def estimate(
    flow: Flow, pes: int, streams: Callable[[int, int], bool] | None = None, memory: Memory | None = None
) -> Estimate:
    """Place families as a list scheduler places tasks: where elements get free, what is most urgent of what can begin.

    A family that takes a stream begins early enough to end with its producer, one past memory after all of it. Where
    streams go from task to task, only the tasks behind the last round of the producer over the elements wait for that.

    Args:
        flow: families, and which of their reads are streams.
        pes: number of processing elements P.
        streams: whether a schedule streams at all, given the number of tasks and the elements of all streams; ``None``:
            it does.
        memory: of the chip; ``None``: it is not looked at.
    """
    found = families = [Family.of(flow, number, pes) for number in range(len(flow.families))]
    if not families:
        return Estimate(0, 0, 0, 0)
    tasks, total = sum(each.tasks.members for each in families), sum(each.tasks.total for each in families)
    bound = max(-(-total // pes), _longest_path(flow.order, families))
    streamed = sum(each.tasks.total * sum(other.streams for other in each.producers) for each in families)
    if streams is not None and not streams(tasks, streamed):
        families = [each.through_memory() for each in families]
    placing = Placing(flow.order, families, pes)
    placing.run()
    moved = 0 if memory is None else memory.cycles(traffic(flow, pes, memory))
    return Estimate(max(placing.times.end), bound, total, tasks, tuple(found), moved)


def _longest_path(order: Sequence[int], families: Sequence[Family]) -> int:
    """Return what the families take that wait for one another, each of them on all elements."""
    times = Times(len(families))
    for number in order:
        each = families[number]
        begin = times.ready(each.producers, None)
        last = max((times.end[other.number] + 1 for other in each.producers if other.streams), default=0)
        times.start[number], times.end[number] = begin, max(begin + each.least, last)
    return max(times.end)
