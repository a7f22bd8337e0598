"""Asks again and again whether other FIFO capacities would delay a schedule."""

from collections.abc import Mapping
from dataclasses import replace

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.scheduler.simulation.plan import plan_replay
from dfcompile.scheduler.simulation.replay import Replay
from dfcompile.scheduler.simulation.result import NEVER
from dfcompile.scheduler.simulation.stretch import StreamingUnit
from dfcompile.scheduler.simulation.unit_replay import replay_unit


class MakespanProbe:
    """A replay whose capacities can be lowered as long as its makespan stays within a limit.

    Only the tasks that stream together with a changed FIFO are replayed, and those that wait for one that ends later.
    """

    def __init__(self, dag: CanonicalDag, replay: Replay, limit_cycles: int) -> None:
        """Replay with the capacities given.

        Raises:
            VerificationError: the replay does not fit the graph.
        """
        plan = plan_replay(dag, replay)
        self._limit_cycles = limit_cycles
        self._units = list(plan.units)
        self._waits = plan.outer_waits
        self._work = plan.work
        self._end = [NEVER] * len(plan.work)
        for number, unit in enumerate(self._units):
            ends = self._ends(unit, self._release(number, {}))
            for node, end in zip(unit.nodes, ends, strict=True):
                self._end[node] = end

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The streamed edges whose FIFOs can stop each other, group by group."""
        return tuple(unit.edges for unit in self._units if unit.edges)

    def lower(self, group: tuple[int, ...], capacity: Mapping[int, int]) -> bool:
        """Give FIFOs of one group new capacities if the makespan stays within the limit; return whether it does."""
        number = next(place for place, unit in enumerate(self._units) if unit.edges == group)
        unit = self._units[number]
        sizes = tuple(capacity.get(edge, size) for edge, size in zip(unit.edges, unit.capacity, strict=True))
        changed = replace(unit, capacity=sizes)
        later = self._later(number, changed)
        if later is None:
            return False
        self._units[number] = changed
        for node, end in later.items():
            self._end[node] = end
        return True

    def _later(self, first: int, changed: StreamingUnit) -> dict[int, int] | None:
        """Return the ends that move with a changed unit, or None if the makespan leaves the limit."""
        later: dict[int, int] = {}
        for number in range(first, len(self._units)):
            unit = changed if number == first else self._units[number]
            if number > first and not any(other in later for others in self._waits[number] for other in others):
                continue
            ends = self._ends(unit, self._release(number, later))
            if NEVER in ends or max(ends) > self._limit_cycles:
                return None
            later.update((node, end) for node, end in zip(unit.nodes, ends, strict=True) if end != self._end[node])
            if number == first and not later:
                break
        return later

    def _release(self, number: int, later: Mapping[int, int]) -> tuple[int, ...]:
        release = []
        for others in self._waits[number]:
            ends = [later.get(other, self._end[other]) for other in others]
            release.append(NEVER if NEVER in ends else max(ends, default=0))
        return tuple(release)

    def _ends(self, unit: StreamingUnit, release: tuple[int, ...]) -> tuple[int, ...]:
        if len(unit.nodes) == 1 and not unit.waits[0]:
            return (NEVER if release[0] == NEVER else release[0] + self._work[unit.nodes[0]],)
        return replay_unit(unit, release, details=False).end
