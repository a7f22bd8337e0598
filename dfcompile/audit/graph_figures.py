"""What the audit finds of a canonical DAG itself: work, depths and I/O, each from its edges; and of any graph."""

from collections import deque
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.dag import Bool, Int64
from dfcompile.distinct import distinct

Column = npt.NDArray[np.integer]

_FEWEST = 32  # vertices of a level, in the mean: fewer are looked at one by one
_LOOKED_AT = 16  # levels after which that shows


class Graph:
    """Vertices and edges; several sweeps over one graph share its order."""

    def __init__(self, count: int, source: Column, target: Column) -> None:
        """Take the ends of edges.

        Args:
            count: of vertices.
            source: of each edge, shape [edges].
            target: of each edge, shape [edges].
        """
        self.count, self._source, self._target = count, source, target

    @cached_property
    def reversed(self) -> "Graph":
        """The same with all edges the other way round."""
        found = Graph(self.count, self._target, self._source)
        if len(self.order) == self.count:
            found.order = self.order[::-1]
            found.levels = None if self.levels is None else self.levels[::-1]
        return found

    @cached_property
    def levels(self) -> list[Int64] | None:
        """The vertices in levels, each behind those before it; ``None`` where these are narrow."""
        consumers, start = self._by_source
        missing = np.bincount(self._target, minlength=self.count)
        levels, reached = list[Int64](), 0
        level = np.flatnonzero(missing == 0)
        while len(level):
            levels.append(level)
            reached += len(level)
            if len(levels) * _FEWEST > reached + _FEWEST * _LOOKED_AT or len(levels) * _FEWEST > self.count:
                return None
            edges = start[level + 1] - start[level]
            skipped = start[level] - (np.cumsum(edges) - edges)
            ends = consumers[np.repeat(skipped, edges) + np.arange(int(edges.sum()))]
            np.subtract.at(missing, ends, 1)
            level = distinct(ends[missing[ends] == 0]).astype(np.int64)
        return levels

    @property
    def _by_source(self) -> tuple[Column, Int64]:
        """Targets of the edges by their sources, and where those of each vertex begin."""
        by_source = np.argsort(self._source, kind="stable")
        return self._target[by_source], np.searchsorted(self._source[by_source], np.arange(self.count + 1))

    @cached_property
    def order(self) -> Int64:
        """The vertices along the edges, without those on a cycle or behind one."""
        if self.levels is not None:
            return np.concatenate([np.zeros(0, dtype=np.int64), *self.levels])
        if (self._source < self._target).all():
            return np.arange(self.count)
        consumers, start = (column.tolist() for column in self._by_source)
        missing = np.bincount(self._target, minlength=self.count).tolist()
        waiting = deque(vertex for vertex, count in enumerate(missing) if not count)
        order = []
        while waiting:
            vertex = waiting.popleft()
            order.append(vertex)
            for consumer in consumers[start[vertex] : start[vertex + 1]]:
                missing[consumer] -= 1
                if not missing[consumer]:
                    waiting.append(consumer)
        return np.array(order, dtype=np.int64)

    @cached_property
    def edges(self) -> tuple[Column, Column]:
        """Sources and targets of the edges in the order of their targets, without those that are in no order."""
        place = np.full(self.count, -1, dtype=np.int64)
        place[self.order] = np.arange(len(self.order))
        along = place[self._target]
        ordered = np.argsort(along, kind="stable")[np.count_nonzero(along < 0) :]
        return self._source[ordered], self._target[ordered]

    def longest_to(self, length: Int64) -> Int64:
        """Return the largest sum of lengths along a path that ends with each vertex; 0 on cycles and behind them."""
        reached, nothing = np.zeros((2, self.count), dtype=np.int64)
        reached[self.order] = length[self.order]
        return _earliest(self, nothing.astype(np.bool_), (reached, nothing, nothing))[1]


def components_of(count: int, source: Column, target: Column) -> Int64:
    """Return for each vertex one that stands for all that it is connected with, whichever way edges lead.

    Where an edge joins two that stand for others, the higher one comes under the lowest that it is joined to.
    """
    found = np.arange(count, dtype=np.int64)
    one, other = found[source], found[target]
    while len(one):
        np.minimum.at(found, np.maximum(one, other), np.minimum(one, other))
        while (found[found] != found).any():
            found = found[found]
        one, other = found[one], found[other]
        one, other = one[one != other], other[one != other]
    return found


