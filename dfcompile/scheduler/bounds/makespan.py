"""The lower bound on the makespan: what no schedule can beat."""

from itertools import pairwise
from typing import TypeAlias
from weakref import WeakKeyDictionary

import numpy as np

from dfcompile.canonical_dag import CanonicalDag, topological_order
from dfcompile.canonical_dag.analysis import apart, longest_paths
from dfcompile.canonical_dag.dag import Int32, Int64
from dfcompile.distinct import distinct
from dfcompile.scheduler.bounds.crossing import alike, counting_bound, crossing_bound, some_values
from dfcompile.scheduler.bounds.energy import is_energy_known, with_energy
from dfcompile.scheduler.bounds.precedence import NO_STREAM, directions, stream_delays
from dfcompile.scheduler.bounds.time_table import Windows, time_table_bound
from dfcompile.scheduler.simulation import NO_NODE, Replay, simulate
from dfcompile.scheduler.simulation.simulator import NODE_ACCESSES


class Ancestry:
    """Nodes under parents; finds ancestors in logarithmic time.

    Each node also knows one ancestor further away: the distances double as in a skew-binary number, so that a walk
    which takes the long way wherever it does not overshoot has logarithmically many steps.
    """

    def __init__(self, nodes: int) -> None:
        """Begin without any node below another; node numbers are below ``nodes``."""
        self._parent, self._far = list(range(nodes)), list(range(nodes))
        self._depth = [0] * nodes

    def put(self, node: int, parent: int) -> None:
        """Put a node without children under a parent."""
        far, depth = self._far, self._depth
        middle = far[parent]
        is_double = depth[parent] - depth[middle] == depth[middle] - depth[far[middle]]
        self._parent[node] = parent
        far[node] = far[middle] if is_double else parent
        depth[node] = depth[parent] + 1

    def above(self, node: int, steps: int) -> int | None:
        """Return the ancestor so many steps above a node; ``None`` where the tree ends before."""
        parent, far, depth = self._parent, self._far, self._depth
        goal = depth[node] - steps
        if goal < 0:
            return None
        while depth[node] > goal:
            node = far[node] if depth[far[node]] >= goal else parent[node]
        return node


Columns: TypeAlias = tuple[Int64, Int64, Int64, Int64]  # of `Windows`

_TRIED = 64
_REPLAYED_ACCESSES = 2**20  # of the replay without limits: a twentieth of a second
_NO_TASK = -1
_FEWEST = 48  # nodes at once, in the mean: fewer are looked at one by one
_MOST_WORK = 2**60  # of all tasks: then all sums fit into 64 bits

# By P, and whether each element was looked at. A part of a DAG is scheduled in many ways, and each asks for its bound.
_BOUNDS: WeakKeyDictionary[CanonicalDag, dict[tuple[int, bool], int]] = WeakKeyDictionary()


def lower_bound_cycles(dag: CanonicalDag, pes: int, *, each_element: bool = True) -> int:
    """Return cycles that every streaming schedule on P processing elements takes at least.

    A task occupies its element for its work ``W = max(I, O)``. It cannot start before every predecessor has sent
    a first element, after ``ceil(I / O)`` of its own inputs (or, past a buffer, has ended); and after a
    predecessor's last element it still has to send one of its own. That gives each task an earliest start and an
    earliest end, and in the same way cycles that follow it at least. Of a task's producers at most P - 1 can be on the
    machine with it; all others must have ended before it starts, and some element runs its share of them.

    Along a path all tasks before one that starts have started, and they end in the order of the path. So at most
    the last P - 1 of them are still on the machine: a task starts after the end of the one P places before it on any
    path. Of the paths to a task the one is taken that goes back from each task to the producer that ends last.

    Where all elements together are few, no end is earlier than that of a replay with an element for each task and FIFOs
    that are never full. Then come what all ancestors of a task take, and all its descendants, see `with_energy`.

    The bound is the largest of: the earliest end of any task and what follows it; and for cycles h and t, h + t plus
    the work of the tasks that cannot start before h and are followed by t or more, shared by P; what must run between
    two times, see `crossing_bound`; what one element must run, see `counting_bound`; and the least makespan that
    time-tabling does not refute, see `time_table_bound`.

    Args:
        dag: the graph.
        pes: number of processing elements P.
        each_element: whether single elements are looked at; steady times may be shorter than such a bound.
    """
    known = _BOUNDS.setdefault(dag, {})
    if (pes, each_element) not in known:
        known[pes, each_element] = _lower_bound_cycles(dag, pes, each_element=each_element)
    return known[pes, each_element]


def _lower_bound_cycles(dag: CanonicalDag, pes: int, *, each_element: bool) -> int:
    found = head, end, tail, left = _windows(dag, pes, each_element=each_element)
    task = dag.is_computational
    known = (end[task], left[task], dag.work[task], pes)
    least = max(
        int((end + tail).max(initial=0)),
        crossing_bound(*known),
        counting_bound(*known),
        _loaded(dag, head, tail, pes),
        _loaded(dag, tail, head, pes),
    )
    return time_table_bound(dag, pes, found, least)


