"""A schedule gone through once more, unit by unit, with every access of a unit in sight, and how long it waited.

The chain of these waits that leads to the end of the last task makes the makespan.
"""

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag.dag import CanonicalDag, Int64
from dfcompile.errors import VerificationError
from dfcompile.scheduler.schedules import Schedule
from dfcompile.scheduler.simulation.access_times import relax, step
from dfcompile.scheduler.simulation.occupancy import Accesses, accesses_of_task
from dfcompile.scheduler.simulation.plan import ends_come_in_turn, last_end, plan_replay
from dfcompile.scheduler.simulation.progress import Progress
from dfcompile.scheduler.simulation.replay import FINISHED
from dfcompile.scheduler.simulation.simulator import Replaying, replay_of
from dfcompile.scheduler.simulation.stretch import StreamingUnit, Stretch

MOST_FOLLOWED = 2**22  # elements of one unit whose accesses are looked at one by one: some 200 MB
MOST_FOLLOWED_TOGETHER = 2**24  # of all units: some seconds


def follow_unit(unit: StreamingUnit, release: tuple[int, ...]) -> Stretch:
    """Find all accesses of a unit, however many repeat: a stretch from its first access to its last.

    Args:
        unit: the tasks.
        release: cycle from which on each node may run.

    Raises:
        VerificationError: it ends in a deadlock.
    """
    stretch = Progress(unit, release).stretch(unit.whole)
    if not (ends_come_in_turn(unit) and relax(stretch)) and any(place != FINISHED for place in step(stretch)):
        raise VerificationError(f"unit of node {unit.nodes[0]}: a deadlock")
    return stretch


class Following:
    """The units of a replayed schedule, each with the times from which its tasks may run.

    Configurations of a mapping come one after another: where nothing runs from one block to the next, the later one may
    have been kept waiting.

    Attributes:
        dag: the graph.
        plan: of the replay.
        units: of several tasks.
        unit_of: number of the unit of each node that is in one.
        is_followed: whether the accesses of each unit are few enough to be looked at.
        release: cycle from which on each node may run, barriers included.
        end: cycle in which each node has ended, barriers included.
    """

    def __init__(self, dag: CanonicalDag, schedule: Schedule) -> None:
        """Cut the schedule into units.

        Args:
            dag: the graph.
            schedule: of it, with the times of its replay.

        Raises:
            VerificationError: its times are not those of its replay.
        """
        self.dag = dag
        self.plan = plan_replay(dag, replay_of(schedule))
        self.units = self.plan.units
        self.unit_of = {node: number for number, unit in enumerate(self.units) for node in unit.nodes}
        self.is_followed = _followed(self.units)
        tasks = dag.is_computational
        for earliest in (None, _cuts(dag, schedule)):
            replaying = Replaying(dag, self.plan, earliest, details=False)
            if np.array_equal(replaying.run().end[tasks], schedule.last_out[tasks]):
                break
        else:
            raise VerificationError(f"schedule of {dag.name!r}: its times are not those of a replay")
        waits, first, self.end = self.plan.waits, replaying.earliest, replaying.end
        self.release = [last_end(self.end, *each) for each in zip(waits, first, strict=True)]

    def followed(self, unit: int) -> Stretch:
        """Follow a unit, by its number, once more; its releases are known."""
        nodes = self.units[unit].nodes
        return follow_unit(self.units[unit], tuple(self.release[node] for node in nodes))


def _followed(units: list[StreamingUnit]) -> list[bool]:
    """Return which units are followed: the smallest ones, as long as all together are not too large."""
    elements = [sum(unit.volume) for unit in units]
    left, followed = MOST_FOLLOWED_TOGETHER, [False] * len(units)
    for number in sorted(range(len(units)), key=lambda number: elements[number]):
        if elements[number] > min(left, MOST_FOLLOWED):
            break
        left -= elements[number]
        followed[number] = True
    return followed


