"""Which nodes have to be simulated together, and in which order."""

import numpy as np
import numpy.typing as npt

from dfcompile.canonical_dag.dag import Int64

Ends = npt.NDArray[np.integer]


def joined(count: int, left: Ends, right: Ends) -> Int64:
    """Return for each node the lowest node that undirected edges join it with, shape [count]."""
    parent = list(range(count))
    for one, other in zip(left.tolist(), right.tolist(), strict=True):
        a, b = _root(parent, one), _root(parent, other)
        parent[max(a, b)] = min(a, b)
    return np.array([_root(parent, node) for node in range(count)], dtype=np.int64)


def _root(parent: list[int], node: int) -> int:
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node


def strong_components(count: int, source: Ends, target: Ends) -> list[list[int]]:
    """Return the strongly connected components of a directed graph, those that others wait for first.

    Tarjan's algorithm, without recursion, on the reversed edges; members in ascending order.
    """
    by_target = np.argsort(target, kind="stable")
    before = source[by_target].tolist()
    row = np.searchsorted(target[by_target], np.arange(count + 1)).tolist()
    found: list[list[int]] = []
    number = [0] * count  # of the visit, from 1
    lowest = [0] * count
    open_nodes: list[int] = []
    is_open = [False] * count
    visits = 0
    for root in range(count):
        path = [] if number[root] else [(root, row[root])]
        while path:
            node, place = path.pop()
            if not number[node]:
                visits += 1
                number[node] = lowest[node] = visits
                open_nodes.append(node)
                is_open[node] = True
            elif is_open[before[place - 1]]:
                lowest[node] = min(lowest[node], lowest[before[place - 1]])
            while place < row[node + 1] and number[before[place]]:
                if is_open[before[place]]:
                    lowest[node] = min(lowest[node], number[before[place]])
                place += 1
            if place < row[node + 1]:
                path += [(node, place + 1), (before[place], row[before[place]])]
            elif lowest[node] == number[node]:
                found.append(_closed(open_nodes, is_open, node))
    return found


def _closed(open_nodes: list[int], is_open: list[bool], root: int) -> list[int]:
    start = len(open_nodes) - 1
    while open_nodes[start] != root:
        start -= 1
    members = sorted(open_nodes[start:])
    del open_nodes[start:]
    for member in members:
        is_open[member] = False
    return members
