"""Accepts or rejects schedules; knows neither how blocks were chosen nor how times were computed."""

import numpy as np

from dfcompile.canonical_dag.dag import Bool, CanonicalDag, Int32, Int64
from dfcompile.canonical_dag.hardware import LITERATURE, Hardware
from dfcompile.canonical_dag.verifier import reject_edge, reject_node
from dfcompile.errors import VerificationError
from dfcompile.scheduler.schedules import NO_PE, NonStreamingSchedule, Schedule


def check(dag: CanonicalDag, schedule: Schedule) -> None:
    """Check a streaming schedule against the machine: P elements, one task at a time, blocks in turn.

    With barriers a block starts when all blocks before it have ended. Without, blocks only have to come in the order of
    their numbers on every processing element and along every edge, the tasks of a block on different ones, and with
    steady times a FIFO from one block to another must hold all of its stream: then nobody waits for a later block,
    whatever FIFOs hold. Exact times are those of a replay that ended, see `recompute_times`: there it may hold less.

    Raises:
        VerificationError: naming the nodes that break a rule.
    """
    _check_shapes(dag, schedule)
    _check_placement(dag, schedule.pe, schedule.pes)
    _check_blocks(dag, schedule)
    _check_overlap(dag, schedule.pe, schedule.start, schedule.last_out)
    _check_durations(dag, schedule)
    _check_streamed(dag, schedule)
    _check_precedence(dag, schedule)
    _check_makespan(schedule.makespan_cycles, schedule.last_out)


def check_non_streaming(dag: CanonicalDag, baseline: NonStreamingSchedule, hardware: Hardware = LITERATURE) -> None:
    """Check a schedule in which every edge goes through memory.

    Raises:
        VerificationError: naming the nodes that break a rule.
    """
    _check_placement(dag, baseline.pe, baseline.pes)
    _check_overlap(dag, baseline.pe, baseline.start, baseline.end)
    reject_node(dag, baseline.start < 0, "starts before cycle 0")
    reject_node(dag, baseline.end - baseline.start < hardware.cycles(dag), "runs for less than its work")
    late = baseline.end[dag.edge_source] > baseline.start[dag.edge_target]
    reject_edge(dag, late, "starts before its input is in memory")
    _check_makespan(baseline.makespan_cycles, baseline.end)


def _check_shapes(dag: CanonicalDag, schedule: Schedule) -> None:
    columns = (schedule.block, schedule.pe, schedule.start, schedule.first_out, schedule.last_out)
    if any(column.shape != (dag.nodes_count,) for column in columns):
        raise VerificationError(f"schedule of {dag.name!r}: a column has not {dag.nodes_count} nodes")
    if any(column.shape != (dag.edges_count,) for column in (schedule.streamed, schedule.fifo_capacity)):
        raise VerificationError(f"schedule of {dag.name!r}: a column has not {dag.edges_count} edges")


def _check_placement(dag: CanonicalDag, pe: Int32, pes: int) -> None:
    outside = (pe < 0) | (pe >= pes)
    reject_node(dag, dag.is_computational & outside, f"not on one of the {pes} processing elements")
    reject_node(dag, ~dag.is_computational & (pe != NO_PE), "on a processing element, but no task")


def _check_blocks(dag: CanonicalDag, schedule: Schedule) -> None:
    block, task = schedule.block, dag.is_computational
    reject_node(dag, block < 0, "in no spatial block")
    backward = block[dag.edge_source] > block[dag.edge_target]
    reject_edge(dag, backward, "leads back to an earlier spatial block")
    size = np.bincount(block[task]) if task.any() else np.zeros(1, dtype=np.int64)
    reject_node(dag, task & (size[np.where(task, block, 0)] > schedule.pes), f"in a block over {schedule.pes} tasks")
    if schedule.barrier:
        ends = np.zeros(int(block.max(initial=-1)) + 1, dtype=np.int64)
        np.maximum.at(ends, block[task], schedule.last_out[task])
        opened = np.concatenate([[0], np.maximum.accumulate(ends)])
        reject_node(dag, task & (schedule.start < opened[block]), "starts before the end of an earlier block")
    else:
        before, after, same = _neighbours(dag, schedule.pe, schedule.start)
        out_of_turn = np.zeros(dag.nodes_count, dtype=np.bool_)
        out_of_turn[after[same & (schedule.block[before] >= schedule.block[after])]] = True
        reject_node(dag, out_of_turn, "on an element after a task of the same or a later block")