def _cuts(dag: CanonicalDag, schedule: Schedule) -> Int64:
    """Return the last cycle before each node's block that separates what ran before from it and all after, [nodes]."""
    tasks = np.flatnonzero(dag.is_computational)
    count = int(schedule.block.max(initial=-1)) + 1
    ended, begun = np.zeros(count + 1, dtype=np.int64), np.full(count + 1, np.iinfo(np.int64).max, dtype=np.int64)
    np.maximum.at(ended, schedule.block[tasks] + 1, schedule.last_out[tasks])
    np.minimum.at(begun, schedule.block[tasks], schedule.start[tasks])
    ended = np.maximum.accumulate(ended)
    begun = np.minimum.accumulate(begun[::-1])[::-1]
    cut = np.where(ended <= begun, ended, 0)[:count]
    latest: Int64 = np.maximum.accumulate(cut)[schedule.block]
    return latest


_MOST_LINKS = 2**17  # waits for single elements that are gone back over: about a second


class Stay(Struct, frozen=True):
    """A stretch of the chain during which one task is what everything waits for.

    Attributes:
        node: the task.
        begin: cycle in which its own wait ended.
        end: cycle in which the next one of the chain could go on.
    """

    node: int
    begin: int
    end: int


def critical_path(following: Following) -> tuple[Stay, ...]:
    """Return the chain from the end of the makespan back, stays of no time left out.

    From the end of the last task it goes back to that task's latest wait; then to the task that ended this wait, at
    that access, and so on; before its first access a task waits for its release, which is the end of another one. Where
    units are too large to be followed a whole task stays, and the chain goes on with its release. Beyond some 100,000
    links it ends early.
    """
    return tuple(_Chain(following).stays())


class _Chain:
    def __init__(self, following: Following) -> None:
        self._following = following
        self._tasks = following.dag.nodes_count
        self._unit: tuple[int, Stretch] | None = None
        self._accesses: dict[int, tuple[Accesses, Int64]] = {}  # of the unit, with the places of those that waited
        self._stays: list[Stay] = []

    def stays(self) -> list[Stay]:
        end = self._following.end
        node, place = max(range(len(end)), key=lambda number: (end[number], -number), default=0), -1
        now = end[node] if end else 0
        for _ in range(_MOST_LINKS):
            if now <= 0:
                break
            node, place, now = self._before(node, place, now)
        return self._stays

    def _before(self, node: int, place: int, now: int) -> tuple[int, int, int]:
        """Go back from an access of a node (-1: its end) to the access of the one it waited for."""
        following = self._following
        number = following.unit_of.get(node)
        if number is None or not following.is_followed[number]:
            return self._released(node, following.release[node], now)
        stretch = self._followed(number)
        unit = stretch.unit
        local = unit.nodes.index(node)
        accesses, waited = self._accesses_of(stretch, local)
        last = len(waited) if place < 0 else int(np.searchsorted(waited, place, side="right"))
        if not last:
            return self._released(node, stretch.clock[local], now)
        at = waited[last - 1]
        time, edge = int(accesses.time[at]), int(accesses.edge[at])
        row = int(np.searchsorted(accesses.places[edge], at))
        self._stay(node, time, now)
        if unit.target[edge] == local:
            other = unit.source[edge]
        else:
            other, row = unit.target[edge], row - unit.capacity[edge]
        return unit.nodes[other], int(self._accesses_of(stretch, other)[0].places[edge][row]), time

    def _released(self, node: int, release: int, now: int) -> tuple[int, int, int]:
        """Go back over a node from its beginning to the one whose end it waited for."""
        self._stay(node, release, now)
        following = self._following
        number = following.unit_of.get(node)
        waits = list(following.plan.waits[node])
        if number is not None:
            unit = following.units[number]
            waits += [unit.nodes[other] for other in unit.waits[unit.nodes.index(node)]]
        ended = [other for other in waits if following.end[other] == release]
        if not ended and release > 0:  # kept waiting by another configuration
            ended = [other for other in range(self._tasks) if following.end[other] == release]
        return (ended[0], -1, release) if ended else (node, -1, 0)

    def _stay(self, node: int, begin: int, end: int) -> None:
        if begin < end and node < self._tasks:
            self._stays.append(Stay(node, begin, end))

    def _followed(self, number: int) -> Stretch:
        if self._unit is None or self._unit[0] != number:
            self._unit = number, self._following.followed(number)
            self._accesses = {}
        return self._unit[1]

    def _accesses_of(self, stretch: Stretch, node: int) -> tuple[Accesses, Int64]:
        if node not in self._accesses:
            accesses = accesses_of_task(stretch, node)
            self._accesses[node] = accesses, np.flatnonzero(accesses.wait > 0)
        return self._accesses[node]
