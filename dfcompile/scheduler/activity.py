"""What each task does from its start to its end, and how many elements are in FIFOs meanwhile.

For that a schedule is gone through once more, unit by unit, with every access of a unit in sight, and how long it
waited. The chain of these waits that leads to the end of the last task makes the makespan.
"""

import itertools

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag.dag import CanonicalDag, Int64
from dfcompile.errors import VerificationError
from dfcompile.scheduler.schedules import NO_PE, Schedule
from dfcompile.scheduler.simulation import NO_EDGE
from dfcompile.scheduler.simulation.access_times import relax, step
from dfcompile.scheduler.simulation.plan import ends_come_in_turn, last_end, plan_replay
from dfcompile.scheduler.simulation.progress import Progress
from dfcompile.scheduler.simulation.replay import FINISHED
from dfcompile.scheduler.simulation.simulator import Replaying, replay_of
from dfcompile.scheduler.simulation.stretch import Accesses, StreamingUnit, Stretch, accesses_of_task

MOST_FOLLOWED = 2**22  # elements of one unit whose accesses are looked at one by one: some 200 MB
MOST_FOLLOWED_TOGETHER = 2**24  # of all units: some seconds


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

    def followed(self, number: int) -> Stretch:
        """Find all accesses of a unit, however many repeat: a stretch from its first access to its last.

        Raises:
            VerificationError: it ends in a deadlock.
        """
        unit = self.units[number]
        stretch = Progress(unit, tuple(self.release[node] for node in unit.nodes)).stretch(unit.whole)
        if not (ends_come_in_turn(unit) and relax(stretch)) and any(place != FINISHED for place in step(stretch)):
            raise VerificationError(f"unit of node {unit.nodes[0]}: a deadlock")
        return stretch


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


_LEVELS = 4  # shares of working time that are told apart, from none to all of a step


class Phase(Struct, frozen=True):
    """A part of a task's time in which it works about evenly.

    Attributes:
        begin: first cycle.
        end: cycle after the last.
        worked_cycles: in which it did not wait.
        awaited: the streamed edge that it waited longest for, ``NO_EDGE`` if for none.
    """

    begin: int
    end: int
    worked_cycles: int
    awaited: int


class Activity(Struct, frozen=True, eq=False):
    """What happens in a replayed schedule, in steps of some cycles.

    Attributes:
        step_cycles: length of a step; the last may be shorter.
        phases: of each node on a processing element, in order, from its start to its end; shape [nodes].
        held: elements in all FIFOs at the beginning of each step and at the end, shape [steps + 1].
        working: processing elements that work, on average over each step, shape [steps].
        occupied: processing elements with a task, on average over each step, shape [steps].
        worked_cycles: of all tasks.
        occupied_cycles: of all processing elements.
        path: the chain of waits that makes the makespan, from its end back.
        averaged: tasks of units too large to be followed: of these only mean shares are known.
    """

    step_cycles: int
    phases: tuple[tuple[Phase, ...], ...]
    held: Int64
    working: tuple[float, ...]
    occupied: tuple[float, ...]
    worked_cycles: int
    occupied_cycles: int
    path: tuple[Stay, ...]
    averaged: int


