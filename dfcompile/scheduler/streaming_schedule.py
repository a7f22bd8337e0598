"""The front of the scheduler: from a canonical DAG to a streaming schedule."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.dag import Bool, Int32, Int64
from dfcompile.errors import VerificationError
from dfcompile.plugins import faults_of, is_own
from dfcompile.scheduler.blocks import Blocks
from dfcompile.scheduler.fifo.sizes import fifo_capacities
from dfcompile.scheduler.gangs.forming import gang_sequence, gangs_of
from dfcompile.scheduler.gangs.placing import place_shortest
from dfcompile.scheduler.options import ScheduleOptions
from dfcompile.scheduler.partitioner import Partitioner, collect_partitioners, find_partitioner
from dfcompile.scheduler.schedules import NO_PE, Schedule
from dfcompile.scheduler.timing.exact_integers import int64_column
from dfcompile.scheduler.timing.exact_times import NO_TASK, ExactTimes, Turns, exact_times
from dfcompile.scheduler.timing.steady_state import Times, steady_times
from dfcompile.scheduler.timing.streams import peak_volumes, streamable_edges


def schedule(dag: CanonicalDag, options: ScheduleOptions, table: Mapping[str, Partitioner] | None = None) -> Schedule:
    """Schedule a canonical DAG on P processing elements [dematteis23, section 5].

    Args:
        dag: the graph.
        options: P, the partitioner, whether blocks have barriers, how times are found, whether edges are demoted.
        table: partitioners by name; by default our own and those of plug-ins.

    Raises:
        UserError: no partitioner has the name, or a time does not fit in 64 bits.
    """
    partitioner = find_partitioner(options.partition, collect_partitioners() if table is None else table)
    barrier = partitioner.overlapping is None if options.barrier is None else options.barrier
    blocks = partitioner.blocks(dag, options.pes, barrier=barrier)
    plan = _Plan(dag, blocks, options, barrier)
    streamed = streamable_edges(dag, blocks.block)
    if not barrier and not is_own(partitioner.module):
        _check_gangs(dag, blocks, streamed, options.pes, partitioner)
    layout = plan.laid_out(streamed)
    while options.demote:
        kept = streamed & ~_pointless(dag, layout.capacity)
        if np.array_equal(kept, streamed):
            break
        streamed = kept
        layout = plan.laid_out(streamed)
    layout.streamed.setflags(write=False)
    return Schedule(
        pes=options.pes,
        partition=options.partition,
        barrier=barrier,
        timing=options.timing,
        block=layout.block,
        pe=layout.pe,
        start=layout.times.start,
        first_out=layout.times.first_out,
        last_out=layout.times.last_out,
        streamed=layout.streamed,
        fifo_capacity=layout.capacity,
        makespan_cycles=layout.times.makespan_cycles,
    )


def _check_gangs(dag: CanonicalDag, blocks: Blocks, streamed: Bool, pes: int, partitioner: Partitioner) -> None:
    """Check that what a third party puts on the machine together fits on it."""
    largest = gangs_of(dag, blocks, streamed).largest(dag)
    with faults_of("partitioner", partitioner.origin):
        if largest > pes:
            raise VerificationError(f"{largest} tasks that stream to one another against at most {pes}")


@dataclass(frozen=True, slots=True, eq=False)
class _Layout:
    """Who runs where and when, and the FIFOs between."""

    block: Int32
    pe: Int32
    times: Times
    streamed: Bool
    capacity: Int64


@dataclass(frozen=True, slots=True, eq=False)
class _Plan:
    """What does not change while edges are demoted."""

    dag: CanonicalDag
    blocks: Blocks
    options: ScheduleOptions
    barrier: bool

    def laid_out(self, streamed: Bool) -> _Layout:
        return self._with_barriers(streamed) if self.barrier else self._overlapping(streamed)

    def _with_barriers(self, streamed: Bool) -> _Layout:
        dag, block = self.dag, self.blocks.block
        times = steady_times(dag, self.blocks, streamed)
        capacity = fifo_capacities(dag, block, streamed, times)
        pe = _own_pes(dag, block)
        if self.options.timing.is_exact:
            gang = gangs_of(dag, self.blocks, streamed).gang
            turns = Turns(gang_sequence(dag, gang, block), np.full(dag.nodes_count, NO_TASK, dtype=np.int32), block)
            exact = exact_times(dag, self.blocks.order, gang, streamed, capacity, turns)
            times, capacity = _columns(exact, times.peak), exact.capacity
        return _Layout(block, pe, times, streamed, capacity)

    def _overlapping(self, streamed: Bool) -> _Layout:
        """Place the gangs of the blocks one by one; each becomes a block of its own."""
        dag, order, peak = self.dag, self.blocks.order, peak_volumes(self.dag, streamed)
        gangs = gangs_of(dag, self.blocks, streamed, relays=not self.options.demote)
        alone = Times(int64_column(gangs.start), int64_column(gangs.first_out), int64_column(gangs.last_out), peak)
        capacity = fifo_capacities(dag, gangs.gang, streamed, alone, off_cycles=True)
        sequence = gang_sequence(dag, gangs.gang, self.blocks.block)
        nobody = np.full(dag.nodes_count, NO_TASK, dtype=np.int32)
        is_exact = self.options.timing.is_exact
        if is_exact:
            exact = exact_times(dag, order, gangs.gang, streamed, capacity, Turns(sequence, nobody, apart=True))
            gangs = replace(gangs, start=exact.start, first_out=exact.first_out, last_out=exact.last_out)
            capacity = exact.capacity
        placing = place_shortest(dag, gangs, self.options.pes, sequence)
        position = np.zeros(gangs.count, dtype=np.int32)
        position[placing.sequence] = np.arange(gangs.count)
        block, pe = _frozen(position[gangs.gang]), _frozen(np.array(placing.pe, dtype=np.int32))
        begin = [placing.begin[gang] for gang in gangs.gang.tolist()]
        offsets = (gangs.start, gangs.first_out, gangs.last_out)
        start, first_out, last_out = (_later(begin, offset) for offset in offsets)
        streamed = streamed | placing.relayed
        capacity = np.where(placing.relayed, dag.edge_volume, capacity)
        capacity.setflags(write=False)
        if is_exact:
            turns = Turns(placing.sequence, _previous(dag, block, pe))
            exact = exact_times(dag, order, gangs.gang, streamed, capacity, turns)
            return _Layout(block, pe, _columns(exact, peak), streamed, capacity)
        return _Layout(block, pe, Times(start, first_out, last_out, peak), streamed, capacity)


def _columns(exact: ExactTimes, peak: Int64) -> Times:
    return Times(int64_column(exact.start), int64_column(exact.first_out), int64_column(exact.last_out), peak)


def _previous(dag: CanonicalDag, block: Int32, pe: Int32) -> Int32:
    """Return the task before each one on its processing element, shape [nodes]."""
    tasks = np.flatnonzero(dag.is_computational)
    tasks = tasks[np.lexsort((block[tasks], pe[tasks]))]
    before, after = tasks[:-1], tasks[1:]
    same = pe[before] == pe[after]
    previous = np.full(dag.nodes_count, NO_TASK, dtype=np.int32)
    previous[after[same]] = before[same]
    return previous


def _later(begin: list[int], offset: list[int]) -> Int64:
    return int64_column([first + cycles for first, cycles in zip(begin, offset, strict=True)])


def _pointless(dag: CanonicalDag, capacity: Int64) -> Bool:
    """Return which edges a FIFO would have to hold whole but for one element: memory does as well."""
    pointless: Bool = (dag.edge_volume == 1) | (dag.edge_volume - 1 <= capacity)
    return pointless


def _own_pes(dag: CanonicalDag, block: Int32) -> Int32:
    """Give each computational node of a block a processing element of its own, in node order."""
    tasks = np.flatnonzero(dag.is_computational)
    tasks = tasks[np.argsort(block[tasks], kind="stable")]
    starts = np.searchsorted(block[tasks], block[tasks], side="left")
    pe = np.full(dag.nodes_count, NO_PE, dtype=np.int32)
    pe[tasks] = np.arange(len(tasks)) - starts
    return _frozen(pe)


def _frozen(column: Int32) -> Int32:
    column.setflags(write=False)
    return column