def _check_overlap(dag: CanonicalDag, pe: Int32, start: Int64, end: Int64) -> None:
    before, after, same = _neighbours(dag, pe, end, start)
    clash = same & (end[before] > start[after])
    if clash.any():
        first = int(np.argmax(clash))
        names = [dag.node_name(int(tasks[first])) for tasks in (before, after)]
        raise VerificationError(f"nodes {names[0]!r} and {names[1]!r}: overlap on element {pe[before[first]]}")


def _neighbours(dag: CanonicalDag, pe: Int32, *times: Int64) -> tuple[Int64, Int64, Bool]:
    """Return each task and the next one, and whether both are on one element.

    They come element by element, and by times; of several the last one counts first.
    """
    tasks = np.flatnonzero(dag.is_computational)
    tasks = tasks[np.lexsort([*(time[tasks] for time in times), pe[tasks].astype(np.int64)])]
    return tasks[:-1], tasks[1:], pe[tasks[:-1]] == pe[tasks[1:]]


def _check_durations(dag: CanonicalDag, schedule: Schedule) -> None:
    """Check lower bounds that hold whatever the rates: one element in and one out per cycle."""
    task, start = dag.is_computational, schedule.start
    first, last = schedule.first_out, schedule.last_out
    reject_node(dag, start < 0, "starts before cycle 0")
    reject_node(dag, (first < start) | (last < first), "times not in the order start, first out, last out")
    reject_node(dag, last - start < schedule.hardware.cycles(dag), "runs for less than its work")
    emits = task & (dag.volume_out > 0)
    volume_out = np.maximum(dag.volume_out, 1)
    awaited = np.maximum(-(-dag.volume_in // volume_out), 1)
    reject_node(
        dag,
        emits & (first - start < awaited + schedule.hardware.pipeline(dag)),
        "first output before enough inputs can be read",
    )
    reject_node(dag, emits & (last - first < dag.volume_out - 1), "emits more than one element per cycle")


def _check_streamed(dag: CanonicalDag, schedule: Schedule) -> None:
    streamed, block = schedule.streamed, schedule.block
    source, target = dag.edge_source, dag.edge_target
    reject_edge(dag, streamed & ~dag.between_tasks, "streamed, but not between two tasks")
    between = streamed & (block[source] != block[target])
    if schedule.barrier:
        reject_edge(dag, between, "streamed between two blocks")
    else:
        partial = between & (schedule.fifo_capacity < dag.edge_volume) & (not schedule.timing.is_exact)
        reject_edge(dag, partial, "streamed between two blocks through a fifo that does not hold all of it")
    reject_edge(dag, streamed & (schedule.fifo_capacity < 1), "streamed without room in its fifo")
    reject_edge(dag, ~streamed & (schedule.fifo_capacity != 0), "a fifo, but not streamed")


def _check_precedence(dag: CanonicalDag, schedule: Schedule) -> None:
    streamed: Bool = schedule.streamed
    source, target = dag.edge_source, dag.edge_target
    start, first, last = schedule.start, schedule.first_out, schedule.last_out
    reject_edge(dag, ~streamed & (last[source] > start[target]), "starts before its input is in memory")
    hop = schedule.hardware.hop_cycles
    read = start[target] + schedule.hardware.turns(dag)[0]
    reject_edge(dag, streamed & (first[source] + hop > read), "starts before its input streams")
    is_exact = schedule.timing.is_exact
    # Element by element a task may wait at one output when the consumer of another has all that it needs.
    ended = first[source] + hop + dag.edge_volume if is_exact else last[source]
    reject_edge(dag, streamed & (ended > last[target]), "ends before its input stream does")
    if not schedule.barrier:
        # A task takes its first elements one input after another, and starts with the last of them.
        held = schedule.fifo_capacity + is_exact
        over = streamed & (last[source] < start[target]) & (dag.edge_volume > held)
        reject_edge(dag, over, "ends before its consumer starts, with more than its fifo holds")


def _check_makespan(makespan: int, end: Int64) -> None:
    found = int(end.max()) if len(end) else 0
    if makespan != found:
        raise VerificationError(f"makespan: found {makespan} cycles, the last node ends at {found}")
