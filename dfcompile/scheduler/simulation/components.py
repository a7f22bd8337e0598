"""Which nodes have to be simulated together, and in which order."""

from collections.abc import Iterator

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


def strong_components(count: int, source: Ends, target: Ends) -> Int64:
    """Return the number of each node's strongly connected component, shape [count].

    Components are numbered as Tarjan's algorithm on the reversed edges closes them: those that others wait for first.
    """
    if bool((source < target).all()):
        # Nodes are visited in turn, each when all that it waits for have been closed.
        return np.arange(count, dtype=np.int64)
    by_target = np.argsort(target, kind="stable")
    start = np.searchsorted(target[by_target], np.arange(count + 1))
    return np.array(_closed(source[by_target].tolist(), start.tolist()), dtype=np.int64)


def _closed(before: list[int], start: list[int]) -> list[int]:
    """Return in which turn Tarjan's algorithm, without recursion, closes the component of each node.

    Args:
        before: what each node waits for, node after node.
        start: of each node in ``before``, and its length.
    """
    count = len(start) - 1
    turn = [0] * (count + 1)
    visit = [0] * (count + 1)  # number of the visit, from 1; of a closed node a number above all
    lowest = [*[0] * count, -1]
    is_closed = count + 2
    visits = closed = 0
    open_nodes: list[int] = []
    # Above all nodes is one that waits for each of them in turn; it is never closed.
    node, waits = count, iter(range(count))
    path: list[tuple[int, Iterator[int]]] = [(node, waits)]
    while path:
        for other in waits:
            seen = visit[other]
            if not seen:
                path.append((node, waits))
                node, waits = other, iter(before[start[other] : start[other + 1]])
                visits += 1
                visit[node] = lowest[node] = visits
                open_nodes.append(node)
                break
            if seen < lowest[node]:
                lowest[node] = seen
        else:
            low = lowest[node]
            if low == visit[node]:
                low = member = is_closed
                while member != node:
                    member = open_nodes.pop()
                    turn[member], visit[member] = closed, is_closed
                closed += 1
            node, waits = path.pop()
            if low < lowest[node]:
                lowest[node] = low
    return turn[:count]
