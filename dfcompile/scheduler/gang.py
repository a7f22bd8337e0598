"""Gang scheduling: blocks of co-resident nodes, a barrier between them."""

from collections.abc import Mapping

import numpy as np

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.dag import Bool, Int32, Int64
from dfcompile.scheduler.blocks import Blocks
from dfcompile.scheduler.fifo_sizes import fifo_capacities
from dfcompile.scheduler.options import ScheduleOptions
from dfcompile.scheduler.partitioner import Partitioner, collect_partitioners, find_partitioner
from dfcompile.scheduler.schedules import NO_PE, Schedule
from dfcompile.scheduler.steady_state import Times, steady_times
from dfcompile.scheduler.streaming import streamable_edges


def schedule(dag: CanonicalDag, options: ScheduleOptions, table: Mapping[str, Partitioner] | None = None) -> Schedule:
    """Schedule a canonical DAG on P processing elements [dematteis23, section 5].

    Args:
        dag: the graph.
        options: P, the partitioner and whether edges are demoted.
        table: partitioners by name; by default our own and those of plug-ins.

    Raises:
        UserError: no partitioner has the name, or a time does not fit in 64 bits.
    """
    partitioner = find_partitioner(options.partition, collect_partitioners() if table is None else table)
    blocks = partitioner.partition(dag, options.pes)
    streamed = streamable_edges(dag, blocks.block)
    times, capacity = _sized_times(dag, blocks, streamed)
    while options.demote:
        kept = streamed & ~_pointless(dag, capacity)
        if np.array_equal(kept, streamed):
            break
        streamed = kept
        times, capacity = _sized_times(dag, blocks, streamed)
    streamed.setflags(write=False)
    return Schedule(
        pes=options.pes,
        partition=options.partition,
        block=blocks.block,
        pe=_own_pes(dag, blocks.block),
        start=times.start,
        first_out=times.first_out,
        last_out=times.last_out,
        streamed=streamed,
        fifo_capacity=capacity,
        makespan_cycles=times.makespan_cycles,
    )


def _sized_times(dag: CanonicalDag, blocks: Blocks, streamed: Bool) -> tuple[Times, Int64]:
    times = steady_times(dag, blocks, streamed)
    return times, fifo_capacities(dag, blocks.block, streamed, times)


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
    pe.setflags(write=False)
    return pe
