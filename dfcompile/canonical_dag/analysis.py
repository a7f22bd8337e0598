"""What is known of a canonical DAG before it is scheduled: its order, its cycles if it has any, work and depth.

Sweeps over any graph given as arrays of edge ends: order from the sources, longest paths, what is connected.

A sweep takes all vertices at once that wait for nothing more. While that are many, columns are fastest; a graph that is
long and narrow goes vertex by vertex.
"""

from heapq import heapify, heappop, heappush

import numpy as np

from dfcompile.canonical_dag.dag import Bool, CanonicalDag, Int32, Int64, row_starts
from dfcompile.distinct import distinct, numbered
from dfcompile.errors import VerificationError

Ends = Int32 | Int64

_FEWEST = 48  # vertices in the mean of the levels: below, going vertex by vertex is faster
_LOOKED_AT = 64  # levels after which their mean so far says whether they are wide


def order_from_sources(count: int, source: Ends, target: Ends) -> list[int]:
    """Return the vertices producers first; vertices on a cycle or behind one are left out."""
    if bool(np.all(source < target)):
        return list(range(count))
    missing = np.bincount(target, minlength=count).tolist()
    consumers, start = _rows(count, source, target)
    order = [vertex for vertex, edges in enumerate(missing) if edges == 0]
    for vertex in order:  # grows while it is walked
        for consumer in consumers[start[vertex] : start[vertex + 1]]:
            missing[consumer] -= 1
            if missing[consumer] == 0:
                order.append(consumer)
    return order


def lowest_order(count: int, source: Ends, target: Ends) -> Int32:
    """Return the same, of all such orders the first in lexicographic order."""
    if bool(np.all(source < target)):
        return np.arange(count, dtype=np.int32)
    missing = np.bincount(target, minlength=count).tolist()
    consumers, start = _rows(count, source, target)
    ready = [vertex for vertex, edges in enumerate(missing) if edges == 0]
    heapify(ready)
    order: list[int] = []
    while ready:
        vertex = heappop(ready)
        order.append(vertex)
        for consumer in consumers[start[vertex] : start[vertex + 1]]:
            missing[consumer] -= 1
            if missing[consumer] == 0:
                heappush(ready, consumer)
    return np.array(order, dtype=np.int32)


def on_loops(count: int, source: Ends, target: Ends) -> Bool:
    """Return which vertices are on a cycle or on a path between two: what peeling from both ends leaves, [vertices]."""
    left = np.ones(count, dtype=np.bool_)
    for start, end in ((source, target), (target, source)):
        inner = left[start] & left[end]
        left[order_from_sources(count, start[inner], end[inner])] = False
    return left


def connected(count: int, source: Ends, target: Ends) -> Int64:
    """Return the smallest vertex that edges, whatever their direction, join each vertex with, shape [vertices].

    In each round, over all edges at once, every root with a smaller neighbour hooks on to the smallest one, and all
    paths are compressed, until no edge joins two trees.
    """
    root = np.arange(count, dtype=np.int64)
    while len(source):
        low, high = np.minimum(root[source], root[target]), np.maximum(root[source], root[target])
        apart = low != high
        source, target = source[apart], target[apart]
        np.minimum.at(root, high[apart], low[apart])
        while not np.array_equal(flatter := root[root], root):
            root = flatter
    return root


def longest_paths(source: Ends, target: Ends, step: Int64) -> Int64:
    """Return the largest sum of steps along a path that ends with each vertex of an acyclic graph, shape [vertices]."""
    found = _by_levels(source, target, step) if len(step) >= _FEWEST else None
    return _by_vertices(source, target, step) if found is None else found


def _by_levels(source: Ends, target: Ends, step: Int64) -> Int64 | None:
    """Return the longest paths, all vertices of a level at once; ``None`` if levels are too narrow for that."""
    count = len(step)
    consumers, start = target[np.argsort(source, kind="stable")], row_starts(source, count)
    missing = np.bincount(target, minlength=count)
    before, length = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    level = np.flatnonzero(missing == 0)
    levels = reached = 0
    while len(level):
        levels += 1
        reached += len(level)
        if levels * _FEWEST > (count if levels < _LOOKED_AT else 2 * reached):
            return None
        length[level] = before[level] + step[level]
        edges = start[level + 1] - start[level]
        first = np.cumsum(edges) - edges
        ends = consumers[np.repeat(start[level] - first, edges) + np.arange(int(edges.sum()))]
        np.maximum.at(before, ends, np.repeat(length[level], edges))
        np.subtract.at(missing, ends, 1)
        level = distinct(ends[missing[ends] == 0])
    return length


