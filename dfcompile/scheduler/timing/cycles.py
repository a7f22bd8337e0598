"""Cycles among edges: only what lies on one can deadlock."""

import numpy as np

from dfcompile.canonical_dag.dag import Bool, Int32, Int64
from dfcompile.distinct import distinct

_UNSEEN = -1


def edges_on_cycles(nodes: int, source: Int32, target: Int32) -> Bool:
    """Return which edges lie on an undirected cycle, shape [edges]; parallel edges form one.

    An edge lies on no cycle exactly if it is a bridge: the depth-first walk finds no way back over it.
    """
    neighbours, edge_ids, starts = _adjacency(nodes, source, target)
    seen_at, lowest = [_UNSEEN] * nodes, [0] * nodes
    on_cycle = np.ones(len(source), dtype=np.bool_)
    cursor = list(starts[:-1])
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


def _adjacency(nodes: int, source: Int32, target: Int32) -> tuple[list[int], list[int], list[int]]:
    ends = np.concatenate([source, target])
    order = np.argsort(ends, kind="stable")
    starts = np.zeros(nodes + 1, dtype=np.int64)
    np.cumsum(np.bincount(ends, minlength=nodes), out=starts[1:])
    edges = np.tile(np.arange(len(source)), 2)
    return np.concatenate([target, source])[order].tolist(), edges[order].tolist(), starts.tolist()


def edges_on_loops(nodes: int, source: Int64, target: Int64) -> Bool:
    """Return which edges remain when nodes without an edge in, or without an edge out, are peeled off.

    These are the edges on a directed cycle or on a path between two of them, shape [edges].
    """
    left = np.ones(len(source), dtype=np.bool_)
    for tail, head in ((source, target), (target, source)):
        missing = np.bincount(head, minlength=nodes).tolist()
        order = np.argsort(tail, kind="stable")
        heads, starts = head[order].tolist(), np.searchsorted(tail[order], np.arange(nodes + 1)).tolist()
        peeled = [node for node in range(nodes) if not missing[node]]
        for node in peeled:  # grows while it is read
            for neighbour in heads[starts[node] : starts[node + 1]]:
                missing[neighbour] -= 1
                if not missing[neighbour]:
                    peeled.append(neighbour)
        gone = np.zeros(nodes, dtype=np.bool_)
        gone[peeled] = True
        left &= ~(gone[source] | gone[target])
    return left
