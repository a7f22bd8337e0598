"""Sweeps over any graph given as arrays of edge ends: order from the sources, longest paths."""

import numpy as np

from dfcompile.canonical_dag.dag import Int32, Int64

Ends = Int32 | Int64


def order_from_sources(count: int, source: Ends, target: Ends) -> list[int]:
    """Return the vertices producers first; vertices on a cycle or behind one are left out."""
    if bool(np.all(source < target)):
        return list(range(count))
    missing = np.bincount(target, minlength=count).tolist()
    consumers, start = _rows(count, source, target)
    order = [vertex for vertex, edges in enumerate(missing) if edges == 0]
    for vertex in order:  # grows while it is walked
        for consumer in consumers[start[vertex] : start[vertex + 1]]:
            missing[consumer] -= 1
            if missing[consumer] == 0:
                order.append(consumer)
    return order


def longest_paths(source: Ends, target: Ends, step: Int64) -> Int64:
    """Return the largest sum of steps along a path that ends with each vertex of an acyclic graph, shape [vertices]."""
    count = len(step)
    producers, start = _rows(count, target, source)
    steps = step.tolist()
    length = [0] * count
    for vertex in order_from_sources(count, source, target):
        before = producers[start[vertex] : start[vertex + 1]]
        length[vertex] = steps[vertex] + (max([length[producer] for producer in before]) if before else 0)
    return np.array(length, dtype=np.int64)


def _rows(count: int, row: Ends, entry: Ends) -> tuple[list[int], list[int]]:
    """Return the entries sorted by row and where each row starts."""
    start = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(row, minlength=count), out=start[1:])
    return entry[np.argsort(row, kind="stable")].tolist(), start.tolist()
