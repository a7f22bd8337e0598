"""The order of a canonical DAG's nodes: topological order and cycles."""

import numpy as np

from dfcompile.canonical_dag.analysis.longest_path import lowest_order
from dfcompile.canonical_dag.dag import CanonicalDag, Int32
from dfcompile.errors import VerificationError


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
