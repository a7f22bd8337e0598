"""Replays schedules with bounded FIFOs, and gives them the times of their replay.

`MakespanProbe` asks again and again whether other capacities would delay a schedule. Groups of tasks are replayed each
by itself, as if all that it reads of others were there.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping

import numpy as np

from dfcompile.canonical_dag.dag import Bool, CanonicalDag, Int32, Int64, frozen
from dfcompile.canonical_dag.hardware import Hardware
from dfcompile.errors import VerificationError
from dfcompile.host.stages import counted
from dfcompile.options import Timing
from dfcompile.records import replace
from dfcompile.scheduler.schedules import Schedule
from dfcompile.scheduler.simulation.plan import Alone, Plan, check_sizes, is_too_large, last_end, plan_replay, waits_of
from dfcompile.scheduler.simulation.replay import NEVER, NO_NODE, Replay, Simulation, UnitTimes, Wait, check_replay
from dfcompile.scheduler.simulation.stretch import StreamingUnit, wait_cycle
from dfcompile.scheduler.simulation.unit_replay import replay_unit, without_twins


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


def simulate_plan(dag: CanonicalDag, plan: Plan, *, details: bool = True, earliest: Int64 | None = None) -> Simulation:
    """Replay a schedule of which a plan has been made; see `simulate`.

    Args:
        dag: the graph.
        plan: of its replay.
        details: whether to find stalls and peaks too.
        earliest: cycle from which on each node may run; 0 without, shape [nodes].
    """
    return Replaying(dag, plan, earliest, details=details).run()


class Replaying:
    """The columns of the result, filled unit by unit.

    Attributes:
        earliest: cycle from which on each node may run, barriers included.
        end: cycle in which each node has ended, or ``NEVER``, barriers included.
    """

    def __init__(self, dag: CanonicalDag, plan: Plan, earliest: Int64 | None, *, details: bool) -> None:
        """Begin with nothing; see `simulate_plan`."""
        self._dag, self._plan, self._details = dag, plan, details
        self.earliest = [0] * len(plan.work)
        if earliest is not None:
            self.earliest[: len(earliest)] = earliest.tolist()
        self._start, self.end = ([NEVER] * len(plan.work) for _ in range(2))
        self._of_edges = np.zeros((3, dag.edges_count), dtype=np.int64)  # stalls of reads and of writes, and peaks
        self._deadlock: tuple[Wait, ...] = ()
        self._known: dict[tuple[Hashable, tuple[int, ...]], UnitTimes] = {}

    def run(self) -> Simulation:
        """Replay all."""
        check_sizes(self._dag, self._plan)
        for part in counted(self._plan.sequence):
            if isinstance(part, StreamingUnit):
                self._replay(part)
                continue
            for node in part:
                self._start[node] = release = last_end(self.end, self._plan.waits[node], self.earliest[node])
                self.end[node] = NEVER if release == NEVER else release + self._plan.work[node]
        nodes = self._dag.nodes_count
        end = np.array(self.end[:nodes], dtype=np.int64)
        read_stall, write_stall, peak = frozen(self._of_edges)
        start, makespan = np.array(self._start[:nodes], dtype=np.int64), int(end.max(initial=0))
        times = NEVER if self._deadlock else makespan, frozen(start), frozen(end)
        return Simulation(*times, read_stall, write_stall, peak, self._deadlock)

    def _replay(self, unit: StreamingUnit) -> None:
        waits, earliest = self._plan.waits, self.earliest
        release = tuple(last_end(self.end, waits[node], earliest[node]) for node in unit.nodes)
        times = self._times(unit, release)
        if times.stuck:
            self._deadlock = self._deadlock or wait_cycle(unit, times.stuck, self._dag.nodes_count)
        for node, start, end in zip(unit.nodes, times.start, times.end, strict=True):
            self._start[node], self.end[node] = start, end
        self._of_edges[:, list(unit.edges)] = times.read_stall, times.write_stall, times.peak

    def _times(self, unit: StreamingUnit, release: tuple[int, ...]) -> UnitTimes:
        """Replay a unit, unless one of its shape has been that could begin as much earlier as all its nodes could."""
        if NEVER in release:
            return replay_unit(unit, release, details=self._details)
        begin = min(release)
        key = unit.shape, tuple(cycle - begin for cycle in release)
        if key not in self._known:
            self._known[key] = replay_unit(unit, key[1], details=self._details)
        return self._known[key].later(begin)


def replayed(dag: CanonicalDag, schedule: Schedule) -> Schedule:
    """Return a schedule with the times that a replay of it takes.

    Raises:
        VerificationError: the replay ends in a deadlock.
        ReplayTooLargeError: the replay is too large.
    """
    replay = settled_replay(dag, schedule) or simulate(dag, replay_of(schedule), details=False)
    if replay.deadlock:
        link = replay.deadlock[0].text(dag)
        raise VerificationError(f"schedule of {dag.name!r} on {schedule.pes} processing elements: deadlock, {link}")
    return with_times_of(dag, schedule, replay)


def settled_replay(dag: CanonicalDag, schedule: Schedule) -> Simulation | None:
    """Return the replay of a schedule without FIFOs and barriers if it takes the times that were planned, else none.

    Each node runs from the last end that it waits for, and nobody waits for himself in the end. So only one set of
    times meets the equations of all nodes: that which a replay node by node finds.

    Raises:
        VerificationError: the replay does not fit the graph.
    """
    if schedule.barrier or bool(schedule.streamed.any()):
        return None
    replay, end = replay_of(schedule), schedule.last_out
    check_replay(dag, replay)
    waiting, awaited, _ = waits_of(dag, replay)
    release = np.zeros(dag.nodes_count, dtype=np.int64)
    np.maximum.at(release, waiting, end[awaited])
    if not (np.array_equal(schedule.start, release) and np.array_equal(end, release + schedule.hardware.cycles(dag))):
        return None
    nothing = frozen(np.zeros(dag.edges_count, dtype=np.int64))
    return Simulation(int(end.max(initial=0)), frozen(release), end, nothing, nothing, nothing, ())


def with_times_of(dag: CanonicalDag, schedule: Schedule, replay: Simulation) -> Schedule:
    """Return a schedule with the times of a replay that ended."""
    start = np.where(dag.is_computational, replay.start, np.minimum(replay.start, replay.end))
    first_out = first_outputs(dag, schedule.streamed, start, replay.end, schedule.hardware)
    return replace(
        schedule,
        timing=Timing.EXACT,
        start=frozen(start),
        first_out=frozen(first_out),
        last_out=replay.end,
        makespan_cycles=replay.makespan_cycles,
    )


def first_outputs(dag: CanonicalDag, streamed: Bool, start: Int64, end: Int64, hardware: Hardware) -> Int64:
    """Return when each node hands on its first element, shape [nodes].

    That is the latest time that its readers and its own last element allow: nothing else depends on it.
    """
    first_out = np.where(dag.is_computational, end - np.maximum(dag.volume_out - 1, 0), end)
    edges = np.flatnonzero(streamed)
    read = start[dag.edge_target[edges]] + hardware.turns(dag)[0][edges]
    np.minimum.at(first_out, dag.edge_source[edges], read - hardware.hop_cycles)
    return first_out


def replay_of(schedule: Schedule) -> Replay:
    """Return what of a schedule the simulator replays."""
    on_chip = schedule.streamed, schedule.fifo_capacity
    return Replay(schedule.pe, schedule.start, *on_chip, schedule.block, schedule.barrier, schedule.hardware)


class MakespanProbe:
    """A replay whose capacities can be lowered as long as its makespan stays within a limit.

    Only the tasks that stream together with a changed FIFO are replayed, and those that wait for one that ends later.

    Attributes:
        groups: the streamed edges whose FIFOs can stop each other, group by group.
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
        units = ((at, part) for at, part in enumerate(plan.sequence) if isinstance(part, StreamingUnit))
        self._place = {unit.edges: at for at, unit in units if unit.edges}
        self.groups = tuple(self._place)
        self._end = [NEVER] * len(plan.work)
        for part in plan.sequence:
            for node, last in self._ends(part, self._end, set()):
                self._end[node] = last

    def lower(self, group: tuple[int, ...], capacity: Mapping[int, int]) -> bool:
        """Give FIFOs of one group new capacities if the makespan stays within the limit; return whether it does."""
        place = self._place[group]
        unit = self._sequence[place]
        assert isinstance(unit, StreamingUnit)
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


