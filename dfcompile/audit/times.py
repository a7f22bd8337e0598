"""The audit of times: nobody waits for nothing, a small schedule takes what a plain replay takes, as do replays."""

import numpy as np

from dfcompile.audit.comparing import expect, expect_figures
from dfcompile.audit.graph_figures import GraphFigures
from dfcompile.audit.replay import plain_times
from dfcompile.canonical_dag.dag import Int64
from dfcompile.errors import VerificationError
from dfcompile.options import Timing
from dfcompile.report.figures import SimulationSummary
from dfcompile.scheduler.checked_schedule import CheckedSchedule
from dfcompile.scheduler.schedules import Schedule


def audit_times(where: str, schedule: Schedule, graph: GraphFigures) -> None:
    """Compute the times of a schedule that a replay gave anew, as far as that is quick.

    A task without streams into it starts in the cycle in which what it waits for has ended, and takes its work if it
    has no streams at all. All times of a small schedule are those of a plain replay.

    Raises:
        VerificationError: naming the node.
    """
    dag, streamed = graph.dag, schedule.streamed
    takes, gives = np.zeros((2, dag.nodes_count), dtype=np.bool_)
    takes[dag.edge_target[streamed]] = gives[dag.edge_source[streamed]] = True
    awaited = _awaited(schedule, graph)
    alone = graph.is_task & ~takes
    _expect_times(where, "start", np.where(alone, awaited, schedule.start), schedule.start, graph)
    ended = np.where(alone & ~gives, awaited + graph.work, schedule.last_out)
    ended = np.where(graph.is_task, ended, awaited)
    _expect_times(where, "end", ended, schedule.last_out, graph)
    found = plain_times(graph, schedule)
    if found is not None:
        start = [found.start.get(node, -1) for node in range(dag.nodes_count)]
        end = [found.end.get(node, -1) for node in range(dag.nodes_count)]
        _expect_times(where, "start", np.where(graph.is_task, start, schedule.start), schedule.start, graph)
        _expect_times(where, "end", np.array(end, dtype=np.int64), schedule.last_out, graph)


def audit_simulation(
    where: str, summary: SimulationSummary | None, checked: CheckedSchedule, graph: GraphFigures
) -> None:
    """Compute the figures of a replay anew.

    A replay that ends has the times of an exact schedule, and what a task takes beyond its work it waited.

    Raises:
        VerificationError: naming the figure, or the task whose stalls are not what is left of its time.
    """
    replay = checked.simulation
    if summary is None or replay is None:
        expect(f"{where}: whether there is one", summary is not None, replay is not None)
        return
    ends = replay.end.tolist()
    is_stuck = min(ends, default=0) < 0
    makespan = None if is_stuck else max(ends, default=0)
    read_stall, write_stall = sum(replay.read_stall.tolist()), sum(replay.write_stall.tolist())
    expect_figures(where, summary, makespan_cycles=makespan)
    expect_figures(where, summary, read_stall_cycles=read_stall, write_stall_cycles=write_stall)
    expect(f"{where}.deadlock: whether there is one", bool(summary.deadlock), is_stuck)
    plain = plain_times(graph, checked.schedule)
    if plain is not None:
        ended = len(plain.end) == graph.dag.nodes_count
        expect_figures(where, summary, makespan_cycles=max(plain.end.values(), default=0) if ended else None)
    if is_stuck:
        return
    if plain is not None:
        stalls = plain.read_stall_cycles, plain.write_stall_cycles
        expect_figures(where, summary, read_stall_cycles=stalls[0], write_stall_cycles=stalls[1])
    waited = np.zeros(graph.dag.nodes_count, dtype=np.int64)
    np.add.at(waited, graph.dag.edge_target, replay.read_stall)
    np.add.at(waited, graph.dag.edge_source, replay.write_stall)
    left = replay.end - replay.start - graph.work - waited
    if (left[graph.is_task] != 0).any():
        node = int(np.flatnonzero(graph.is_task & (left != 0))[0])
        raise VerificationError(
            f"{where}: node {graph.dag.node_name(node)!r}: found {waited[node]} cycles of stalls "
            f"against {waited[node] + left[node]} beyond its work"
        )
    if checked.schedule.timing is Timing.EXACT:
        expect_figures(where, summary, makespan_cycles=max(checked.schedule.last_out.tolist(), default=0))


def _awaited(schedule: Schedule, graph: GraphFigures) -> Int64:
    """Return when all has ended that each node waits for, but for streams: memory, its element, and blocks before."""
    dag, end, stored = graph.dag, schedule.last_out, ~schedule.streamed
    awaited = np.zeros(dag.nodes_count, dtype=np.int64)
    np.maximum.at(awaited, dag.edge_target[stored], end[dag.edge_source[stored]])
    tasks = np.flatnonzero(graph.is_task)
    tasks = tasks[np.lexsort((schedule.start[tasks], schedule.pe[tasks]))]
    same = schedule.pe[tasks[1:]] == schedule.pe[tasks[:-1]]
    later = tasks[1:][same]
    awaited[later] = np.maximum(awaited[later], end[tasks[:-1][same]])
    if schedule.barrier:
        ends = np.zeros(int(schedule.block.max(initial=0)) + 2, dtype=np.int64)
        np.maximum.at(ends, schedule.block + 1, end)
        awaited = np.maximum(awaited, np.maximum.accumulate(ends)[schedule.block])
    return awaited


def _expect_times(where: str, what: str, expected: Int64, found: Int64, graph: GraphFigures) -> None:
    wrong = np.flatnonzero(expected != found)
    if len(wrong):
        node = int(wrong[0])
        name = graph.dag.node_name(node)
        raise VerificationError(f"{where}: {what} of {name!r}: found {found[node]} against {expected[node]} recomputed")
