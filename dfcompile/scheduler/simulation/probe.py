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
        self._limit_cycles = limit_cycles
        self._sequence = list(plan.sequence)
        self._waits = plan.waits
        self._work = plan.work
        self._end = [NEVER] * len(plan.work)
        for part in plan.sequence:
            for node, end in self._ends(part, {}):
                self._end[node] = end

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The streamed edges whose FIFOs can stop each other, group by group."""
        return tuple(part.edges for part in self._sequence if isinstance(part, StreamingUnit) and part.edges)

    def lower(self, group: tuple[int, ...], capacity: Mapping[int, int]) -> bool:
        """Give FIFOs of one group new capacities if the makespan stays within the limit; return whether it does."""
        place, unit = next(
            (place, part)
            for place, part in enumerate(self._sequence)
            if isinstance(part, StreamingUnit) and part.edges == group
        )
        sizes = tuple(capacity.get(edge, size) for edge, size in zip(unit.edges, unit.capacity, strict=True))
        self._sequence[place] = replace(unit, capacity=sizes)
        before: dict[int, int] = {}
        if self._stays_within_limit(place, before):
            return True
        self._sequence[place] = unit
        for node, end in before.items():
            self._end[node] = end
        return False

    def _stays_within_limit(self, place: int, before: dict[int, int]) -> bool:
        """Replay a changed unit and what waits for an end that moves; ``before`` takes in the ends as they were."""
        for part in self._sequence[place:]:
            for node, end in self._ends(part, before):
                if end == NEVER or end > self._limit_cycles:
                    return False
                if end != self._end[node]:
                    before[node], self._end[node] = self._end[node], end
            if not before:
                return True
        return True

    def _ends(self, part: StreamingUnit | Alone, moved: Mapping[int, int]) -> Iterator[tuple[int, int]]:
        """Yield nodes and when they end: those that wait for a node that has moved, or all where none has yet."""
        if not isinstance(part, StreamingUnit):
            for node in part:
                if not moved or not moved.keys().isdisjoint(self._waits[node]):
                    release = last_end(self._end, self._waits[node])
                    yield node, NEVER if release == NEVER else release + self._work[node]
        elif not moved or any(not moved.keys().isdisjoint(self._waits[node]) for node in part.nodes):
            release_of = tuple(last_end(self._end, self._waits[node]) for node in part.nodes)
            yield from zip(part.nodes, replay_unit(part, release_of, details=False).end, strict=True)
