"""Which edges stream, and how fast: streaming components and their peak volumes."""

import numpy as np

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.dag import Bool, Int32, Int64


def streamable_edges(dag: CanonicalDag, block: Int32) -> Bool:
    """Return which edges join two computational nodes of one spatial block, shape [edges].

    An edge between computational nodes exists only where producer and consumer agree on the access order.
    """
    source, target = dag.edge_source, dag.edge_target
    computational = dag.is_computational
    streamable: Bool = computational[source] & computational[target] & (block[source] == block[target])
    return streamable


def peak_volumes(dag: CanonicalDag, streamed: Bool) -> Int64:
    """Return for each node the largest volume of its streaming component, shape [nodes].

    Along streamed edges interval times volume is one constant per weakly connected component, and the smallest
    feasible constant makes the largest-volume edge run at interval 1: the streaming interval of an edge is
    ``peak / volume`` [dematteis23, theorem 4.1].
    """
    component = streamed_components(dag, streamed)
    emits_inside = np.zeros(dag.nodes_count, dtype=np.bool_)
    emits_inside[dag.edge_source[streamed]] = True
    largest = np.maximum(dag.volume_in, np.where(emits_inside, 0, dag.volume_out))
    peak = np.zeros(dag.nodes_count, dtype=np.int64)
    np.maximum.at(peak, component, largest)
    return peak[component]


def streamed_components(dag: CanonicalDag, streamed: Bool) -> Int64:
    """Return the smallest node of each node's weakly connected component over streamed edges, shape [nodes].

    Every root with a smaller neighbour hooks on to the smallest one, then all paths are compressed, until no
    edge joins two trees.
    """
    root = np.arange(dag.nodes_count, dtype=np.int64)
    source, target = dag.edge_source[streamed], dag.edge_target[streamed]
    while len(source):
        left, right = root[source], root[target]
        low, high = np.minimum(left, right), np.maximum(left, right)
        np.minimum.at(root, high, low)
        _compress(root)
        apart = root[source] != root[target]
        source, target = source[apart], target[apart]
    return root


def _compress(root: Int64) -> None:
    while True:
        above = root[root]
        if np.array_equal(above, root):
            return
        root[:] = above
