"""The schedules of configurations, one after another: a schedule of the whole lowering."""

from collections.abc import Sequence

import numpy as np

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.dag import Int32, Int64
from dfcompile.canonical_dag.part import OUTSIDE
from dfcompile.dfmodel_backend.attained.task_model import TaskConfiguration
from dfcompile.distinct import numbered
from dfcompile.options import Timing
from dfcompile.scheduler import NO_PE, Schedule, ScheduleOptions


def concatenated(
    dag: CanonicalDag, configurations: Sequence[TaskConfiguration], scheduling: ScheduleOptions
) -> Schedule:
    """Return the schedule of a lowering whose configurations follow one another.

    Memory is complete when the last task that writes to it has ended.

    Args:
        dag: the lowering, in words of the machine.
        configurations: in order of execution; together they hold every task once.
        scheduling: of each of them.
    """
    block = np.zeros(dag.nodes_count, dtype=np.int32)
    pe = np.full(dag.nodes_count, NO_PE, dtype=np.int32)
    start, first_out, last_out = (np.zeros(dag.nodes_count, dtype=np.int64) for _ in range(3))
    streamed = np.zeros(dag.edges_count, dtype=np.bool_)
    capacity = np.zeros(dag.edges_count, dtype=np.int64)
    now, blocks = 0, 0
    for configuration in configurations:
        part, own = configuration.part, configuration.schedule
        here = np.flatnonzero((part.node != OUTSIDE) & part.dag.is_computational)
        there = part.node[here]
        # Blocks of memory alone are none of the whole.
        used, number = numbered(own.block[here])
        block[there] = blocks + number
        pe[there] = own.pe[here]
        for whole, column in ((start, own.start), (first_out, own.first_out), (last_out, own.last_out)):
            whole[there] = now + column[here]
        edges = part.edge[own.streamed]  # each of one configuration
        streamed[edges], capacity[edges] = True, own.fifo_capacity[own.streamed]
        now += own.makespan_cycles
        blocks += len(used)
    _complete_memory(dag, block, (start, first_out, last_out))
    found = Schedule(
        pes=scheduling.pes,
        partition=scheduling.partition,
        barrier=all(configuration.schedule.barrier for configuration in configurations),
        timing=Timing.EXACT,
        block=block,
        pe=pe,
        start=start,
        first_out=first_out,
        last_out=last_out,
        streamed=streamed,
        fifo_capacity=capacity,
        makespan_cycles=now,
    )
    for name in ("block", "pe", "start", "first_out", "last_out", "streamed", "fifo_capacity"):
        getattr(found, name).setflags(write=False)
    return found


def _complete_memory(dag: CanonicalDag, block: Int32, times: tuple[Int64, Int64, Int64]) -> None:
    """Put each buffer into the block of its last writer, complete when that has ended."""
    task = dag.is_computational
    into_memory = ~task[dag.edge_target]
    for writers in (task, ~task):  # buffers, then the mark of the end
        edges = np.flatnonzero(writers[dag.edge_source] & into_memory)
        source, target = dag.edge_source[edges], dag.edge_target[edges]
        np.maximum.at(block, target, block[source])
        ended = times[2][source]
        for column in times:
            np.maximum.at(column, target, ended)