def _by_vertices(source: Ends, target: Ends, step: Int64) -> Int64:
    """Return the longest paths, vertex by vertex."""
    count = len(step)
    producers, start = _rows(count, target, source)
    steps = step.tolist()
    length = [0] * count
    # Numbers that fall along all edges are an order as well.
    order = range(count - 1, -1, -1) if bool(np.all(source > target)) else order_from_sources(count, source, target)
    for vertex in order:
        before = producers[start[vertex] : start[vertex + 1]]
        length[vertex] = steps[vertex] + (max([length[producer] for producer in before]) if before else 0)
    return np.array(length, dtype=np.int64)


def _rows(count: int, row: Ends, entry: Ends) -> tuple[list[int], list[int]]:
    """Return the entries sorted by row and where each row starts."""
    return entry[np.argsort(row, kind="stable")].tolist(), row_starts(row, count).tolist()


def topological_order(dag: CanonicalDag) -> Int32:
    """Return all nodes, producers before consumers, shape [nodes].

    Of all topological orders it is the first in lexicographic order, so it depends on nothing but the numbers of the
    nodes; where every edge leads from a lower to a higher number it is 0, 1, 2, …

    Raises:
        VerificationError: the graph has a cycle.
    """
    order = lowest_order(dag.nodes_count, dag.edge_source, dag.edge_target)
    if len(order) < dag.nodes_count:
        first = dag.node_name(nodes_on_a_cycle(dag)[0])
        raise VerificationError(f"node {first!r}: on a cycle against an acyclic graph")
    return order


def nodes_on_a_cycle(dag: CanonicalDag) -> list[int]:
    """Return the nodes of one cycle in the order of its edges, or nothing if there is no cycle."""
    order = lowest_order(dag.nodes_count, dag.edge_source, dag.edge_target)
    if len(order) == dag.nodes_count:
        return []
    # Every node that could not be sorted has a producer that could not be sorted either: walk back until one repeats.
    unsorted = np.ones(dag.nodes_count, dtype=np.bool_)
    unsorted[order] = False
    place: dict[int, int] = {}
    path: list[int] = []
    node = int(np.flatnonzero(unsorted)[0])
    while node not in place:
        place[node] = len(path)
        path.append(node)
        producers = dag.edge_source[dag.in_edges[dag.in_start[node] : dag.in_start[node + 1]]]
        node = int(producers[unsorted[producers]].min())
    cycle = path[place[node] :][::-1]
    lowest = cycle.index(min(cycle))
    return cycle[lowest:] + cycle[:lowest]


NO_COMPONENT = -1


def total_work(dag: CanonicalDag) -> int:
    """Return ``T1``, the cycles of all tasks one after another [dematteis23, section 4]."""
    return int(dag.work.sum())


def critical_path(dag: CanonicalDag) -> int:
    """Return ``T_inf``, the largest work along a path: cycles on any number of processing elements, no streaming."""
    return int(longest_paths(dag.edge_source, dag.edge_target, dag.work).max(initial=0))


def io_elements(dag: CanonicalDag) -> int:
    """Return the elements that travel between tasks and buffers: all that is written to or read from memory."""
    return int(dag.edge_volume[stored_edges(dag)].sum())


def stored_edges(dag: CanonicalDag) -> Bool:
    """Return which edges join a task and a buffer, shape [edges]."""
    stored = dag.is_buffer | dag.is_computational
    return ~dag.between_tasks & stored[dag.edge_source] & stored[dag.edge_target]


def levels(dag: CanonicalDag) -> Int64:
    """Return the level of every node, shape [nodes].

    ``L(v) = 1`` without producers, otherwise ``max(ceil(R(v)), 1)`` more than the largest level of a producer
    [dematteis23, section 4]: an upsampler needs R cycles to hand on one element, here rounded up to whole cycles.
    Buffers and pseudo nodes add nothing.
    """
    return longest_paths(dag.edge_source, dag.edge_target, level_steps(dag))


