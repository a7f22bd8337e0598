"""Nodes of a graph so that each comes behind those that it waits for."""

from collections.abc import Sequence

Ends = Sequence[tuple[int, int]]  # of each edge


def topological_order(count: int, ends: Ends) -> list[int]:
    """Return the nodes in topological order, but for those of a cycle and behind one."""
    waits = [0] * count
    targets: list[list[int]] = [[] for _ in range(count)]
    for source, target in ends:
        targets[source].append(target)
        waits[target] += 1
    ready = [node for node in range(count) if not waits[node]]
    order = []
    while ready:
        node = ready.pop()
        order.append(node)
        for target in targets[node]:
            waits[target] -= 1
            if not waits[target]:
                ready.append(target)
    return order


def topological_numbers(count: int, ends: Ends) -> list[int]:
    """Return the length of the longest path to each node; the edges must form a DAG."""
    levels = [0] * count
    targets: list[list[int]] = [[] for _ in range(count)]
    for source, target in ends:
        targets[source].append(target)
    for node in topological_order(count, ends):
        for target in targets[node]:
            levels[target] = max(levels[target], levels[node] + 1)
    return levels
