"""Replays schedules with bounded FIFOs, and gives them the times of their replay."""

from collections.abc import Hashable

import numpy as np

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.dag import Bool, Int64
from dfcompile.errors import VerificationError
from dfcompile.host.stages import counted
from dfcompile.options import Timing
from dfcompile.records import replace
from dfcompile.scheduler.schedules import Schedule
from dfcompile.scheduler.simulation.plan import Alone, Plan, check_sizes, last_end, plan_replay
from dfcompile.scheduler.simulation.replay import Replay
from dfcompile.scheduler.simulation.result import NEVER, NO_EDGE, Simulation, Wait, WaitReason
from dfcompile.scheduler.simulation.stepping import FINISHED, NOT_STARTED
from dfcompile.scheduler.simulation.stretch import StreamingUnit
from dfcompile.scheduler.simulation.unit_replay import UnitTimes, replay_unit
from dfcompile.scheduler.simulation.unstreamed import settled


def simulate(dag: CanonicalDag, replay: Replay, *, details: bool = True) -> Simulation:
    """Replay a schedule element by element; see `dfcompile.scheduler.simulation` for the rules.

    Args:
        dag: the graph.
        replay: the schedule without its times.
        details: whether to find stalls and peaks too; they are 0 without.

    Raises:
        VerificationError: the replay does not fit the graph.
        ReplayTooLargeError: so many elements have to be looked at one by one that they would not fit in memory.
    """
    return simulate_plan(dag, plan_replay(dag, replay), details=details)


def simulate_plan(dag: CanonicalDag, plan: Plan, *, details: bool = True) -> Simulation:
    """Replay a schedule of which a plan has been made; see `simulate`."""
    return _Replaying(dag, plan, details=details).run()


class _Replaying:
    """The columns of the result, filled unit by unit."""

    def __init__(self, dag: CanonicalDag, plan: Plan, *, details: bool) -> None:
        self._dag = dag
        self._details = details
        self._plan = plan
        self._start = [NEVER] * len(plan.work)
        self._end = [NEVER] * len(plan.work)
        self._read_stall = np.zeros(dag.edges_count, dtype=np.int64)
        self._write_stall = np.zeros(dag.edges_count, dtype=np.int64)
        self._peak = np.zeros(dag.edges_count, dtype=np.int64)
        self._deadlock: tuple[Wait, ...] = ()
        self._known: dict[tuple[Hashable, tuple[int, ...]], UnitTimes] = {}

    def run(self) -> Simulation:
        check_sizes(self._dag, self._plan)
        for part in counted(self._plan.sequence):
            if isinstance(part, StreamingUnit):
                self._replay(part)
            else:
                self._run_alone(part)
        nodes = self._dag.nodes_count
        end = np.array(self._end[:nodes], dtype=np.int64)
        return Simulation(
            makespan_cycles=NEVER if self._deadlock else int(end.max(initial=0)),
            start=_frozen(np.array(self._start[:nodes], dtype=np.int64)),
            end=_frozen(end),
            read_stall=_frozen(self._read_stall),
            write_stall=_frozen(self._write_stall),
            peak=_frozen(self._peak),
            deadlock=self._deadlock,
        )

    def _run_alone(self, nodes: Alone) -> None:
        start, end, waits, work = self._start, self._end, self._plan.waits, self._plan.work
        for node in nodes:
            start[node] = release = last_end(end, waits[node])
            end[node] = NEVER if release == NEVER else release + work[node]

    def _replay(self, unit: StreamingUnit) -> None:
        release = tuple(last_end(self._end, self._plan.waits[node]) for node in unit.nodes)
        times = self._times(unit, release)
        if times.stuck:
            self._deadlock = self._deadlock or self._wait_cycle(unit, times.stuck)
        for node, start, end in zip(unit.nodes, times.start, times.end, strict=True):
            self._start[node], self._end[node] = start, end
        edges = np.array(unit.edges, dtype=np.int64)
        self._read_stall[edges] = times.read_stall
        self._write_stall[edges] = times.write_stall
        self._peak[edges] = times.peak

    def _times(self, unit: StreamingUnit, release: tuple[int, ...]) -> UnitTimes:
        """Replay a unit, unless one of its shape has been that could begin as much earlier as all its nodes could."""
        if NEVER in release:
            return replay_unit(unit, release, details=self._details)
        begin = min(release)
        key = unit.shape, tuple(cycle - begin for cycle in release)
        if key not in self._known:
            self._known[key] = replay_unit(unit, key[1], details=self._details)
        return self._known[key].later(begin)

    def _wait_cycle(self, unit: StreamingUnit, stuck: tuple[int, ...]) -> tuple[Wait, ...]:
        """Follow the waits from the first stuck node until they close."""
        place: dict[int, int] = {}
        path: list[Wait] = []
        node = next(number for number, edge in enumerate(stuck) if edge != FINISHED)
        while node not in place:
            place[node] = len(path)
            path.append(_wait(unit, node, stuck))
            node = path[-1].on
        cycle = [wait for wait in path[place[node] :] if unit.nodes[wait.node] < self._dag.nodes_count]
        return tuple(
            Wait(
                unit.nodes[wait.node],
                wait.reason,
                unit.nodes[after.node],
                NO_EDGE if wait.edge == NO_EDGE else unit.edges[wait.edge],
            )
            for wait, after in zip(cycle, [*cycle[1:], cycle[0]], strict=True)
        )