NODE_ACCESSES = 500  # a node costs about as much as so many accesses
_ROUNDS = 8  # before a unit repeats
_FEWEST_SAMPLES = 16
_TOO_MANY = 2**62  # of a unit that no replay takes
_FIRST_ACCESSES = 4096  # of an edge, before a unit is looked at for repetitions


def replay_apart(dag: CanonicalDag, replay: Replay, group: Int32, release: Int64 | None = None) -> Simulation:
    """Replay each group by itself; where tasks run does not matter.

    Args:
        dag: the graph.
        replay: what streams, and through which FIFOs.
        group: of each node; what streams together is of one group, shape [nodes].
        release: cycle of its group from which on each node may run; 0 without, shape [nodes].

    Raises:
        VerificationError: the replay does not fit the graph, or a group ends in a deadlock.
        ReplayTooLargeError: a group is too large.
    """
    plan, groups = plan_replay(dag, _each_on_its_own(dag, replay)), group.tolist()
    inside = (
        tuple(other for other in others if groups[other] == groups[node]) for node, others in enumerate(plan.waits)
    )
    found = simulate_plan(dag, replace(plan, waits=tuple(inside)), earliest=release)
    if found.deadlock:
        raise VerificationError(f"group of {dag.node_name(found.deadlock[0].node)!r}: a deadlock by itself")
    return found


