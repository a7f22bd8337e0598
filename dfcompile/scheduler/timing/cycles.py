"""Cycles among edges: only what lies on one can deadlock."""

import numpy as np

from dfcompile.canonical_dag.analysis.longest_path import on_loops
from dfcompile.canonical_dag.dag import Bool, Int32, Int64
from dfcompile.distinct import distinct

_UNSEEN = -1


def edges_on_cycles(nodes: int, source: Int32, target: Int32) -> Bool:
    """Return which edges lie on an undirected cycle, shape [edges]; parallel edges form one.

    An edge lies on no cycle exactly if it is a bridge: the depth-first walk finds no way back over it.
    """
    ends = np.concatenate([source, target])
    order = np.argsort(ends, kind="stable")
    starts = np.searchsorted(ends[order], np.arange(nodes + 1)).tolist()
    neighbours = np.concatenate([target, source])[order].tolist()
    edge_ids = np.tile(np.arange(len(source)), 2)[order].tolist()
    seen_at, lowest = [_UNSEEN] * nodes, [0] * nodes
    on_cycle = np.ones(len(source), dtype=np.bool_)
    cursor = starts[:-1]
    clock = 0
    for root in distinct(source).tolist():
        if seen_at[root] != _UNSEEN:
            continue
        seen_at[root] = lowest[root] = clock
        clock += 1
        path = [(root, _UNSEEN)]
        while path:
            node, via = path[-1]
            if cursor[node] == starts[node + 1]:
                path.pop()
                if path:
                    parent = path[-1][0]
                    lowest[parent] = min(lowest[parent], lowest[node])
                    on_cycle[via] = lowest[node] <= seen_at[parent]
                continue
            step = cursor[node]
            cursor[node] += 1
            neighbour, edge = neighbours[step], edge_ids[step]
            if edge == via:
                continue
            if seen_at[neighbour] == _UNSEEN:
                seen_at[neighbour] = lowest[neighbour] = clock
                clock += 1
                path.append((neighbour, edge))
            else:
                lowest[node] = min(lowest[node], seen_at[neighbour])
    return on_cycle


def edges_on_loops(nodes: int, source: Int64, target: Int64) -> Bool:
    """Return which edges are on a directed cycle or on a path between two of them, shape [edges]."""
    on_loop = on_loops(nodes, source, target)
    return on_loop[source] & on_loop[target]
