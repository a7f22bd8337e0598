"""Which nodes have to be simulated together, and in which order; whether and how those of a unit can run in turn."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from dfcompile.canonical_dag.analysis.longest_path import connected, order_from_sources
from dfcompile.canonical_dag.dag import Int64
from dfcompile.scheduler.simulation.stretch import StreamingUnit

Ends = npt.NDArray[np.integer]


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


def in_turn(nodes: list[int], links: list[tuple[int, int]]) -> list[int]:
    """Return nodes so that each comes after those linked to it, as far as possible; those on circles come last."""
    followers: dict[int, list[int]] = {node: [] for node in nodes}
    missing = dict.fromkeys(nodes, 0)
    for before, after in links:
        followers[before].append(after)
        missing[after] += 1
    ordered = [node for node in nodes if not missing[node]]
    for node in ordered:  # grows while it is read
        for follower in followers[node]:
            missing[follower] -= 1
            if not missing[follower]:
                ordered.append(follower)
    return ordered + [node for node in nodes if missing[node] > 0]


def ends_come_in_turn(unit: StreamingUnit) -> bool:
    """Whether no task can wait, through others, for an end that waits for the task itself.

    Tasks joined by FIFOs that can be full wait for one another both ways. If between such groups all waits for ends and
    for elements lead one way, none of them is part of a circle of waits. Else there may be circles in which no time
    passes: access times would be found for what never takes place.
    """
    if not any(unit.waits):
        return True
    count = len(unit.nodes)
    streams = np.array([unit.source, unit.target], dtype=np.int64)
    ends = np.array([(other, node) for node, others in enumerate(unit.waits) for other in others], dtype=np.int64).T
    is_bounded = np.zeros(len(unit.edges), dtype=np.bool_)
    is_bounded[unit.bounded] = True
    group = connected(count, *streams[:, is_bounded])
    before, after = group[streams[:, ~is_bounded]]
    apart = before != after
    links = np.concatenate([group[ends], [before[apart], after[apart]]], axis=1)
    return len(order_from_sources(count, *links)) == count
