"""Recomputes the times of a schedule from its assignment: blocks, streamed edges, volumes."""

import numpy as np

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.dag import Int64
from dfcompile.errors import VerificationError
from dfcompile.options import Timing
from dfcompile.scheduler.schedules import Schedule
from dfcompile.scheduler.timing.steady_state import node_offsets


def recompute_times(dag: CanonicalDag, schedule: Schedule) -> None:
    """Compare the times of a schedule with barriers, from mean intervals, with those that its blocks and streams give.

    The equations of `steady_times` are put to each node at once: on a graph without cycles no other times meet all of
    them. Without barriers, when a block begins is part of the assignment; times element by element depend on FIFOs:
    for these the rules of the checker are what holds.

    Raises:
        VerificationError: naming the node, found against expected.
    """
    if not schedule.barrier or schedule.timing is not Timing.STEADY:
        return
    source, target, block = dag.edge_source, dag.edge_target, schedule.block
    opened = np.zeros(int(block.max(initial=-1)) + 2, dtype=np.int64)
    np.maximum.at(opened, block + 1, schedule.last_out)
    start = np.maximum.accumulate(opened)[block]
    ready = np.where(schedule.streamed, schedule.first_out[source], schedule.last_out[source])
    np.maximum.at(start, target, ready)
    first_offset, last_offset = node_offsets(dag, schedule.streamed)
    _reject_difference(dag, "start", schedule.start, start)
    _reject_difference(dag, "first output", schedule.first_out, start + first_offset)
    _reject_difference(dag, "last output", schedule.last_out, start + last_offset)


def _reject_difference(dag: CanonicalDag, what: str, found: Int64, expected: Int64) -> None:
    different = found != expected
    if different.any():
        node = int(np.argmax(different))
        cycles = f"found {what} in cycle {found[node]} against {expected[node]}"
        raise VerificationError(f"node {dag.node_name(node)!r}: {cycles} of the evaluator")