def _wait(unit: StreamingUnit, node: int, stuck: tuple[int, ...]) -> Wait:
    """Return what a stuck node of a unit waits for, numbered within the unit."""
    edge = stuck[node]
    if edge == NOT_STARTED:
        on = next(other for other in unit.waits[node] if stuck[other] != FINISHED)
        return Wait(node, WaitReason.END, on, NO_EDGE)
    if edge in unit.inputs[node]:
        return Wait(node, WaitReason.ELEMENT, unit.source[edge], edge)
    return Wait(node, WaitReason.PLACE, unit.target[edge], edge)


def _frozen(column: Int64) -> Int64:
    column.setflags(write=False)
    return column


def replayed(dag: CanonicalDag, schedule: Schedule) -> Schedule:
    """Return a schedule with the times that a replay of it takes.

    Raises:
        VerificationError: the replay ends in a deadlock.
        ReplayTooLargeError: the replay is too large.
    """
    found = settled_replay(dag, schedule) or simulate(dag, replay_of(schedule), details=False)
    if found.deadlock:
        link = found.deadlock[0].text(dag)
        raise VerificationError(f"schedule of {dag.name!r} on {schedule.pes} processing elements: deadlock, {link}")
    return with_times_of(dag, schedule, found)


def settled_replay(dag: CanonicalDag, schedule: Schedule) -> Simulation | None:
    """Return the replay of a schedule in which nothing streams if it takes the times that were planned, else none."""
    return settled(dag, replay_of(schedule), schedule.start, schedule.last_out)


def with_times_of(dag: CanonicalDag, schedule: Schedule, replay: Simulation) -> Schedule:
    """Return a schedule with the times of a replay that ended."""
    start = np.where(dag.is_computational, replay.start, np.minimum(replay.start, replay.end))
    first_out = first_outputs(dag, schedule.streamed, start, replay.end)
    for column in (start, first_out):
        column.setflags(write=False)
    return replace(
        schedule,
        timing=Timing.EXACT,
        start=start,
        first_out=first_out,
        last_out=replay.end,
        makespan_cycles=replay.makespan_cycles,
    )


def first_outputs(dag: CanonicalDag, streamed: Bool, start: Int64, end: Int64) -> Int64:
    """Return when each node hands on its first element, shape [nodes].

    That is the latest time that its readers and its own last element allow: nothing else depends on it.
    """
    first_out = np.where(dag.is_computational, end - np.maximum(dag.volume_out - 1, 0), end)
    edges = np.flatnonzero(streamed)
    np.minimum.at(first_out, dag.edge_source[edges], start[dag.edge_target[edges]])
    return first_out


def replay_of(schedule: Schedule) -> Replay:
    """Return what of a schedule the simulator replays."""
    return Replay(
        pe=schedule.pe,
        order=schedule.start,
        streamed=schedule.streamed,
        fifo_capacity=schedule.fifo_capacity,
        block=schedule.block,
        barrier=schedule.barrier,
    )