def replay_sample(dag: CanonicalDag, replay: Replay, most: int) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield nodes that stream together and the cycles that they take by themselves; none where they deadlock.

    Args:
        dag: the graph.
        replay: what streams, and through which FIFOs.
        most: accesses that all may cost together: of what costs too much nothing is replayed, of the others as much
            as possible, evenly spread.
    """
    units = plan_replay(dag, _each_on_its_own(dag, replay)).units
    accesses = _accesses_of_each(units)
    small = [number for number, own in enumerate(accesses) if own * _FEWEST_SAMPLES <= most]
    total = sum(accesses[number] for number in small)
    known: dict[Hashable, int | None] = {}  # units of one shape take as long: most are of few
    for number in small[:: max(-(-total // most), 1)]:
        unit = units[number]
        shape = unit.shape
        if shape not in known:
            times = replay_unit(unit, tuple(0 for _ in unit.nodes), details=False)
            known[shape] = None if times.stuck else max(times.end)
        cycles = known[shape]
        if cycles is not None:
            yield unit.nodes, cycles


def accesses_of(dag: CanonicalDag, plan: Plan) -> int:
    """Return about how many accesses a replay has to look at, nodes included; an estimate."""
    return dag.nodes_count * NODE_ACCESSES + sum(_accesses_of_each(plan.units))


def _accesses_of_each(units: Iterable[StreamingUnit]) -> list[int]:
    """Return the accesses of units, looked at once for each shape."""
    known: dict[Hashable, int] = {}
    found = []
    for unit in units:
        shape = unit.shape
        if shape not in known:
            known[shape] = _accesses(unit)
        found.append(known[shape])
    return found


def _accesses(unit: StreamingUnit) -> int:
    if is_too_large(unit):
        return _TOO_MANY
    volumes = without_twins(unit, (0,) * len(unit.nodes))[0].volume
    return sum(min(volume, max(_ROUNDS * volume // unit.rounds, _FIRST_ACCESSES)) for volume in volumes)


def _each_on_its_own(dag: CanonicalDag, replay: Replay) -> Replay:
    own = np.where(dag.is_computational, np.arange(dag.nodes_count), NO_NODE).astype(np.int32)
    return replace(replay, pe=own, barrier=False)
