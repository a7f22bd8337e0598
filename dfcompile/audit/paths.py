"""Longest paths and connected components of any graph given as columns of edge ends."""

from collections import deque
from functools import cached_property

import numpy as np
import numpy.typing as npt

Column = npt.NDArray[np.integer]
Int64 = npt.NDArray[np.int64]
Rows = tuple[list[int], list[int]]  # entries row after row, and where each row begins


class Graph:
    """Vertices and edges; several sweeps over one graph share its order."""

    def __init__(self, count: int, source: Column, target: Column) -> None:
        """Take the ends of edges.

        Args:
            count: of vertices.
            source: of each edge, shape [edges].
            target: of each edge, shape [edges].
        """
        self.count, self._source, self._target = count, source, target

    @cached_property
    def reversed(self) -> "Graph":
        """The same with all edges the other way round."""
        return Graph(self.count, self._target, self._source)

    @cached_property
    def order(self) -> list[int]:
        """The vertices along the edges, without those on a cycle or behind one."""
        if (self._source < self._target).all():
            return list(range(self.count))
        consumers, start = _rows(self.count, self._source, self._target)
        missing = np.bincount(self._target, minlength=self.count).tolist()
        waiting = deque(vertex for vertex, count in enumerate(missing) if not count)
        order = []
        while waiting:
            vertex = waiting.popleft()
            order.append(vertex)
            for consumer in consumers[start[vertex] : start[vertex + 1]]:
                missing[consumer] -= 1
                if not missing[consumer]:
                    waiting.append(consumer)
        return order

    @cached_property
    def producers(self) -> Rows:
        """The vertices before each vertex."""
        return _rows(self.count, self._target, self._source)

    def longest_to(self, length: Int64) -> Int64:
        """Return the largest sum of lengths along a path that ends with each vertex; 0 on cycles and behind them."""
        producers, start = self.producers
        own, found = length.tolist(), [0] * self.count
        for vertex in self.order:
            before = 0
            for producer in producers[start[vertex] : start[vertex + 1]]:
                if found[producer] > before:
                    before = found[producer]
            found[vertex] = own[vertex] + before
        return np.array(found, dtype=np.int64)


def components_of(count: int, source: Column, target: Column) -> Int64:
    """Return for each vertex one that stands for all that it is connected with, whichever way edges lead."""
    above = list(range(count))
    for one, other in zip(source.tolist(), target.tolist(), strict=True):
        first, second = one, other
        while above[first] != first:
            above[first] = first = above[above[first]]
        while above[second] != second:
            above[second] = second = above[above[second]]
        above[first] = second
    found = np.array(above, dtype=np.int64)
    while (found[found] != found).any():
        found = found[found]
    return found


def _rows(count: int, row: Column, entry: Column) -> Rows:
    by_row = np.argsort(row, kind="stable")
    return entry[by_row].tolist(), np.searchsorted(row[by_row], np.arange(count + 1)).tolist()
