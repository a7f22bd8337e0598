"""The lower bound on the makespan: what no schedule can beat."""

import numpy as np

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.dag import Int64
from dfcompile.scheduler.blocks import Blocks


def lower_bound_cycles(dag: CanonicalDag, pes: int) -> int:
    """Return cycles that every streaming schedule on P processing elements takes at least.

    A task occupies its element for its work ``W = max(I, O)``. It cannot start before every predecessor has sent
    a first element, after ``ceil(I / O)`` of its own inputs (or, past a buffer, has ended); and after a
    predecessor's last element it still has to send one of its own. That gives each task an earliest start and an
    earliest end. The bound is the largest of: the earliest end of any task; for every cycle t, t plus the work of
    the tasks that cannot start before t, shared by P; and the same from the end backwards.
    """
    order = Blocks.of(dag, [0] * dag.nodes_count).order.tolist()
    head, end = _earliest(dag, order)
    tail = _latest(dag, order)
    longest = max((e + t for e, t in zip(end, tail, strict=True)), default=0)
    return max(longest, _loaded(dag, head, pes), _loaded(dag, tail, pes))


def _loaded(dag: CanonicalDag, offset: list[int], pes: int) -> int:
    """Return the largest ``offset + ceil(work of tasks with at least that offset / P)``."""
    tasks = np.flatnonzero(dag.is_computational).tolist()
    best = load = 0
    work = dag.work.tolist()
    for node in sorted(tasks, key=lambda node: -offset[node]):
        load += work[node]
        best = max(best, offset[node] - (-load // pes))
    return best


def _earliest(dag: CanonicalDag, order: list[int]) -> tuple[list[int], list[int]]:
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
        first[node] = start[node] + first_offset[node]
        # Only a task must pass a last element on: what comes from memory may have ended long before.
        streams = (end[parent] + 1 for parent in above if task[parent])
        end[node] = max(start[node] + work[node], max(streams, default=0))
    return start, end


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