def level_steps(dag: CanonicalDag) -> Int64:
    """Return what each node adds to the level of its producers, shape [nodes]."""
    rate = -(-dag.volume_out // np.maximum(dag.volume_in, 1))
    steps = np.where(dag.volume_in > 0, np.maximum(rate, 1), 1)
    return np.where(dag.is_computational, steps, 0).astype(np.int64)


def streaming_components(dag: CanonicalDag) -> Int32:
    """Return the weakly connected component of each task over the edges between tasks, shape [nodes].

    Components are numbered by their first task; buffers and pseudo nodes have ``NO_COMPONENT``.
    """
    return _components(dag, dag.between_tasks)


def streaming_depth(dag: CanonicalDag) -> int:
    """Return ``T_s_inf``: cycles on any number of processing elements if every edge between tasks streams.

    A component takes ``L - 1 + max W`` cycles, L its levels: its largest task runs without pause once data have reached
    it. A buffer hands on only when it is full, so components follow one another along buffers, and the depth is the
    longest *path* of components [dematteis23, section 4].

    A component that waits for a buffer which it fills itself cannot stream as a whole. Such components are cut between
    tasks with different numbers of buffers before them, and the cut edges count as buffered.
    """
    streamed = dag.between_tasks
    component = _components(dag, streamed)
    if dag.is_buffer.any():  # else nothing waits for a buffer
        # Components on cycles through buffers, or between such cycles.
        waits = on_loops(2 * dag.nodes_count, *_contracted(dag, component, ~streamed))[component[dag.edge_source]]
        buffers_before = longest_paths(dag.edge_source, dag.edge_target, dag.is_buffer.astype(np.int64))
        cut = streamed & waits & (buffers_before[dag.edge_source] != buffers_before[dag.edge_target])
        streamed = streamed & ~cut
        component = _components(dag, streamed)
    source, target = _contracted(dag, component, ~streamed)
    steps = np.zeros(2 * dag.nodes_count, dtype=np.int64)
    # ``L - 1 + max W`` of each component, levels along its own edges
    level = longest_paths(dag.edge_source[streamed], dag.edge_target[streamed], level_steps(dag))
    tasks = dag.is_computational
    deepest, largest = np.zeros((2, int(component.max(initial=-1)) + 1), dtype=np.int64)
    np.maximum.at(deepest, component[tasks], level[tasks])
    np.maximum.at(largest, component[tasks], dag.work[tasks])
    depths = deepest - 1 + largest
    steps[: len(depths)] = depths
    return int(longest_paths(source, target, steps).max(initial=0))


def _components(dag: CanonicalDag, edges: Bool) -> Int32:
    root = connected(dag.nodes_count, dag.edge_source[edges], dag.edge_target[edges])
    component = np.full(dag.nodes_count, NO_COMPONENT, dtype=np.int32)
    component[dag.is_computational] = numbered(root[dag.is_computational])[1]
    return component


def _contracted(dag: CanonicalDag, component: Int32, kept: Bool) -> tuple[Int64, Int64]:
    """Return the kept edges between components (numbered as they are) and other nodes (numbered behind them)."""
    vertex = np.where(component >= 0, component, dag.nodes_count + np.arange(dag.nodes_count))
    return vertex[dag.edge_source[kept]], vertex[dag.edge_target[kept]]


def apart(count: int, waiting: Ends, awaited: Ends) -> list[int]:
    """Return where parts of a sequence begin in which nobody waits for another one of the part, and the end.

    Args:
        count: length of the sequence.
        waiting: places of those that wait for another one.
        awaited: place of each of these others, which comes before.

    >>> apart(4, np.array([2, 3]), np.array([0, 1]))
    [0, 2, 4]
    """
    last = np.full(count, -1, dtype=np.int64)  # that each waits for
    np.maximum.at(last, waiting, awaited)
    begins = [0]
    for at, before in enumerate(last.tolist()):
        if before >= begins[-1]:
            begins.append(at)
    return [*begins, count]
