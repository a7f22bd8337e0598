"""A schedule gone through once more, unit by unit, with every access of a unit in sight."""

from collections.abc import Iterator

import numpy as np

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.scheduler.schedules import Schedule
from dfcompile.scheduler.simulation.accesses import FollowedUnit, follow_unit
from dfcompile.scheduler.simulation.plan import last_end, plan_replay
from dfcompile.scheduler.simulation.simulator import replay_of
from dfcompile.scheduler.simulation.stretch import StreamingUnit

MOST_FOLLOWED = 2**22  # elements of one unit whose accesses are looked at one by one: some 200 MB
MOST_FOLLOWED_TOGETHER = 2**24  # of all units: some seconds


class Following:
    """The units of a replayed schedule, each with the times from which its tasks may run."""

    def __init__(self, dag: CanonicalDag, schedule: Schedule) -> None:
        """Cut the schedule into units.

        Args:
            dag: the graph.
            schedule: of it, with the times of its replay.
        """
        self.dag, self.schedule = dag, schedule
        self.plan = plan_replay(dag, replay_of(schedule))
        self.release = [0] * len(self.plan.work)
        self.end = [0] * len(self.plan.work)
        self.units = [part for part in self.plan.sequence if isinstance(part, StreamingUnit)]
        self.unit_of = {node: number for number, unit in enumerate(self.units) for node in unit.nodes}
        self._followed = _followed(self.units)

    def is_followed(self, unit: int) -> bool:
        """Whether the accesses of a unit, by its number, are few enough to be looked at."""
        return self._followed[unit]

    def attempts(self) -> Iterator[Iterator[FollowedUnit]]:
        """Yield ways through the units that are followed; each finds release and end of each node as it goes.

        Configurations of a mapping come one after another: where nothing runs from one block to the next, the later
        one may have been kept waiting. That is the second way, for where the first does not end `as_scheduled`.
        """
        yield self._run([0] * self.dag.nodes_count)
        yield self._run(_cuts(self.dag, self.schedule))

    @property
    def is_as_scheduled(self) -> bool:
        """Whether all tasks ended when the schedule says."""
        tasks = np.flatnonzero(self.dag.is_computational)
        ends = np.array(self.end[: self.dag.nodes_count], dtype=np.int64)
        return bool((ends[tasks] == self.schedule.last_out[tasks]).all())

    def followed(self, unit: int) -> FollowedUnit:
        """Follow a unit, by its number, once more; its releases are known."""
        nodes = self.units[unit].nodes
        return follow_unit(self.units[unit], tuple(self.release[node] for node in nodes))

    def _run(self, begin: list[int]) -> Iterator[FollowedUnit]:
        number = 0
        for part in self.plan.sequence:
            if isinstance(part, StreamingUnit):
                for node in part.nodes:
                    self._let_go(node, begin)
                followed = self._follow(part, is_followed=self._followed[number])
                number += 1
                if followed is not None:
                    yield followed
            else:
                for node in part:
                    self._let_go(node, begin)
                    self.end[node] = self.release[node] + self.plan.work[node]

    def _let_go(self, node: int, begin: list[int]) -> None:
        ready = last_end(self.end, self.plan.waits[node])
        self.release[node] = max(ready, begin[node]) if node < len(begin) else ready

    def _follow(self, unit: StreamingUnit, *, is_followed: bool) -> FollowedUnit | None:
        if not is_followed:
            for node in unit.nodes:
                if node < self.dag.nodes_count:
                    self.end[node] = int(self.schedule.last_out[node])
            return None
        found = follow_unit(unit, tuple(self.release[node] for node in unit.nodes))
        for place, node in enumerate(unit.nodes):
            self.end[node] = found.end(place)
        return found


def _followed(units: list[StreamingUnit]) -> list[bool]:
    """Return which units are followed: the smallest ones, as long as all together are not too large."""
    elements = [sum(unit.volume(edge) for edge in range(len(unit.edges))) for unit in units]
    left, followed = MOST_FOLLOWED_TOGETHER, [False] * len(units)
    for number in sorted(range(len(units)), key=lambda number: elements[number]):
        if elements[number] > min(left, MOST_FOLLOWED):
            break
        left -= elements[number]
        followed[number] = True
    return followed


def _cuts(dag: CanonicalDag, schedule: Schedule) -> list[int]:
    """Return the last cycle before each node's block that separates what ran before from it and all after, [nodes]."""
    tasks = np.flatnonzero(dag.is_computational)
    count = int(schedule.block.max(initial=-1)) + 1
    ended, begun = np.zeros(count + 1, dtype=np.int64), np.full(count + 1, np.iinfo(np.int64).max, dtype=np.int64)
    np.maximum.at(ended, schedule.block[tasks] + 1, schedule.last_out[tasks])
    np.minimum.at(begun, schedule.block[tasks], schedule.start[tasks])
    ended = np.maximum.accumulate(ended)
    begun = np.minimum.accumulate(begun[::-1])[::-1]
    cut = np.where(ended <= begun, ended, 0)[:count]
    latest: list[int] = np.maximum.accumulate(cut)[schedule.block].tolist() if count else []
    return latest
