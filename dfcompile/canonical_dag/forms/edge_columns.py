"""Edges of a file as columns: a record adds a run or a list of edges, and no object per edge is made."""

from typing import NamedTuple

import numpy as np

from dfcompile.canonical_dag.builder import DagBuilder
from dfcompile.canonical_dag.dag import Int64

_MOST_RUNS = 2**17  # kept as numbers until they become columns: some ten MB


class EdgeFields(NamedTuple):
    """What the edges of a record have in common."""

    element_bytes: int
    order: int  # number of the access order


class EdgeColumns:
    """Collects the edges of a file in their order."""

    def __init__(self) -> None:
        """Begin without edges."""
        self._parts: list[tuple[Int64, ...]] = []  # source, target, volume, distinct, bytes, order; shape [edges] each
        self._runs: list[int] = []  # source, its step, target, its step, count, volume, distinct, bytes, order

    def add_run(
        self, source: tuple[int, int], target: tuple[int, int], volume: int, distinct: int, fields: EdgeFields
    ) -> None:
        """Add edges of one volume: from one node to a range, from a range to one, or in parallel.

        Args:
            source: the first node, and how many there are from it on.
            target: the same of the other end.
            volume: elements on each edge.
            distinct: different ones of them.
            fields: what else the edges have.
        """
        count = max(source[1], target[1])
        self._runs += (source[0], source[1] > 1, target[0], target[1] > 1, count, volume, distinct, *fields)
        if len(self._runs) > _MOST_RUNS * len(_RUN):
            self._expand()

    def add_list(self, source: Int64, target: Int64, volume: Int64, distinct: Int64, fields: EdgeFields) -> None:
        """Add edges one by one; a column of one number holds for all of them."""
        self._expand()
        columns = (source, target, volume, distinct, *(np.array([value]) for value in fields))
        count = max(len(column) for column in columns)
        self._parts.append(tuple(np.broadcast_to(column.astype(np.int64), count) for column in columns))

    def hand_over(self, builder: DagBuilder) -> None:
        """Add all edges to a graph."""
        self._expand()
        for part in self._parts:
            builder.add_edge_columns(*part)
        self._parts.clear()

    def _expand(self) -> None:
        if not self._runs:
            return
        runs = np.array(self._runs, dtype=np.int64).reshape(-1, len(_RUN)).T
        source, source_step, target, target_step, count = runs[:5]
        first = np.cumsum(count) - count
        place = np.arange(int(count.sum()), dtype=np.int64) - np.repeat(first, count)
        ends = (np.repeat(end, count) + place * np.repeat(step, count)
                for end, step in ((source, source_step), (target, target_step)))  # fmt: skip
        self._parts.append((*ends, *(np.repeat(column, count) for column in runs[5:])))
        self._runs.clear()


_RUN = ("source", "source step", "target", "target step", "count", "volume", "distinct", "bytes", "order")
