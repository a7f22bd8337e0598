"""Short list schedules: several rules, improved forwards and backwards in time, then changed at random."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from dfcompile.scheduler.listing.list_schedule import ListSchedule, ListScheduler

_SEED = 20230616
_PASSES = 4  # forwards and backwards, after the first
_PARTS = (1000, 1050, 1100, 1200, 1400, 1700)  # thousandths of the bound that a schedule is asked for
_NOISE = (16, 64, 256, 512)  # of an urgency, in 1024ths
_NEVER_EARLY = 2**62
_KEPT = 8


@dataclass(frozen=True, slots=True)
class Budget:
    """How much is tried.

    Attributes:
        node_passes: nodes placed, over all tries.
        fewest_passes: over the whole graph, however large it is.
        most_passes: however small it is.
    """

    node_passes: int
    fewest_passes: int
    most_passes: int


class ListSearch:
    """Finds short list schedules; keeps the shortest of them, for their replays to decide."""

    def __init__(self, scheduler: ListScheduler, bound: int, budget: Budget) -> None:
        """Begin without any.

        Args:
            scheduler: of the graph.
            bound: what no schedule is shorter than, in cycles: the search ends with it.
            budget: how much is tried.
        """
        self._scheduler, self._bound = scheduler, bound
        passes = min(budget.node_passes // max(scheduler.nodes, 1), budget.most_passes)
        self._passes = max(passes, budget.fewest_passes)
        self._left = scheduler.left()
        self._found: dict[int, ListSchedule] = {}  # by cycles
        self._late: dict[int, list[int]] = {}

    def run(self) -> tuple[ListSchedule, ...]:
        """Return the shortest schedules found, the shortest first."""
        for urgency, latest in self._rules():
            if self._is_done():
                break
            self._improve(urgency, latest)
        return tuple(self._found[cycles] for cycles in sorted(self._found))

    def _rules(self) -> Iterator[tuple[list[int], list[int]]]:
        """Yield urgencies, and from when on tasks keep elements that they can use only in part."""
        nodes, left = self._scheduler.nodes, self._left
        longest = [-cycles for cycles in left]
        yield longest, [0] * nodes
        for part in _PARTS:
            target = self._bound * part // 1000
            yield longest, [target - cycles for cycles in left]
        yield longest, [_NEVER_EARLY] * nodes
        choice = random.Random(_SEED)  # noqa: S311 - a search, no secret
        while True:
            shortest = min(self._found)
            noise, target = choice.choice(_NOISE), shortest * choice.choice(_PARTS) // 1000
            basis = choice.choice((longest, self._late[shortest]))
            urgency = [cycles * (1024 + choice.randrange(-noise, noise + 1)) for cycles in basis]
            latest = [target - cycles for cycles in left] if choice.randrange(2) else self._late[shortest]
            yield urgency, latest

    def _improve(self, urgency: list[int], latest: list[int]) -> None:
        """Place forwards, then backwards by the ends of that, and so on as long as it gets shorter [li92]."""
        self._passes -= 1
        found = self._scheduler.forwards(urgency, latest)
        self._keep(found, found.start)
        shortest = found.cycles
        for _ in range(_PASSES):
            if self._is_done():
                return
            self._passes -= 2
            from_end = [found.cycles - end for end in found.end]
            turned, late = self._scheduler.backwards(from_end, from_end)
            self._keep(turned, late)
            found = self._scheduler.forwards(late, late)
            self._keep(found, late)
            if min(found.cycles, turned.cycles) >= shortest:
                return
            shortest = min(found.cycles, turned.cycles)

    def _keep(self, found: ListSchedule, late: list[int]) -> None:
        if found.cycles in self._found or (len(self._found) == _KEPT and found.cycles > max(self._found)):
            return
        self._found[found.cycles], self._late[found.cycles] = found, late
        if len(self._found) > _KEPT:
            longest = max(self._found)
            del self._found[longest], self._late[longest]

    def _is_done(self) -> bool:
        return bool(self._found) and (self._passes <= 0 or min(self._found) <= self._bound)
