"""What each task does from its start to its end, and how many elements are in FIFOs meanwhile."""

import itertools

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag.dag import CanonicalDag, Int64
from dfcompile.scheduler.activity.following import Following, Stay, critical_path
from dfcompile.scheduler.schedules import NO_PE, Schedule
from dfcompile.scheduler.simulation import NO_EDGE
from dfcompile.scheduler.simulation.occupancy import Accesses, accesses_of_task
from dfcompile.scheduler.simulation.stretch import Stretch

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
                self._add_task(node, accesses_of_task(stretch, place), unit.edges)
        for place, edge in enumerate(unit.edges):
            self._seen[edge] = True
            self._count(stretch.puts(place), 1)
            self._count(stretch.reads(place), -1)

    def finish(self, path: tuple[Stay, ...]) -> Activity:
        """Return what was found; tasks of no unit work all the time, or as much as is left of those not followed."""
        averaged, tasks = 0, np.flatnonzero(self._schedule.pe != NO_PE)
        for node in tasks.tolist():
            if not self._phases[node]:
                begin, end = int(self._schedule.start[node]), int(self._schedule.last_out[node])
                work = min(int(self._dag.work[node]), end - begin)
                averaged += work < end - begin
                self._add_phases(node, np.array([begin, end]), np.array([0, end - begin - work]), None)
        for edge in np.flatnonzero(self._schedule.streamed & ~self._seen).tolist():
            self._spread(edge)
        return Activity(
            step_cycles=self._step,
            phases=tuple(self._phases),
            held=np.cumsum(self._change)[:-1],
            working=tuple((self._working / np.diff(self._marks)).tolist()),
            occupied=tuple((self._occupied / np.diff(self._marks)).tolist()),
            worked_cycles=int(self._dag.work[tasks].sum()),
            occupied_cycles=int((self._schedule.last_out[tasks] - self._schedule.start[tasks]).sum()),
            path=path,
            averaged=averaged,
        )

    def _count(self, times: Int64, change: int) -> None:
        """Count elements from the first mark on that is not before them."""
        np.add.at(self._change, -(-times // self._step), change)

    def _spread(self, edge: int) -> None:
        """Count elements of a stream that was not followed as if they came and went evenly."""
        dag, schedule = self._dag, self._schedule
        source, target, volume = dag.edge_source[edge], dag.edge_target[edge], int(dag.edge_volume[edge])
        arrival = schedule.first_out[source], schedule.last_out[source]
        removal = schedule.start[target], schedule.last_out[target]
        held = [np.interp(self._marks, each, (0, volume)).astype(np.int64) for each in (arrival, removal)]
        there = np.maximum(held[0] - held[1], 0)
        self._change[:-1] += np.diff(there, prepend=0)

    def _add_task(self, node: int, accesses: Accesses, edges: tuple[int, ...]) -> None:
        begin, end = int(self._schedule.start[node]), int(self._schedule.last_out[node])
        waits = np.flatnonzero((accesses.wait > 0) & (accesses.time > begin))
        until = accesses.time[waits]
        since = np.maximum(until - accesses.wait[waits], begin)
        waited = np.concatenate([[0], np.cumsum(until - since)])
        # Waited cycles as a broken line over time: level, then rising during each wait.
        times = np.concatenate([[begin], np.stack([since, until], axis=1).ravel(), [end]])
        heights = np.concatenate([[0], np.stack([waited[:-1], waited[1:]], axis=1).ravel(), [waited[-1]]])
        self._add_phases(node, times, heights, (until, accesses.edge[waits], until - since, edges))

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
    together = np.bincount(edge[chosen], weights=cycles[chosen])
    return edges[int(np.argmax(together))]
