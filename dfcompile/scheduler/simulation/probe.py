"""Asks again and again whether other FIFO capacities would delay a schedule."""

from collections.abc import Iterator, Mapping

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.records import replace
from dfcompile.scheduler.simulation.plan import Alone, check_sizes, last_end, plan_replay
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
            ReplayTooLargeError: the replay is too large.
        """
        plan = plan_replay(dag, replay)
        check_sizes(dag, plan)
        self._plan, self._limit_cycles = plan, limit_cycles
        self._sequence = list(plan.sequence)
        self._end = [NEVER] * len(plan.work)
        for part in plan.sequence:
            for node, last in self._ends(part, self._end, set()):
                self._end[node] = last

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The streamed edges whose FIFOs can stop each other, group by group."""
        return tuple(unit.edges for unit in self._plan.units if unit.edges)

    def lower(self, group: tuple[int, ...], capacity: Mapping[int, int]) -> bool:
        """Give FIFOs of one group new capacities if the makespan stays within the limit; return whether it does."""
        place, unit = next(
            (place, part)
            for place, part in enumerate(self._sequence)
            if isinstance(part, StreamingUnit) and part.edges == group
        )
        sizes = tuple(capacity.get(edge, size) for edge, size in zip(unit.edges, unit.capacity, strict=True))
        changed = replace(unit, capacity=sizes)
        end = self._ends_with(changed, self._sequence[place + 1 :])
        if end is not None:
            self._sequence[place], self._end = changed, end
        return end is not None

    def _ends_with(self, changed: StreamingUnit, others: list[StreamingUnit | Alone]) -> list[int] | None:
        """Replay a changed unit and what waits for an end that moves; return the ends, ``None`` above the limit."""
        end, moved = self._end[:], set[int]()
        for part in (changed, *others):
            for node, last in self._ends(part, end, moved):
                if last == NEVER or last > self._limit_cycles:
                    return None
                if last != end[node]:
                    end[node] = last
                    moved.add(node)
            if not moved:
                break
        return end

    def _ends(self, part: StreamingUnit | Alone, end: list[int], moved: set[int]) -> Iterator[tuple[int, int]]:
        """Yield nodes and when they end: those that wait for a node that has moved, or all where none has yet."""
        waits, work = self._plan.waits, self._plan.work
        if isinstance(part, StreamingUnit):
            if not moved or any(not moved.isdisjoint(waits[node]) for node in part.nodes):
                release = tuple(last_end(end, waits[node]) for node in part.nodes)
                yield from zip(part.nodes, replay_unit(part, release, details=False).end, strict=True)
            return
        for node in part:
            if not moved or not moved.isdisjoint(waits[node]):
                ready = last_end(end, waits[node])
                yield node, NEVER if ready == NEVER else ready + work[node]