def windows(dag: CanonicalDag, pes: int, *, each_element: bool = True) -> Windows:
    """Return what is known of when nodes start and end in every schedule, see `lower_bound_cycles`."""
    return Windows(*(column.tolist() for column in _windows(dag, pes, each_element=each_element)))


def _windows(dag: CanonicalDag, pes: int, *, each_element: bool) -> Columns:
    """Return the columns of `windows`."""
    order = topological_order(dag)
    path_pes = _path_pes(dag, pes)
    head, end = _earliest_of_all(dag, order, pes, path_pes, backwards=False)
    if each_element:
        head, end = _without_limits(dag, head, end)
    tail, left = _earliest_of_all(dag, order[::-1], pes, path_pes, backwards=True)
    if dag.tasks_count > pes and is_energy_known(dag.tasks_count):
        ahead, back = directions(dag)
        columns: list[list[int]] = []
        for direction, starts, ends in ((ahead, head, end), (back, tail, left)):
            times = starts.tolist(), ends.tolist()
            columns += with_energy(direction, dag.is_computational, dag.work, pes, times)
        head, end, tail, left = (np.array(column, dtype=np.int64) for column in columns)
    return head, end, tail, left


def _without_limits(dag: CanonicalDag, head: Int64, end: Int64) -> tuple[Int64, Int64]:
    """Return earliest starts and ends with those of a replay without any limit, if that is affordable."""
    task = dag.is_computational
    if dag.nodes_count * NODE_ACCESSES + sum(dag.edge_volume.tolist()) > _REPLAYED_ACCESSES:
        return head, end
    own = np.where(task, np.arange(dag.nodes_count), NO_NODE).astype(np.int32)
    order, block = np.zeros(dag.nodes_count, dtype=np.int64), np.zeros(dag.nodes_count, dtype=np.int32)
    free = Replay(own, order, dag.between_tasks, dag.edge_volume, block)
    found = simulate(dag, free.unlimited(dag), details=False)
    start = np.where(task, found.start, np.minimum(found.start, found.end))
    return np.maximum(head, start), np.maximum(end, found.end)


