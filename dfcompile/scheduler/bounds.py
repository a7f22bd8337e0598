"""The lower bound on the makespan: what no schedule can beat."""

import numpy as np

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.dag import Int64
from dfcompile.scheduler.blocks import Blocks

_TRIED = 64


def lower_bound_cycles(dag: CanonicalDag, pes: int) -> int:
    """Return cycles that every streaming schedule on P processing elements takes at least.

    A task occupies its element for its work ``W = max(I, O)``. It cannot start before every predecessor has sent
    a first element, after ``ceil(I / O)`` of its own inputs (or, past a buffer, has ended); and after a
    predecessor's last element it still has to send one of its own. That gives each task an earliest start and an
    earliest end, and in the same way cycles that follow it at least. Of a task's producers at most P - 1 can be on the
    machine with it; all others must have ended before it starts, and some element runs its share of them.

    The bound is the largest of: the earliest end of any task and what follows it; and for cycles h and t, h + t plus
    the work of the tasks that cannot start before h and are followed by t or more, shared by P.
    """
    order = Blocks.of(dag, [0] * dag.nodes_count).order.tolist()
    head, end = _earliest(dag, order, pes)
    tail = _latest(dag, order)
    longest = max((e + t for e, t in zip(end, tail, strict=True)), default=0)
    return max(longest, _loaded(dag, head, tail, pes), _loaded(dag, tail, head, pes))


def _loaded(dag: CanonicalDag, before: list[int], after: list[int], pes: int) -> int:
    """Return the largest ``b + ceil(W / P) + a``, W the work of the tasks with at least b before and a after them.

    Of b only some values are tried, 0 among them; of a all.
    """
    tasks = np.flatnonzero(dag.is_computational)
    if not len(tasks):
        return 0
    first, last = np.array(before, dtype=np.int64)[tasks], np.array(after, dtype=np.int64)[tasks]
    by_last = np.argsort(-last, kind="stable")
    first, last, work = first[by_last], last[by_last], dag.work[tasks][by_last]
    values = np.unique(first)
    tried = values[np.unique(np.linspace(0, len(values) - 1, _TRIED).astype(np.int64))]
    best = 0
    for value in tried.tolist():
        load = np.cumsum(np.where(first >= value, work, 0))
        best = max(best, value + int((-(-load // pes) + np.where(load > 0, last, 0)).max()))
    return best


def _earliest(dag: CanonicalDag, order: list[int], pes: int) -> tuple[list[int], list[int]]:
    """Return the earliest start and the earliest end of each node."""
    parents, in_start = dag.edge_source[dag.in_edges].tolist(), dag.in_start.tolist()
    work, task = dag.work.tolist(), dag.is_computational.tolist()
    first_offset = _awaited_inputs(dag).tolist()
    start, first, end = [0] * dag.nodes_count, [0] * dag.nodes_count, [0] * dag.nodes_count
    for node in order:
        above = parents[in_start[node] : in_start[node + 1]]
        if not task[node]:
            start[node] = first[node] = end[node] = max((end[parent] for parent in above), default=0)
            continue
        start[node] = max((first[parent] for parent in above), default=0)
        if len(above) >= pes:
            start[node] = max(
                start[node], _ended(sorted({parent for parent in above if task[parent]}), start, work, pes)
            )
        first[node] = start[node] + first_offset[node]
        # Only a task must pass a last element on: what comes from memory may have ended long before.
        streams = (end[parent] + 1 for parent in above if task[parent])
        end[node] = max(start[node] + work[node], max(streams, default=0))
    return start, end


def _ended(producers: list[int], start: list[int], work: list[int], pes: int) -> int:
    """Return when all but ``P - 1`` of a task's producers can have ended: one element runs ``ceil(count / P)``."""
    rounds = -(-(len(producers) - pes + 1) // pes)
    if rounds <= 0:
        return 0
    return min(start[producer] for producer in producers) + sum(
        sorted(work[producer] for producer in producers)[:rounds]
    )


def _latest(dag: CanonicalDag, order: list[int]) -> list[int]:
    """Return for each node the cycles between its end and the end of any schedule, at least."""
    targets, out_start = dag.edge_target[dag.out_edges].tolist(), dag.out_start.tolist()
    work, task = dag.work.tolist(), dag.is_computational.tolist()
    tail = [0] * dag.nodes_count
    for node in reversed(order):
        for target in targets[out_start[node] : out_start[node + 1]]:
            if not task[target]:
                after = tail[target]
            elif task[node]:
                after = tail[target] + 1
            else:
                after = tail[target] + work[target]
            tail[node] = max(tail[node], after)
    return tail


def _awaited_inputs(dag: CanonicalDag) -> Int64:
    awaited: Int64 = np.maximum(-(-dag.volume_in // np.maximum(dag.volume_out, 1)), 1)
    return awaited
