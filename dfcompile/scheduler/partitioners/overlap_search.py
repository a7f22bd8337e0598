"""The best gangs for schedules without barriers: many partitions, then improvement of the best one."""

from __future__ import annotations

import random
from collections.abc import Iterable

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.scheduler.blocks import Blocks
from dfcompile.scheduler.bounds.makespan import lower_bound_cycles
from dfcompile.scheduler.fifo.sizes import RELAY_ELEMENTS
from dfcompile.scheduler.gangs.forming import gang_sequence, gangs_of
from dfcompile.scheduler.gangs.placing import place, place_shortest
from dfcompile.scheduler.partitioners.tiers import Growth, TierGrower
from dfcompile.scheduler.timing.steady_state import streamable_edges

_WASTES = (500, 0, 100, 250, 1000, 2000, None)
_TEMPERATURE = 0.02  # of the makespan: how much longer a changed schedule may be at first and still be kept
_SEED = 20230616


class OverlapSearch:
    """Finds gangs whose schedule without barriers is short; tries at most a given number of partitions."""

    def __init__(self, dag: CanonicalDag, pes: int, tries: int) -> None:
        self._dag = dag
        self._pes = pes
        self._tries = tries
        self._grower = TierGrower(dag)
        self._bound = lower_bound_cycles(dag, pes, each_element=False)
        self._shortest: int | None = None
        self.found: Blocks | None = None

    def offer(self, blocks: Blocks) -> None:
        """Place a partition in all ways; keep it if it is the shortest so far."""
        self._tries -= 1
        gangs = gangs_of(self._dag, blocks, streamable_edges(self._dag, blocks.block), RELAY_ELEMENTS)
        sequence = gang_sequence(self._dag, gangs.gang, blocks.block)
        self._keep(blocks, place_shortest(self._dag, gangs, self._pes, sequence).makespan_cycles)

    def grow(self, orders: list[list[int]]) -> None:
        """Try gangs of several sizes and balances, grown in several orders."""
        for size in self._sizes():
            for waste in _WASTES:
                for order in orders:
                    if self._is_done():
                        return
                    self._tries -= 1
                    blocks = self._grower.blocks(order, self._grower.grow(order, Growth(size, waste)))
                    cycles = self._cycles(blocks)
                    if cycles is not None:
                        self._keep(blocks, cycles)

    def improve(self) -> None:
        """Change the delays of one to three tasks at a time; keep what is shorter, or at first a little longer."""
        if self.found is None or self._shortest is None:
            return
        choice = random.Random(_SEED)  # noqa: S311 - a search, no secret
        order = self.found.order.tolist()
        tasks = [node for node in order if self._dag.is_computational[node]]
        delay = self._grower.delays(order, self.found.block.tolist())
        current, total = self._shortest, self._tries
        while tasks and not self._is_done():
            changed = delay[:]
            for _ in range(choice.choice((1, 1, 2, 3))):
                task = choice.choice(tasks)
                changed[task] = choice.choice((0, 1, 2)) if delay[task] else choice.choice((1, 1, 2))
            self._tries -= 1
            tier = self._grower.tiers(order, changed, self._pes)
            cycles = self._cycles(Blocks.in_order(tier, order))
            if cycles is None:
                continue
            if cycles <= current * (1 + _TEMPERATURE * self._tries / total * choice.random()):
                delay, current = changed, cycles
                if current < self._shortest:
                    self._keep(self._grower.blocks(order, tier), cycles)

    def _sizes(self) -> Iterable[int]:
        size = min(self._pes, max(self._dag.tasks_count, 1))
        while size > 1:
            yield size
            size = size * 2 // 3
        yield 1

    def _is_done(self) -> bool:
        return self._tries <= 0 or (self._shortest is not None and self._shortest <= self._bound)

    def _keep(self, blocks: Blocks, cycles: int) -> None:
        if self._shortest is None or cycles < self._shortest:
            self._shortest, self.found = cycles, blocks

    def _cycles(self, blocks: Blocks) -> int | None:
        """Return the makespan of a partition; ``None`` if a gang needs more elements than there are."""
        gangs = gangs_of(self._dag, blocks, streamable_edges(self._dag, blocks.block), RELAY_ELEMENTS)
        if gangs.largest(self._dag) > self._pes:
            return None
        return place(self._dag, gangs, self._pes).makespan_cycles
