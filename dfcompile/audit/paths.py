"""Longest paths and connected components of any graph given as columns of edge ends.

Where many vertices wait for equally many others, all of them are looked at together; a narrow graph goes vertex by
vertex.
"""

from collections import deque
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dfcompile.distinct import distinct

Column = npt.NDArray[np.integer]
Int64 = npt.NDArray[np.int64]
Rows = tuple[list[int], list[int]]  # entries row after row, and where each row begins

_FEWEST = 32  # vertices of a level, on average: of fewer a loop over vertices is faster


class Level(NamedTuple):
    """Vertices that wait for those of levels before alone.

    Attributes:
        vertices: of the level, each once.
        producers: of all of them, vertex after vertex; each has some.
        begins: where those of each vertex begin.
    """

    vertices: Int64
    producers: Int64
    begins: Int64


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

    @cached_property
    def levels(self) -> tuple[Level, ...] | None:
        """All levels but the first, which waits for nothing; ``None`` of a narrow graph, and of one with cycles."""
        rank = self._ranks
        if rank is None:
            return None
        by_rank = np.lexsort((self._target, rank[self._target]))
        targets, sources = self._target[by_rank], self._source[by_rank].astype(np.int64)
        first_edges = np.flatnonzero(np.diff(targets, prepend=-1))
        vertices = targets[first_edges].astype(np.int64)
        cuts = np.searchsorted(rank[vertices], np.arange(1, int(rank.max(initial=0)) + 2)).tolist()
        ends = np.append(first_edges, len(targets))
        return tuple(
            Level(vertices[begin:end], sources[ends[begin] : ends[end]], (first_edges[begin:end] - ends[begin]))
            for begin, end in pairwise(cuts)
        )

    @property
    def _ranks(self) -> Int64 | None:
        """How many edges are on the longest path to each vertex; ``None`` of a narrow graph, and of one with cycles."""
        by_source = np.argsort(self._source, kind="stable")
        consumers = self._target[by_source]
        start = np.searchsorted(self._source[by_source], np.arange(self.count + 1))
        missing = np.bincount(self._target, minlength=self.count)
        rank = np.zeros(self.count, dtype=np.int64)
        front, reached, step = np.flatnonzero(missing == 0), 0, 0
        while len(front):
            rank[front] = step
            reached, step = reached + len(front), step + 1
            if step * _FEWEST > self.count:
                return None
            lengths = start[front + 1] - start[front]
            places = np.repeat(start[front] - np.cumsum(lengths) + lengths, lengths) + np.arange(int(lengths.sum()))
            met = consumers[places]
            np.subtract.at(missing, met, 1)
            front = distinct(met[missing[met] == 0])
        return rank if reached == self.count else None

    def longest_to(self, length: Int64) -> Int64:
        """Return the largest sum of lengths along a path that ends with each vertex; 0 on cycles and behind them."""
        if self.levels is not None:
            longest = length.copy()
            for level in self.levels:
                longest[level.vertices] += np.maximum.reduceat(longest[level.producers], level.begins)
            return longest
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
