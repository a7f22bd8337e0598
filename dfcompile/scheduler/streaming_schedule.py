"""The front of the scheduler: from a canonical DAG to a streaming schedule."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.dag import Bool, Int32, Int64
from dfcompile.scheduler.blocks import Blocks
from dfcompile.scheduler.exact import int64_column
from dfcompile.scheduler.fifo_sizes import fifo_capacities
from dfcompile.scheduler.gangs import gangs_of
from dfcompile.scheduler.options import ScheduleOptions
from dfcompile.scheduler.partitioner import Partitioner, collect_partitioners, find_partitioner
from dfcompile.scheduler.placing import place
from dfcompile.scheduler.schedules import NO_PE, Schedule
from dfcompile.scheduler.steady_state import Times, steady_times
from dfcompile.scheduler.streaming import peak_volumes, streamable_edges


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
    if barrier or partitioner.overlapping is None:
        blocks = partitioner.partition(dag, options.pes)
    else:
        blocks = partitioner.overlapping(dag, options.pes)
    laid_out = _with_barriers if barrier else _overlapping
    streamed = streamable_edges(dag, blocks.block)
    layout = laid_out(dag, blocks, streamed, options.pes)
    while options.demote:
        kept = streamed & ~_pointless(dag, layout.capacity)
        if np.array_equal(kept, streamed):
            break
        streamed = kept
        layout = laid_out(dag, blocks, streamed, options.pes)
    streamed.setflags(write=False)
    return Schedule(
        pes=options.pes,
        partition=options.partition,
        barrier=barrier,
        block=layout.block,
        pe=layout.pe,
        start=layout.times.start,
        first_out=layout.times.first_out,
        last_out=layout.times.last_out,
        streamed=streamed,
        fifo_capacity=layout.capacity,
        makespan_cycles=layout.times.makespan_cycles,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Layout:
    """Who runs where and when, and the FIFOs between."""

    block: Int32
    pe: Int32
    times: Times
    capacity: Int64


def _with_barriers(dag: CanonicalDag, blocks: Blocks, streamed: Bool, _pes: int) -> _Layout:
    times = steady_times(dag, blocks, streamed)
    capacity = fifo_capacities(dag, blocks.block, streamed, times)
    return _Layout(blocks.block, _own_pes(dag, blocks.block), times, capacity)


def _overlapping(dag: CanonicalDag, blocks: Blocks, streamed: Bool, pes: int) -> _Layout:
    """Place the gangs of the blocks one by one; each becomes a block of its own."""
    gangs = gangs_of(dag, blocks, streamed)
    placing = place(dag, gangs, pes)
    position = np.zeros(gangs.count, dtype=np.int32)
    position[placing.sequence] = np.arange(gangs.count)
    block = _frozen(position[gangs.gang])
    begin = [placing.begin[gang] for gang in gangs.gang.tolist()]
    times = Times(
        _later(begin, gangs.start),
        _later(begin, gangs.first_out),
        _later(begin, gangs.last_out),
        peak_volumes(dag, streamed),
    )
    pe = _frozen(np.array(placing.pe, dtype=np.int32))
    return _Layout(block, pe, times, fifo_capacities(dag, block, streamed, times))


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
