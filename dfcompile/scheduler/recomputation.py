"""Recomputes the times of a schedule from its assignment: blocks, streamed edges, volumes."""

import numpy as np

from dfcompile.canonical_dag.dag import CanonicalDag, Int64
from dfcompile.errors import VerificationError
from dfcompile.scheduler.schedules import Schedule
from dfcompile.scheduler.simulation.simulator import replay_of, simulate
from dfcompile.scheduler.timing import node_offsets, peak_volumes


def recompute_times(dag: CanonicalDag, schedule: Schedule) -> None:
    """Compare the times of a schedule with those that its assignment gives.

    Exact times are those of a replay of what the schedule says: elements, blocks, streams, capacities. To steady times
    with barriers the equations of `steady_times` are put, to each node at once: on a graph without cycles no others
    meet all of them. Of steady times without barriers, when a block begins is part of the assignment: for these the
    rules of the checker are what holds.

    Raises:
        VerificationError: naming the node, found against expected.
    """
    if schedule.timing.is_exact:
        task = dag.is_computational
        replay = simulate(dag, replay_of(schedule), details=False)
        _reject_difference(dag, "start", np.where(task, schedule.start, 0), np.where(task, replay.start, 0))
        _reject_difference(dag, "last output", schedule.last_out, replay.end)
    elif schedule.barrier:
        source, block, streamed = dag.edge_source, schedule.block, schedule.streamed
        opened = np.zeros(int(block.max(initial=-1)) + 2, dtype=np.int64)
        np.maximum.at(opened, block + 1, schedule.last_out)
        start = np.maximum.accumulate(opened)[block]
        ready = np.where(streamed, schedule.first_out[source] + schedule.hardware.hop_cycles, schedule.last_out[source])
        np.maximum.at(start, dag.edge_target, ready)
        peak = peak_volumes(dag, streamed, schedule.hardware)
        first_offset, last_offset = node_offsets(dag, block, peak, streamed, schedule.hardware)
        _reject_difference(dag, "start", schedule.start, start)
        _reject_difference(dag, "first output", schedule.first_out, start + first_offset)
        _reject_difference(dag, "last output", schedule.last_out, start + last_offset)


def _reject_difference(dag: CanonicalDag, what: str, found: Int64, expected: Int64) -> None:
    different = found != expected
    if different.any():
        node = int(np.argmax(different))
        cycles = f"found {what} in cycle {found[node]} against {expected[node]}"
        raise VerificationError(f"node {dag.node_name(node)!r}: {cycles} of the evaluator")
