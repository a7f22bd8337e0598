"""Stages: gangs grown along streams, for machines on which gangs need not wait for whole blocks."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.scheduler.blocks import Blocks


@dataclass(frozen=True, slots=True)
class Growth:
    """When a task may join the gangs of its producers.

    Attributes:
        size: tasks of a gang, at most.
        waste: processing element cycles that joining may cost, as a multiple of the work of what is joined: tasks of a
            gang last as long as its largest one. ``None`` is without limit.
        apart: tasks that never join.
    """

    size: int
    waste: float | None
    apart: Collection[int] = ()


class StageGrower:
    """Grows gangs in a given order of the nodes.

    A stage is a number that grows along every edge that leaves a gang, so that no circle of dependences joins gangs. A
    task joins all its producers' gangs on the highest stage among them, which become one, or it opens a gang on
    the next stage. Memory ends a stage: nothing streams past it.
    """

    def __init__(self, dag: CanonicalDag) -> None:
        self._dag = dag
        self._work = dag.work.tolist()
        self._task = dag.is_computational.tolist()
        self._parents = dag.edge_source[dag.in_edges].tolist()
        self._row = dag.in_start.tolist()

    def grow(self, order: list[int], growth: Growth) -> Blocks:
        """Return the stages as blocks; a block may have more tasks than the machine, a gang has not."""
        nodes = self._dag.nodes_count
        stage, root = [0] * nodes, list(range(nodes))
        size, peak = [1] * nodes, self._work[:]

        def find(node: int) -> int:
            while root[node] != node:
                root[node] = root[root[node]]
                node = root[node]
            return node

        for node in order:
            parents = self._parents[self._row[node] : self._row[node + 1]]
            if not parents:
                stage[node] = int(self._task[node])
                continue
            highest = max(stage[parent] for parent in parents)
            if not self._task[node]:
                stage[node] = highest
                continue
            stage[node] = highest + 1
            if node in growth.apart or any(not self._task[p] for p in parents if stage[p] == highest):
                continue
            joined = sorted({find(parent) for parent in parents if stage[parent] == highest})
            tasks = 1 + sum(size[gang] for gang in joined)
            if tasks > growth.size:
                continue
            longest = max(self._work[node], *(peak[gang] for gang in joined))
            before = self._work[node] + sum(size[gang] * peak[gang] for gang in joined)
            if growth.waste is not None and tasks * longest - before > growth.waste * before:
                continue
            stage[node] = highest
            top = joined[0]
            for gang in [*joined, node]:
                root[gang] = top
            size[top], peak[top] = tasks, longest
        return Blocks.in_order(stage, np.array(order)[np.argsort(np.array(stage)[order], kind="stable")].tolist())