def _loaded(dag: CanonicalDag, before: Int64, after: Int64, pes: int) -> int:
    """Return the largest ``b + ceil(W / P) + a``, W the work of the tasks with at least b before and a after them.

    Of b only some values are tried, 0 among them; of a all.
    """
    tasks = np.flatnonzero(dag.is_computational)
    if not len(tasks):
        return 0
    first, last = before[tasks], after[tasks]
    tried = some_values(first, _TRIED)
    reached = np.searchsorted(tried, first, side="right")  # so many of the tried are at most first
    # Tasks between the same values count as one: of equals in ``last`` the one with the largest load decides.
    order, begins = alike(reached, -last)
    last, reached = last[order[begins]], reached[order[begins]]
    work = np.add.reduceat(dag.work[tasks][order], begins)
    best = 0
    for number, value in enumerate(tried):
        load = np.cumsum(np.where(reached > number, work, 0))
        best = max(best, value + int((-(-load // pes) + np.where(load > 0, last, 0)).max()))
    return best


def _path_pes(dag: CanonicalDag, pes: int) -> int | None:
    """Return the number of processing elements; ``None`` where there is one for each task of any path."""
    on_paths = longest_paths(dag.edge_source, dag.edge_target, dag.is_computational.astype(np.int64))
    return pes if int(on_paths.max(initial=0)) > pes else None


def _earliest_of_all(
    dag: CanonicalDag, order: Int32, pes: int, path_pes: int | None, *, backwards: bool
) -> tuple[Int64, Int64]:
    """Return the earliest start and the earliest end of each node in one direction of time.

    Backwards these are the cycles from its end, and from its start, to the end of any schedule, at least.

    Args:
        dag: the graph.
        order: its nodes, each after those that it waits for.
        pes: number of processing elements P.
        path_pes: the same where paths have to wait for them; ``None``: there are enough for every path.
        backwards: whether nodes wait for their consumers, and not for their producers.
    """
    found = None if path_pes else _earliest_together(dag, order, pes, backwards=backwards)
    if found is None:
        start, end = _earliest(dag, order.tolist(), pes, path_pes, backwards=backwards)
        found = np.array(start, dtype=np.int64), np.array(end, dtype=np.int64)
    return found


def _earliest(
    dag: CanonicalDag, order: list[int], pes: int, path_pes: int | None, *, backwards: bool
) -> tuple[list[int], list[int]]:
    """Return what `_earliest_of_all` does, one node after another."""
    until_first, after_last = (column.tolist() for column in stream_delays(dag))
    if backwards:
        until_first, after_last = after_last, until_first
        neighbours, row = dag.edge_target[dag.out_edges].tolist(), dag.out_start.tolist()
    else:
        neighbours, row = dag.edge_source[dag.in_edges].tolist(), dag.in_start.tolist()
    work, task = dag.work.tolist(), dag.is_computational.tolist()
    start, first, end = [0] * dag.nodes_count, [0] * dag.nodes_count, [0] * dag.nodes_count
    # Only a task must pass a last element on: what comes from memory may have ended long before.
    streamed_end = [NO_STREAM] * dag.nodes_count
    path = _TaskPaths(task)
    for node in order:
        above = neighbours[row[node] : row[node + 1]]
        gone = None if path_pes is None else path.extend(node, above, end, path_pes)
        if not task[node]:
            start[node] = first[node] = end[node] = max([end[other] for other in above], default=0)
            continue
        begin, streams = 0, NO_STREAM
        for other in above:
            if first[other] > begin:
                begin = first[other]
            if streamed_end[other] > streams:
                streams = streamed_end[other]
        if not backwards and len(above) >= pes:
            producers = {parent for parent in above if task[parent]}
            begin = max(begin, _ended([start[each] for each in producers], [work[each] for each in producers], pes))
        if gone is not None and end[gone] > begin:
            begin = end[gone]
        start[node], first[node] = begin, begin + until_first[node]
        last = begin + work[node]
        if streams != NO_STREAM and streams + after_last[node] > last:
            last = streams + after_last[node]
        end[node] = streamed_end[node] = last
    return start, end


def _earliest_together(dag: CanonicalDag, order: Int32, pes: int, *, backwards: bool) -> tuple[Int64, Int64] | None:
    """Return the same where no path waits, at once for all nodes that follow one another and do not wait.

    Returns:
        ``None`` where these are few, or elements are so few that many wait for producers that wait for one another.
    """
    nodes, count = order.astype(np.int64), dag.nodes_count
    place = np.empty(count, dtype=np.int64)
    place[nodes] = np.arange(count)
    ends = dag.edge_target, dag.edge_source
    node, other = ends[::-1] if backwards else ends
    is_late = dag.is_computational & (np.bincount(node, minlength=count) >= pes) & (not backwards)
    if int(is_late.sum()) * _FEWEST > count or float(dag.work.sum(dtype=np.float64)) > _MOST_WORK:
        return None
    parts = apart(count, place[node], place[other])
    if len(parts) * _FEWEST > count:
        return None
    edges = np.argsort(place[node], kind="stable")
    waiting, awaited = place[node][edges], other[edges]
    rows = np.searchsorted(waiting, parts)
    until_first, after_last = stream_delays(dag)[::-1] if backwards else stream_delays(dag)
    start, first, end = (np.zeros(count, dtype=np.int64) for _ in range(3))
    streamed_end = np.full(count, NO_STREAM, dtype=np.int64)
    for (begin, stop), (row, last) in zip(pairwise(parts), pairwise(rows.tolist()), strict=True):
        own, at, above = nodes[begin:stop], waiting[row:last] - begin, awaited[row:last]
        ready, ended = np.zeros((2, len(own)), dtype=np.int64)
        streams = np.full(len(own), NO_STREAM, dtype=np.int64)
        for latest, column in ((ready, first), (ended, end), (streams, streamed_end)):
            np.maximum.at(latest, at, column[above])
        is_task = dag.is_computational[own]
        for late in np.flatnonzero(is_late[own]).tolist():  # their producers may have to wait for one another
            producers = distinct(above[slice(*np.searchsorted(at, [late, late + 1]))])
            producers = producers[dag.is_computational[producers]]
            ready[late] = max(ready[late], _ended(start[producers].tolist(), dag.work[producers].tolist(), pes))
        ready = np.where(is_task, ready, ended)
        over = np.where(streams == NO_STREAM, 0, streams + after_last[own])
        ended = np.where(is_task, np.maximum(ready + dag.work[own], over), ended)
        start[own], first[own], end[own] = ready, ready + np.where(is_task, until_first[own], 0), ended
        streamed_end[own] = np.where(is_task, ended, NO_STREAM)
    return start, end


def _ended(starts: list[int], works: list[int], pes: int) -> int:
    """Return when all but ``P - 1`` of a task's producers can have ended: one element runs ``ceil(count / P)``."""
    rounds = -(-(len(starts) - pes + 1) // pes)
    return min(starts) + sum(sorted(works)[:rounds]) if rounds > 0 else 0


class _TaskPaths:
    """One path of tasks from each node, grown node by node; memory between two tasks does not count."""

    def __init__(self, task: list[bool]) -> None:
        self._task = task
        self._nearest = [_NO_TASK] * len(task)  # the first task of the path from each node
        self._ancestry = Ancestry(len(task))

    def extend(self, node: int, neighbours: list[int], value: list[int], steps: int) -> int | None:
        """Lead the path of a node through the neighbour of the largest value that has one.

        Returns:
            Of a task, the task so many steps along its path, if the path is long enough.
        """
        nearest, chosen, largest = self._nearest, _NO_TASK, -1
        for each in neighbours:
            if value[each] > largest and nearest[each] != _NO_TASK:
                chosen, largest = nearest[each], value[each]
        if not self._task[node]:
            nearest[node] = chosen
            return None
        nearest[node] = node
        if chosen != _NO_TASK:
            self._ancestry.put(node, chosen)
        return self._ancestry.above(node, steps)
