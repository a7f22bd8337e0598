"""Nodes of a graph so that each comes behind those that it waits for."""

from collections.abc import Sequence
from heapq import heappop, heappush

Ends = Sequence[tuple[int, int]]  # of each edge


def topological_order(count: int, ends: Ends) -> list[int]:
    """Return the nodes in topological order, ties as they are numbered, but for those of a cycle and behind one."""
    waits = [0] * count
    targets: list[list[int]] = [[] for _ in range(count)]
    for source, target in ends:
        targets[source].append(target)
        waits[target] += 1
    ready = [node for node in range(count) if not waits[node]]
    order = []
    while ready:
        # The first node that is free keeps the user's order where it is one.
        order.append(heappop(ready))
        for target in targets[order[-1]]:
            waits[target] -= 1
            if not waits[target]:
                heappush(ready, target)
    return order


def topological_numbers(count: int, ends: Ends) -> list[int]:
    """Return the length of the longest path to each node; the edges must form a DAG."""
    place = {node: number for number, node in enumerate(topological_order(count, ends))}
    levels = [0] * count
    for source, target in sorted(ends, key=lambda end: place[end[0]]):
        levels[target] = max(levels[target], levels[source] + 1)
    return levels