def _shared(beside: Int64, work: Int64, pes: int) -> int:
    """Return the most cycles that some tasks are away from one end of the schedule, and share all elements besides."""
    last = np.argsort(-beside, kind="stable")
    together = np.cumsum(work[last])
    return int((beside[last] - (-together // pes)).max(initial=0))


Cycles = tuple[Int64, Int64, Int64]  # work; from start to first element; after the last element that is taken


def _earliest(graph: Graph, tasks: Bool, cycles: Cycles) -> tuple[Int64, Int64]:
    """Return the earliest start and end of each node, in either direction of time.

    Args:
        graph: what each node waits for.
        tasks: which nodes are tasks, shape [nodes].
        cycles: of each node, shape [nodes].
    """
    source, target = graph.edges
    streams = tasks[source] & tasks[target]
    if graph.levels is not None:
        return _earliest_by_levels(graph, graph.levels, streams, cycles)
    work, to_first, from_last = (column.tolist() for column in cycles)
    start, end = [0] * len(work), list(work)
    for other, node, is_stream in zip(source.tolist(), target.tolist(), streams.tolist(), strict=True):
        ready = end[other]
        if is_stream:
            if ready + from_last[node] > end[node]:
                end[node] = ready + from_last[node]
            ready = start[other] + to_first[other]
        if ready > start[node]:
            start[node] = ready
            if ready + work[node] > end[node]:
                end[node] = ready + work[node]
    return np.array(start, dtype=np.int64), np.array(end, dtype=np.int64)


def _earliest_by_levels(graph: Graph, levels: list[Int64], streams: Bool, cycles: Cycles) -> tuple[Int64, Int64]:
    """Return the same, of all nodes of a level at once; which edges stream is in the order of the graph's edges."""
    source, target = graph.edges
    work, to_first, from_last = cycles
    start, end = np.zeros_like(work), work.copy()
    level_of = np.repeat(np.arange(len(levels)), [len(level) for level in levels])
    of_node = np.empty(graph.count, dtype=np.int64)
    of_node[graph.order] = level_of
    rows = np.searchsorted(of_node[target], np.arange(len(levels) + 1)).tolist()
    for own, (row, last) in zip(levels, pairwise(rows), strict=True):
        before, after, stored = source[row:last], target[row:last], ~streams[row:last]
        np.maximum.at(start, after, np.where(stored, end[before], start[before] + to_first[before]))
        np.maximum.at(end, after, np.where(stored, 0, end[before] + from_last[after]))
        end[own] = np.maximum(end[own], start[own] + work[own])
    return start, end


class GraphFigures:
    """Figures of a graph; those of paths are computed when they are first asked for.

    Attributes:
        dag: the graph.
        paths: its nodes and edges, for sweeps along them.
        is_task: whether each node is a computational one, shape [nodes].
        is_stream: whether each edge is between tasks, shape [edges].
        tasks: their number.
        taken: elements on every input edge of each node; of several edges the largest, shape [nodes].
        given: the same of output edges, shape [nodes].
        work: cycles of each task: the elements on its longest edge, shape [nodes].
        total_work_cycles: all tasks one after another.
        io_elements: on edges that touch a buffer, but not the marks of start and end.
        io_bytes: the same in bytes.
    """

    def __init__(self, dag: CanonicalDag) -> None:
        self.dag = dag
        self.is_task, self._is_buffer = dag.is_computational, dag.is_buffer
        is_real, source, target = self.is_task | self._is_buffer, dag.edge_source, dag.edge_target
        self.paths = Graph(dag.nodes_count, source, target)
        self.is_stream: Bool = self.is_task[source] & self.is_task[target]
        self.tasks = sum(self.is_task.tolist())
        self.taken, self.given = self._largest(target), self._largest(source)
        self.work = np.where(self.is_task, np.maximum(self.taken, self.given), 0)
        self.total_work_cycles: int = sum(self.work.tolist())
        is_stored = is_real[source] & is_real[target] & ~self.is_stream
        volumes, sizes = dag.edge_volume[is_stored], dag.edge_element_bytes[is_stored]
        self.io_elements: int = sum(volumes.tolist())
        self.io_bytes = int((volumes * sizes).sum())  # all bytes of a graph together fit in 64 bits: it is verified

    @cached_property
    def _times(self) -> tuple[Int64, Int64, int]:
        """Of each task the earliest start and what has to follow it; and the longest path.

        A task starts when each producer has sent an element, after ``ceil(I / O)`` of its own inputs, or has ended if
        memory is between them; after the last element of a producer it has to send ``ceil(O / I)``, one at least.
        """
        awaited = np.maximum(-(-self.taken // np.maximum(self.given, 1)), 1)
        written = np.maximum(-(-self.given // np.maximum(self.taken, 1)), 1)
        start, end = _earliest(self.paths, self.is_task, (self.work, awaited, written))
        tail, _ = _earliest(self.paths.reversed, self.is_task, (self.work, written, awaited))
        # From behind, too, a task has ended before what it streams to has.
        longest = int((end + np.where(self.is_task, tail, 0)).max(initial=0))
        return start[self.is_task], tail[self.is_task], longest

    def least_makespan_cycles(self, pes: int) -> int:
        """Return cycles that every streaming schedule on P processing elements takes at least.

        The longest path; or what starts late, or is followed by much, and its work shared by all elements.
        """
        (start, tail, longest), work = self._times, self.work[self.is_task]
        return max(longest, _shared(start, work, pes), _shared(tail, work, pes))

    @cached_property
    def critical_path_cycles(self) -> int:
        """The largest work along a path."""
        return int(self.paths.longest_to(self.work).max(initial=0))

    @cached_property
    def streaming_depth_cycles(self) -> int:
        """The longest path of streaming components, each of ``L - 1 + max W`` cycles [dematteis23, section 4]."""
        dag, nodes = self.dag, self.dag.nodes_count
        streamed, component = self._uncut
        source, target = dag.edge_source[streamed], dag.edge_target[streamed]
        per_element = -(-self.given // np.maximum(self.taken, 1))  # cycles that a task needs per element it takes
        steps = np.where(self.is_task, np.where(self.taken > 0, np.maximum(per_element, 1), 1), 0)
        level = Graph(nodes, source, target).longest_to(steps)
        deepest, largest, length = np.zeros((3, nodes), dtype=np.int64)
        tasks = self.is_task
        np.maximum.at(deepest, component[tasks], level[tasks])
        np.maximum.at(largest, component[tasks], self.work[tasks])
        length[tasks] = (deepest - 1 + largest)[tasks]
        length[component != np.arange(nodes)] = 0
        return int(self._between(component, ~streamed).longest_to(length).max(initial=0))

    @property
    def _uncut(self) -> tuple[Bool, Int64]:
        """Streams, but those cut in components that would wait for a buffer which they fill themselves; components."""
        dag, streamed = self.dag, self.is_stream
        component: Int64 = components_of(dag.nodes_count, dag.edge_source[streamed], dag.edge_target[streamed])
        waits = self._unreached(component)[component]
        if not waits.any():
            return streamed, component
        before = self.paths.longest_to(self._is_buffer.astype(np.int64))
        apart = before[dag.edge_source] != before[dag.edge_target]
        streamed = streamed & ~(waits[dag.edge_source] & apart)
        return streamed, components_of(dag.nodes_count, dag.edge_source[streamed], dag.edge_target[streamed])

    def _unreached(self, component: Int64) -> Bool:
        """Return which components no order reaches, neither along the edges between them nor against them."""
        unreached, between = np.ones(self.dag.nodes_count, dtype=np.bool_), self._between(component, ~self.is_stream)
        unreached[between.order] = False
        if unreached.any():
            # What is before all cycles was reached; what is behind all of them is reached from the other end.
            unreached[self._between(component, ~self.is_stream, unreached).order] = False
        return unreached

    def _between(self, component: Int64, kept: Bool, within: Bool | None = None) -> Graph:
        """Return the kept edges between components, each once; those within some of them the other way round."""
        nodes = self.dag.nodes_count
        source, target = component[self.dag.edge_source[kept]], component[self.dag.edge_target[kept]]
        if within is not None:
            inner = within[source] & within[target]
            source, target = target[inner], source[inner]
        pairs = distinct(source * nodes + target)
        return Graph(nodes, pairs // max(nodes, 1), pairs % max(nodes, 1))

    def _largest(self, ends: np.ndarray[tuple[int], np.dtype[np.int32]]) -> Int64:
        largest = np.zeros(self.dag.nodes_count, dtype=np.int64)
        np.maximum.at(largest, ends, self.dag.edge_volume)
        return largest
