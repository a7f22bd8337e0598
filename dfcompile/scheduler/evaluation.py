"""The figures of a schedule, recomputed from the graph and the schedule alone."""

from fractions import Fraction

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag import CanonicalDag, io_elements, total_work
from dfcompile.canonical_dag.analysis import stored_edges
from dfcompile.scheduler.bounds.makespan import lower_bound_cycles
from dfcompile.scheduler.schedules import NonStreamingSchedule, Schedule


class ScheduleFigures(Struct, frozen=True):
    """What a report says about a schedule; exact numbers.

    Attributes:
        pes: number of processing elements P.
        tasks: number of computational nodes.
        blocks: number of spatial blocks.
        makespan_cycles: of the streaming schedule; ``None`` if it ends in a deadlock.
        is_exact: whether that is what a replay takes, with the FIFOs that the schedule has.
        non_streaming_makespan_cycles: of the baseline.
        lower_bound_cycles: what every streaming schedule on P processing elements takes at least.
        total_work_cycles: T1, the work of all tasks.
        io_elements: volume of all edges that touch a buffer.
        io_bytes: the same in bytes.
        spilled_elements: volume of the edges between two tasks that the schedule does not stream.
        fifo_elements: capacity of all FIFOs.
    """

    pes: int
    tasks: int
    blocks: int
    makespan_cycles: int | None
    is_exact: bool
    non_streaming_makespan_cycles: int
    lower_bound_cycles: int
    total_work_cycles: int
    io_elements: int
    io_bytes: int
    spilled_elements: int
    fifo_elements: int

    @property
    def speedup(self) -> Fraction | None:
        """``T1 / makespan``; 1 for a graph without work, ``None`` in a deadlock."""
        if self.makespan_cycles is None:
            return None
        return Fraction(self.total_work_cycles, self.makespan_cycles) if self.makespan_cycles else Fraction(1)

    @property
    def gap(self) -> Fraction | None:
        """How far the makespan is above its lower bound; see `makespan_gap`."""
        return makespan_gap(self.lower_bound_cycles, self.makespan_cycles, is_exact=self.is_exact)

    @property
    def pe_utilization(self) -> Fraction | None:
        """Speedup per processing element; ``None`` in a deadlock."""
        return None if self.speedup is None else self.speedup / self.pes


def makespan_gap(bound_cycles: int, makespan_cycles: int | None, *, is_exact: bool) -> Fraction | None:
    """Return how far a makespan is above a bound, as a part of the bound; 0 is optimal.

    A makespan of mean intervals may be too short: then no gap is ``None``, as it is in a deadlock.
    """
    if makespan_cycles is None:
        return None
    gap = Fraction(makespan_cycles - bound_cycles, bound_cycles) if bound_cycles else Fraction(0)
    return gap if is_exact or gap > 0 else None


def figures(
    dag: CanonicalDag,
    schedule: Schedule,
    baseline: NonStreamingSchedule,
    *,
    ends: bool = True,
    bound_cycles: int | None = None,
) -> ScheduleFigures:
    """Recompute all figures of a schedule; nothing is taken on trust but its columns.

    Args:
        dag: the graph.
        schedule: of it.
        baseline: without streaming.
        ends: whether the schedule ends, and not in a deadlock.
        bound_cycles: the lower bound on as many processing elements, where it was found before.
    """
    return ScheduleFigures(
        pes=schedule.pes,
        tasks=dag.tasks_count,
        blocks=schedule.blocks_count,
        makespan_cycles=int(schedule.last_out.max(initial=0)) if ends else None,
        is_exact=schedule.timing.is_exact,
        non_streaming_makespan_cycles=int(baseline.end.max(initial=0)),
        lower_bound_cycles=lower_bound_cycles(dag, schedule.pes) if bound_cycles is None else bound_cycles,
        total_work_cycles=total_work(dag),
        io_elements=io_elements(dag),
        io_bytes=io_bytes(dag),
        spilled_elements=int(dag.edge_volume[dag.between_tasks & ~schedule.streamed].sum()),
        fifo_elements=sum(schedule.fifo_capacity.tolist()),  # of any size: exact beyond 64 bits
    )


def io_bytes(dag: CanonicalDag) -> int:
    """Return the bytes of all edges that touch a buffer."""
    stored = stored_edges(dag)
    # All bytes of a graph together are below 2**62: the verifier sees to that.
    return int(np.dot(dag.edge_volume[stored], dag.edge_element_bytes[stored].astype(np.int64)))
