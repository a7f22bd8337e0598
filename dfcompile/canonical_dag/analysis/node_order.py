"""The order of a canonical DAG's nodes: topological order and cycles."""

from heapq import heapify, heappop, heappush

import numpy as np

from dfcompile.canonical_dag.dag import CanonicalDag, Int32
from dfcompile.errors import VerificationError


def topological_order(dag: CanonicalDag) -> Int32:
    """Return all nodes, producers before consumers, shape [nodes].

    Of all topological orders it is the first in lexicographic order, so it depends on nothing but the numbers of the
    nodes; where every edge leads from a lower to a higher number it is 0, 1, 2, …

    Raises:
        VerificationError: the graph has a cycle.
    """
    order = _sorted_from_sources(dag)
    if len(order) < dag.nodes_count:
        first = dag.node_name(nodes_on_a_cycle(dag)[0])
        raise VerificationError(f"node {first!r}: on a cycle against an acyclic graph")
    return order


def nodes_on_a_cycle(dag: CanonicalDag) -> list[int]:
    """Return the nodes of one cycle in the order of its edges, or nothing if there is no cycle."""
    order = _sorted_from_sources(dag)
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


def _sorted_from_sources(dag: CanonicalDag) -> Int32:
    """Kahn's algorithm with a heap of node numbers; nodes on or behind a cycle are left out."""
    if bool(np.all(dag.edge_source < dag.edge_target)):
        return np.arange(dag.nodes_count, dtype=np.int32)
    missing = np.bincount(dag.edge_target, minlength=dag.nodes_count).tolist()
    target = dag.edge_target[dag.out_edges].tolist()
    start = dag.out_start.tolist()
    ready = [node for node, count in enumerate(missing) if count == 0]
    heapify(ready)
    order: list[int] = []
    while ready:
        node = heappop(ready)
        order.append(node)
        for consumer in target[start[node] : start[node + 1]]:
            missing[consumer] -= 1
            if missing[consumer] == 0:
                heappush(ready, consumer)
    return np.array(order, dtype=np.int32)
