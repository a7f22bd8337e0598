"""Tiers: gangs grown along streams, for machines on which gangs need not wait for whole blocks."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.scheduler.blocks import Blocks


class Growth(Struct, frozen=True):
    """When a task may join the gangs of its producers.

    Attributes:
        size: tasks of a gang, at most.
        waste: processing element cycles that joining may cost, in thousandths of the work of what is joined: tasks of a
            gang last as long as its largest one. ``None`` is without limit.
    """

    size: int
    waste: int | None


class TierGrower:
    """Gives the nodes tiers: numbers that never fall along an edge, and grow along edges that leave a gang.

    A gang is what streams together on one tier, so no circle of dependences joins gangs. The *delay* of a task is how
    many tiers it lies above the highest of its producers; with delay 0 it joins the gangs of its producers on
    that tier, which become one.
    """

    def __init__(self, dag: CanonicalDag) -> None:
        self._dag = dag
        self._work = dag.work.tolist()
        self._task = dag.is_computational.tolist()
        self._parents = dag.edge_source[dag.in_edges].tolist()
        self._row = dag.in_start.tolist()

    def grow(self, order: list[int], growth: Growth) -> list[int]:
        """Return tiers: nodes in a given order join where balance allows; memory ends a tier.

        Tasks of a gang run at the pace of its largest volume, so those of equal volumes lose nothing.
        """
        tier = [0] * len(order)
        gangs = _Joined(self._work)
        for node in order:
            parents = self._parents[self._row[node] : self._row[node + 1]]
            highest = max((tier[parent] for parent in parents), default=0)
            on_top = [parent for parent in parents if tier[parent] == highest]
            tier[node] = highest
            if self._task[node] and not (
                parents
                and all(self._task[parent] for parent in on_top)
                and gangs.join(node, on_top, growth.size, growth.waste)
            ):
                tier[node] = highest + 1
        return tier

    def delays(self, order: list[int], tier: list[int]) -> list[int]:
        """Return the delay of every task that gives tiers of an order again; 0 for other nodes."""
        delay, found = [0] * len(order), [0] * len(order)
        for node in order:
            parents = self._parents[self._row[node] : self._row[node + 1]]
            highest = max((found[parent] for parent in parents), default=0)
            found[node] = max(tier[node], highest) if self._task[node] else highest
            delay[node] = found[node] - highest
        return delay

    def tiers(self, order: list[int], delay: list[int], size: int) -> list[int]:
        """Return the tiers that delays give; a task that would make a gang of more than ``size`` goes one higher."""
        tier = [0] * len(order)
        gangs = _Joined(self._work)
        for node in order:
            parents = self._parents[self._row[node] : self._row[node + 1]]
            highest = max((tier[parent] for parent in parents), default=0)
            tier[node] = highest + delay[node]
            if self._task[node] and not delay[node]:
                on_top = [parent for parent in parents if tier[parent] == highest and self._task[parent]]
                if not gangs.join(node, on_top, size, None):
                    tier[node] = highest + 1
        return tier

    def blocks(self, order: list[int], tier: list[int]) -> Blocks:
        """Return tiers as blocks; a block may have more tasks than the machine, a gang has not."""
        by_tier = np.argsort(np.array([tier[node] for node in order], dtype=np.int64), kind="stable")
        return Blocks.in_order(tier, np.array(order, dtype=np.int64)[by_tier].tolist())


class _Joined:
    """Gangs so far, as trees over their tasks."""

    def __init__(self, work: list[int]) -> None:
        self._root = list(range(len(work)))
        self._size = [1] * len(work)
        self._work = work
        self._peak = work[:]

    def join(self, node: int, others: list[int], size: int, waste: int | None) -> bool:
        """Join a node and the gangs of other tasks unless they get too large or cost too much."""
        gangs = sorted({self._find(other) for other in others})
        tasks = 1 + sum(self._size[gang] for gang in gangs)
        if tasks > size:
            return False
        peak = max((self._peak[gang] for gang in gangs), default=0)
        peak = max(peak, self._work[node])
        if waste is not None:
            before = self._work[node] + sum(self._size[gang] * self._peak[gang] for gang in gangs)
            if (tasks * peak - before) * 1000 > waste * before:
                return False
        for gang in gangs:
            self._root[gang] = node
        self._size[node], self._peak[node] = tasks, peak
        return True

    def _find(self, node: int) -> int:
        root = self._root
        while root[node] != node:
            root[node] = root[root[node]]
            node = root[node]
        return node