def activity(dag: CanonicalDag, schedule: Schedule, most_steps: int) -> Activity | None:
    """Return what happens in a schedule, in at most so many steps; ``None`` where its times are not of a replay.

    Raises:
        VerificationError: the times of the schedule are not those of its replay.
    """
    if not schedule.timing.is_exact:
        return None
    following = Following(dag, schedule)
    found = _Profiles(dag, schedule, -(-schedule.makespan_cycles // most_steps) or 1)
    for number, is_followed in enumerate(following.is_followed):
        if is_followed:
            found.add(following.followed(number))
    return found.finish(critical_path(following))


class _Profiles:
    """What is known so far, unit after unit."""

    def __init__(self, dag: CanonicalDag, schedule: Schedule, step_cycles: int) -> None:
        self._dag, self._schedule, self._step = dag, schedule, step_cycles
        self._steps = -(-schedule.makespan_cycles // step_cycles)
        self._marks = np.minimum(np.arange(self._steps + 1) * step_cycles, schedule.makespan_cycles)
        self._change = np.zeros(self._steps + 2, dtype=np.int64)
        self._working, self._occupied = np.zeros((2, self._steps), dtype=np.float64)
        self._phases: list[tuple[Phase, ...]] = [() for _ in range(dag.nodes_count)]
        self._seen = np.zeros(dag.edges_count, dtype=np.bool_)

    def add(self, stretch: Stretch) -> None:
        """Take in a unit."""
        unit = stretch.unit
        for place, node in enumerate(unit.nodes):
            if node < self._dag.nodes_count and self._schedule.pe[node] != NO_PE:
                begin, end = int(self._schedule.start[node]), int(self._schedule.last_out[node])
                accesses = accesses_of_task(stretch, place)
                for edge in unit.inputs[place]:
                    accesses.wait[accesses.places[edge][:1]] = 0  # it starts with its first elements
                waits = np.flatnonzero(accesses.wait > 0)
                until = accesses.time[waits]
                since = np.maximum(until - accesses.wait[waits], begin)
                waited = np.concatenate([[0], np.cumsum(until - since)])
                # Waited cycles as a broken line over time: level, then rising during each wait.
                times = np.concatenate([[begin], np.stack([since, until], axis=1).ravel(), [end]])
                heights = np.concatenate([[0], np.stack([waited[:-1], waited[1:]], axis=1).ravel(), [waited[-1]]])
                self._add_phases(node, times, heights, (until, accesses.edge[waits], until - since, unit.edges))
        for place, edge in enumerate(unit.edges):
            self._seen[edge] = True
            self._count(stretch.puts(place), 1)
            self._count(stretch.reads(place), -1)

    def finish(self, path: tuple[Stay, ...]) -> Activity:
        """Return what was found; tasks of no unit work all the time, or as much as is left of those not followed."""
        cycles = self._schedule.hardware.cycles(self._dag)
        averaged, tasks = 0, np.flatnonzero(self._schedule.pe != NO_PE)
        for node in tasks.tolist():
            if not self._phases[node]:
                begin, end = int(self._schedule.start[node]), int(self._schedule.last_out[node])
                work = min(int(cycles[node]), end - begin)
                averaged += work < end - begin
                self._add_phases(node, np.array([begin, end]), np.array([0, end - begin - work]), None)
        for edge in np.flatnonzero(self._schedule.streamed & ~self._seen).tolist():
            # count elements of a stream that was not followed as if they came and went evenly
            dag, schedule = self._dag, self._schedule
            source, target, volume = dag.edge_source[edge], dag.edge_target[edge], int(dag.edge_volume[edge])
            arrival = schedule.first_out[source], schedule.last_out[source]
            removal = schedule.start[target], schedule.last_out[target]
            held = [np.interp(self._marks, each, (0, volume)).astype(np.int64) for each in (arrival, removal)]
            self._change[:-1] += np.diff(np.maximum(held[0] - held[1], 0), prepend=0)
        return Activity(
            step_cycles=self._step,
            phases=tuple(self._phases),
            held=np.cumsum(self._change)[:-1],
            working=tuple((self._working / np.diff(self._marks)).tolist()),
            occupied=tuple((self._occupied / np.diff(self._marks)).tolist()),
            worked_cycles=int(cycles[tasks].sum()),
            occupied_cycles=int((self._schedule.last_out[tasks] - self._schedule.start[tasks]).sum()),
            path=path,
            averaged=averaged,
        )

    def _count(self, times: Int64, change: int) -> None:
        """Count elements from the first mark on that is not before them."""
        np.add.at(self._change, -(-times // self._step), change)

    def _add_phases(
        self, node: int, times: Int64, waited: Int64, waits: tuple[Int64, Int64, Int64, tuple[int, ...]] | None
    ) -> None:
        begin, end = int(times[0]), int(times[-1])
        first, last = begin // self._step, -(-end // self._step)
        marks = np.clip(self._marks[first : last + 1], begin, end)
        lost = np.diff(np.rint(np.interp(marks, times, waited)).astype(np.int64))
        lasting = np.diff(marks)
        self._occupied[first:last] += lasting
        self._working[first:last] += lasting - lost
        level = (2 * _LEVELS * (lasting - lost) + lasting) // np.maximum(2 * lasting, 1)  # rounded
        bounds = [0, *(np.flatnonzero(np.diff(level)) + 1).tolist(), len(level)]
        phases = []
        for left, right in itertools.pairwise(bounds):
            since, until, gone = int(marks[left]), int(marks[right]), int(lost[left:right].sum())
            if until > since:
                awaited = NO_EDGE if waits is None or not gone else _longest(waits, since, until)
                phases.append(Phase(since, until, until - since - gone, awaited))
        self._phases[node] = tuple(phases)


def _longest(waits: tuple[Int64, Int64, Int64, tuple[int, ...]], since: int, until: int) -> int:
    """Return the edge that was awaited longest by waits that end in some cycles, or by the first one after."""
    ends, edge, cycles, edges = waits
    left, right = np.searchsorted(ends, (since, until), side="right").tolist()
    chosen = slice(left, max(right, left + 1))
    if left == len(ends):
        return NO_EDGE
    return edges[int(np.argmax(np.bincount(edge[chosen], weights=cycles[chosen])))]
