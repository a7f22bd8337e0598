"""Schedules with the times of their replay: FIFOs first, then what everything takes with them.

No FIFO holds more than what is asked for, if anything is.
"""

from collections.abc import Iterator

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag.dag import CanonicalDag, Int64
from dfcompile.errors import ReplayTooLargeError
from dfcompile.options import Fifos
from dfcompile.records import replace
from dfcompile.scheduler import fifo
from dfcompile.scheduler.schedules import Schedule
from dfcompile.scheduler.simulation import Simulation, simulate, simulator
from dfcompile.scheduler.simulation.plan import Plan as ReplayPlan
from dfcompile.scheduler.simulation.plan import plan_replay
from dfcompile.scheduler.steady_schedule import Plan

MOST_ACCESSES = 2**24  # of one replay: half a second, and up to ten replays are made
MOST_WORK = 2**60  # cycles of all tasks: times of a replay fit in 64 bits with room to spare


class ReplayedSchedule(Struct, frozen=True, eq=False):
    """A schedule and the replay of it.

    Attributes:
        schedule: with the times of the replay; in a deadlock there are none, and it has those planned.
        replay: of the schedule with its FIFOs.
    """

    schedule: Schedule
    replay: Simulation

    @property
    def order(self) -> tuple[bool, int, int]:
        """By which the better of two is the smaller one: it ends, is shorter, has smaller FIFOs."""
        return bool(self.replay.deadlock), self.schedule.makespan_cycles, int(self.schedule.fifo_capacity.sum())


def exact_schedules(plan: Plan, steady: Schedule, fifos: Fifos) -> Iterator[ReplayedSchedule]:
    """Yield schedules of a partition with FIFOs of the sizes asked for, and what they take.

    With barriers there is one. Without, gangs stand where they were planned, and where they are placed by the times
    that each takes by itself; and the schedule with barriers, if the partition has one, is run without them: so going
    without never costs.

    Args:
        plan: the partition.
        steady: its schedule with steady times.
        fifos: ``in-flight``, ``rule``, ``minimal`` or a number of elements.

    Raises:
        ReplayTooLargeError: there are too many elements to be looked at one by one.
    """
    dag = plan.dag
    if not is_replayable(dag, steady, MOST_ACCESSES):
        raise ReplayTooLargeError(f"replay of {dag.name!r}: more than about {MOST_ACCESSES} accesses")
    if plan.barrier:
        yield _sized(dag, steady, None, fifos)
        return
    inside = steady.streamed & (steady.block[dag.edge_source] == steady.block[dag.edge_target])
    gangs = plan.gangs(inside)
    paced = np.array(gangs.last_out, dtype=np.int64)
    alone = replace(simulator.replay_of(steady), streamed=inside)
    capacity, times = fifo.in_flight_apart(dag, alone, gangs.gang, paced)
    first_out = simulator.first_outputs(dag, inside, times.start, times.end, gangs.hardware)
    exact = replace(gangs, start=times.start.tolist(), first_out=first_out.tolist(), last_out=times.end.tolist())
    for placed in (steady, plan.placed(exact, inside, plan.rule_inside(gangs, inside))):
        yield _sized(dag, placed, fifo.with_relays(dag, placed.streamed & ~inside, capacity), fifos)
    if np.bincount(plan.blocks.block[dag.is_computational], minlength=1).max() <= plan.options.pes:
        with_barriers = replace(plan, barrier=True).steady()
        capacity = fifo.in_flight(dag, simulator.replay_of(with_barriers))[0]
        yield _sized(dag, replace(with_barriers, barrier=False), capacity, fifos)


def replayed_once(dag: CanonicalDag, planned: Schedule, most_accesses: int) -> ReplayedSchedule | None:
    """Return a schedule with its FIFOs as they are, and what it takes; ``None`` if that is not `is_replayable`.

    Where nothing streams and each node begins as soon as it may, there is nothing to look at one by one.
    """
    found = simulator.settled_replay(dag, planned)
    if found is not None:
        return _with_times(dag, planned, found)
    plan = _plan_within(dag, planned, most_accesses)
    return None if plan is None else _with_times(dag, planned, simulator.simulate_plan(dag, plan, details=False))


def is_replayable(dag: CanonicalDag, schedule: Schedule, most_accesses: int) -> bool:
    """Return whether a replay looks at no more than so many accesses, and its times fit in 64 bits."""
    return _plan_within(dag, schedule, most_accesses) is not None


def _plan_within(dag: CanonicalDag, schedule: Schedule, most_accesses: int) -> ReplayPlan | None:
    if sum(dag.work.tolist()) > MOST_WORK or dag.nodes_count * simulator.NODE_ACCESSES > most_accesses:
        return None
    plan = plan_replay(dag, simulator.replay_of(schedule))
    return plan if simulator.accesses_of(dag, plan) <= most_accesses else None


