"""Sweeps over any graph given as arrays of edge ends: order from the sources, longest paths, what is connected.

Of a canonical DAG its order, and its cycles if it has any.

A sweep takes all vertices at once that wait for nothing more. While that are many, columns are fastest; a graph that is
long and narrow goes vertex by vertex.
"""

from heapq import heapify, heappop, heappush

import numpy as np

from dfcompile.canonical_dag.dag import Bool, CanonicalDag, Int32, Int64, row_starts
from dfcompile.distinct import distinct
from dfcompile.errors import VerificationError

Ends = Int32 | Int64

_FEWEST = 48  # vertices in the mean of the levels: below, going vertex by vertex is faster


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
    levels = 0
    while len(level):
        levels += 1
        if levels * _FEWEST > count:
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
    for vertex in order_from_sources(count, source, target):
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
