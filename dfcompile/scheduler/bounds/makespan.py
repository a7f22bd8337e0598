"""The lower bound on the makespan: what no schedule can beat."""

import numpy as np

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.dag import Int64
from dfcompile.scheduler.blocks import Blocks
from dfcompile.scheduler.bounds.ancestry import Ancestry

_TRIED = 64


def lower_bound_cycles(dag: CanonicalDag, pes: int) -> int:
    """Return cycles that every streaming schedule on P processing elements takes at least.

    A task occupies its element for its work ``W = max(I, O)``. It cannot start before every predecessor has sent
    a first element, after ``ceil(I / O)`` of its own inputs (or, past a buffer, has ended); and after a
    predecessor's last element it still has to send one of its own. That gives each task an earliest start and an
    earliest end, and in the same way cycles that follow it at least. Of a task's producers at most P - 1 can be on the
    machine with it; all others must have ended before it starts, and some element runs its share of them.

    Along a path all tasks before one that starts have started, and they end in the order of the path. So at most
    the last P - 1 of them are still on the machine: a task starts after the end of the one P places before it on any
    path. Of the paths to a task the one is taken that goes back from each task to the producer that ends last.

    The bound is the largest of: the earliest end of any task and what follows it; and for cycles h and t, h + t plus
    the work of the tasks that cannot start before h and are followed by t or more, shared by P.
    """
    order = Blocks.of(dag, [0] * dag.nodes_count).order.tolist()
    head, end = _earliest(dag, order, pes)
    tail = _latest(dag, order, pes)
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
    path = _TaskPaths(task)
    for node in order:
        above = parents[in_start[node] : in_start[node + 1]]
        path.extend(node, above, end)
        if not task[node]:
            start[node] = first[node] = end[node] = max((end[parent] for parent in above), default=0)
            continue
        start[node] = max((first[parent] for parent in above), default=0)
        if len(above) >= pes:
            start[node] = max(
                start[node], _ended(sorted({parent for parent in above if task[parent]}), start, work, pes)
            )
        gone = path.task_beyond(node, pes)
        if gone is not None:
            start[node] = max(start[node], end[gone])
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


def _latest(dag: CanonicalDag, order: list[int], pes: int) -> list[int]:
    """Return for each node the cycles between its end and the end of any schedule, at least."""
    targets, out_start = dag.edge_target[dag.out_edges].tolist(), dag.out_start.tolist()
    work, task = dag.work.tolist(), dag.is_computational.tolist()
    tail = [0] * dag.nodes_count
    left = [0] * dag.nodes_count  # from the start of each node to the end of the schedule
    path = _TaskPaths(task)
    for node in reversed(order):
        below = targets[out_start[node] : out_start[node + 1]]
        path.extend(node, below, left)
        for target in below:
            if not task[target]:
                after = tail[target]
            elif task[node]:
                after = tail[target] + 1
            else:
                after = tail[target] + work[target]
            tail[node] = max(tail[node], after)
        late = path.task_beyond(node, pes) if task[node] else None
        if late is not None:
            tail[node] = max(tail[node], left[late])
        left[node] = work[node] + tail[node]
    return tail


class _TaskPaths:
    """One path of tasks from each node, grown node by node; memory between two tasks does not count."""

    def __init__(self, task: list[bool]) -> None:
        self._task = task
        self._nearest: list[int | None] = [None] * len(task)  # the first task of the path from each node
        self._ancestry = Ancestry(len(task))

    def extend(self, node: int, neighbours: list[int], value: list[int]) -> None:
        """Lead the path of a node through the neighbour of the largest value that has one."""
        chosen = max(
            (each for each in neighbours if self._nearest[each] is not None), key=value.__getitem__, default=-1
        )
        nearest = None if chosen < 0 else self._nearest[chosen]
        if not self._task[node]:
            self._nearest[node] = nearest
            return
        self._nearest[node] = node
        if nearest is not None:
            self._ancestry.put(node, nearest)

    def task_beyond(self, task: int, steps: int) -> int | None:
        """Return the task so many steps along the path from a task, if the path is long enough."""
        return self._ancestry.above(task, steps)


def _awaited_inputs(dag: CanonicalDag) -> Int64:
    awaited: Int64 = np.maximum(-(-dag.volume_in // np.maximum(dag.volume_out, 1)), 1)
    return awaited