def _sized(dag: CanonicalDag, planned: Schedule, capacity: Int64 | None, fifos: Fifos) -> ReplayedSchedule:
    """Return a schedule with FIFOs of the sizes asked for.

    Args:
        dag: the graph.
        planned: the schedule, with FIFOs of the published sizes.
        capacity: for the elements in flight; ``None`` if they are still to be looked for, where they count.
        fifos: ``in-flight``, ``rule``, ``minimal`` or a number of elements.
    """
    if fifos not in {"in-flight", "minimal"}:
        return _replayed(dag, planned, fifo.sizes_asked_for(dag, simulator.replay_of(planned), fifos))
    if capacity is None:
        capacity, replay = fifo.in_flight(dag, simulator.replay_of(planned))
        found = _with_times(dag, replace(planned, fifo_capacity=capacity), replay)
    else:
        found = _replayed(dag, planned, capacity)
    if fifos == "in-flight":
        return found
    largest = replace(simulator.replay_of(planned), fifo_capacity=capacity)
    return _replayed(dag, planned, fifo.minimal_fifo_sizes(dag, largest, found.schedule.makespan_cycles))


def _replayed(dag: CanonicalDag, planned: Schedule, capacity: Int64) -> ReplayedSchedule:
    """Replay with some capacities; what is read after all of it is written goes through memory then.

    By steady times some of it was read earlier.
    """
    sized = replace(planned, fifo_capacity=capacity)
    found = _with_times(dag, sized, simulate(dag, simulator.replay_of(sized), details=False))
    schedule, source, target = found.schedule, dag.edge_source, dag.edge_target
    late = schedule.streamed & (schedule.block[source] != schedule.block[target])
    late &= schedule.start[target] >= schedule.last_out[source]
    if found.replay.deadlock or not late.any():
        return found
    return replace(found, schedule=fifo.without_streams(schedule, late))


def _with_times(dag: CanonicalDag, planned: Schedule, replay: Simulation) -> ReplayedSchedule:
    return ReplayedSchedule(planned if replay.deadlock else simulator.with_times_of(dag, planned, replay), replay)


_CAPPED_ACCESSES = 2**18  # of a replay with smaller FIFOs, where tasks also wait for the end of one another


def limited_schedules(plan: Plan, steady: Schedule, fifos: Fifos) -> Iterator[ReplayedSchedule]:
    """Yield schedules of a partition as `exact_schedules` does, no FIFO above the limit of the plan, if it has one.

    Where one needs more, it is made smaller, which may delay tasks or end in a deadlock; and its edge goes through
    memory, which changes when all others run: both are tried, until nothing is too deep. Of FIFOs in flight the last
    schedule ends.

    Args:
        plan: the partition.
        steady: its schedule with steady times.
        fifos: ``in-flight``, ``rule``, ``minimal`` or a number of elements.

    Raises:
        ReplayTooLargeError: there are too many elements to be looked at one by one.
    """
    for round_number in range(fifo.LIMIT_ROUNDS + 1):
        deep = np.zeros(plan.dag.edges_count, dtype=np.bool_)
        for each in list(exact_schedules(plan, steady, fifos)):
            over = fifo.next_through_memory(plan.dag, each.schedule, plan.options, round_number)
            deep |= over
            yield from _capped(plan, each.schedule) if over.any() else [each]
        if not deep.any():
            return
        plan = plan.through_memory(deep)
        steady = plan.steady()


def limited_steady(plan: Plan, steady: Schedule, fifos: Fifos) -> Schedule:
    """Return the schedule of a partition with steady times, edges through memory whose FIFOs would need too much.

    Its times know nothing of its FIFOs.

    Args:
        plan: the partition.
        steady: its schedule with steady times.
        fifos: ``in-flight``, ``rule``, ``minimal`` or a number of elements.
    """
    for round_number in range(fifo.LIMIT_ROUNDS + 1):
        sized = replace(steady, fifo_capacity=fifo.sizes_asked_for(plan.dag, simulator.replay_of(steady), fifos))
        deep = fifo.next_through_memory(plan.dag, sized, plan.options, round_number)
        if not deep.any():
            break
        plan = plan.through_memory(deep)
        steady = plan.steady()
    return sized


def _capped(plan: Plan, schedule: Schedule) -> Iterator[ReplayedSchedule]:
    """Yield a schedule with all its FIFOs made small enough, where a replay of that is affordable."""
    capped = replace(schedule, fifo_capacity=fifo.cut_capacities(schedule, plan.options))
    found = replayed_once(plan.dag, capped, MOST_ACCESSES if plan.barrier else _CAPPED_ACCESSES)
    if found is not None:
        yield found
