"""The front of the scheduler: from a canonical DAG to a streaming schedule."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

from msgspec import Struct

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.errors import InfeasibleError, ReplayTooLargeError, VerificationError
from dfcompile.options import Effort, Fifos
from dfcompile.plugins import faults_of, is_own
from dfcompile.records import replace
from dfcompile.scheduler import exact_schedule as exact
from dfcompile.scheduler.baseline import schedule_non_streaming
from dfcompile.scheduler.bounds.makespan import lower_bound_cycles
from dfcompile.scheduler.fifo import fifos_of
from dfcompile.scheduler.listing import listed_schedules
from dfcompile.scheduler.listing.list_schedule import is_nearly_shortest, through_memory
from dfcompile.scheduler.options import ScheduleOptions
from dfcompile.scheduler.partitioner import Partitioner, collect_partitioners, find_partitioner
from dfcompile.scheduler.schedules import NonStreamingSchedule, Sample, Schedule
from dfcompile.scheduler.simulation import Wait
from dfcompile.scheduler.simulation.simulator import NODE_ACCESSES, replay_of, replay_sample
from dfcompile.scheduler.steady_schedule import QUICK_NODES, Plan
from dfcompile.scheduler.timing import streamable_edges

_ACCESSES_ONCE = 3 * 2**27  # some seconds: the replay that a mapping of all tasks needs as well
_ACCESSES_QUICKLY = 2**27  # two or three seconds
_SAMPLED_ACCESSES = 2**22  # half a second
_RECHECKED_ACCESSES = 2**24  # of a replay with FIFOs that are never full: some tenths of a second
# Of gangs that are no longer by steady times; quickly, of some hundred tasks.
_GANG_ACCESSES = {Effort.QUICK: 2**18, Effort.DEFAULT: 2**20, Effort.HIGH: 2**20}
_RIVAL_ACCESSES = 2**18  # of one replay: then those of all rivals take less than a second


_Choice: TypeAlias = tuple[Plan, Schedule]  # a partition to be laid out in time, and its schedule with steady times


class TimedSchedule(Struct, frozen=True, eq=False):
    """A schedule and what its times are worth.

    Attributes:
        schedule: with the times of its replay, or steady ones.
        deadlock: the links of one wait cycle if its FIFOs are too small for it to end; its times are those planned.
        sample: where a replay is too large, what some of what streams together take in one, or all with shorter
            streams.
        bound_cycles: what every schedule takes at least, as far as it was proved on the way; 0 if nothing was.
        is_replayed: whether the times are those of a replay of just this schedule; those of elements in flight come
            from one with larger FIFOs.
        non_streaming: the schedule in which nothing streams, if that was made on the way.
    """

    schedule: Schedule
    deadlock: tuple[Wait, ...] = ()
    sample: Sample | None = None
    bound_cycles: int = 0
    is_replayed: bool = False
    non_streaming: NonStreamingSchedule | None = None


def schedule(dag: CanonicalDag, options: ScheduleOptions, table: Mapping[str, Partitioner] | None = None) -> Schedule:
    """Schedule a canonical DAG on P processing elements [dematteis23, section 5].

    Args:
        dag: the graph.
        options: P, the partitioner, whether blocks have barriers, how times are found, whether edges are demoted.
        table: partitioners by name; by default our own and those of plug-ins.

    Raises:
        UserError: no partitioner has the name, or a time does not fit in 64 bits.
        InfeasibleError: the FIFOs asked for are too small for the schedule to end.
    """
    found = timed_schedule(dag, options, table)
    if found.deadlock:
        links = "; ".join(wait.text(dag) for wait in found.deadlock)
        raise InfeasibleError(f"schedule of {dag.name!r} on {options.pes} processing elements: deadlock, {links}")
    return found.schedule


def timed_schedule(
    dag: CanonicalDag,
    options: ScheduleOptions,
    table: Mapping[str, Partitioner] | None = None,
    plan: listed_schedules.ListedPlan | None = None,
    is_enough: Callable[[NonStreamingSchedule], bool] = lambda _: False,
) -> TimedSchedule:
    """Schedule a canonical DAG as `schedule` does, and say what the times are worth.

    With exact timing FIFOs come first, then the times of the replay with them; of several partitions the one counts
    that takes least then. A large schedule has FIFOs by the published rule and is replayed once; where that is too
    large, its times are steady. A partitioner that also looks for list schedules takes these if they are shorter.

    Args:
        dag: the graph.
        options: as of `schedule`.
        table: as of `schedule`.
        plan: of a list schedule of the graph, if one was made before.
        is_enough: of a large graph, whether one of gangs would be of no use beside a schedule in which nothing streams.

    Raises:
        UserError: no partitioner has the name, or a time does not fit in 64 bits.
    """
    partitioner = find_partitioner(options.partition, collect_partitioners() if table is None else table)
    barrier = partitioner.overlapping is None if options.barrier is None else options.barrier
    if partitioner.lists and not barrier and listed_schedules.is_listable(dag, options):
        bound = lower_bound_cycles(dag, options.pes)
        planned = None if plan is None else plan.non_streaming
        non_streaming = schedule_non_streaming(dag, options.pes, options.hardware) if planned is None else planned
        listed = listed_schedules.listed_schedule(dag, options, bound, non_streaming, plan)
        shortest = _listed_or_gangs(dag, partitioner, options, listed)
        if not options.hardware.is_literature and non_streaming.makespan_cycles < shortest.schedule.makespan_cycles:
            shortest = _large(dag, through_memory(dag, options, non_streaming), options.effort)  # streams cost more
        return replace(shortest, bound_cycles=listed.bound, non_streaming=non_streaming)
    is_quick = options.effort is Effort.QUICK and dag.nodes_count > QUICK_NODES and options.fifos is None
    if is_quick and partitioner.lists and not barrier and options.timing.is_exact:
        return _quickly(dag, partitioner, options, is_enough)
    own = _planned(dag, partitioner, options, barrier=barrier)
    if not options.timing.is_exact:
        return TimedSchedule(_steady(own[0], own[1]))
    if is_quick and not barrier:
        return _large(dag, _steady(own[0], own[1]), options.effort)
    try:
        rivals = _rivals(dag, partitioner, options, own)
        least = min(_exact((own, *rivals), fifos_of(options, is_replayed=True)), key=lambda found: found.order)
    except ReplayTooLargeError:
        return _large(dag, _steady(own[0], own[1]), options.effort)
    return TimedSchedule(least.schedule, least.replay.deadlock)


def _listed_or_gangs(
    dag: CanonicalDag, partitioner: Partitioner, options: ScheduleOptions, listed: listed_schedules.ListedSchedule
) -> TimedSchedule:
    """Return the shortest list schedule, or one of gangs where that is no longer and its FIFOs fewer words.

    All gangs are replayed where that costs little; up to some more accesses those that are no longer by steady times.
    Where FIFOs are bounded that is up to many more, whatever the effort, and with barriers, too: these need small ones.
    """
    if listed.found is None:
        return TimedSchedule(listed.planned, sample=listed.sample)
    accesses = sum(dag.edge_volume.tolist()) + dag.nodes_count * NODE_ACCESSES
    is_bounded = options.max_fifo is not None
    most = exact.MOST_ACCESSES if is_bounded else _GANG_ACCESSES[options.effort]
    if accesses > most or (options.effort is Effort.QUICK and listed.found.schedule.makespan_cycles <= listed.bound):
        return TimedSchedule(_with_fifos(dag, listed.found, options), is_replayed=accesses > _RECHECKED_ACCESSES)
    own = _planned(dag, partitioner, options, barrier=False)
    planned = [own, *_rivals(dag, partitioner, options, own)] if accesses <= _RIVAL_ACCESSES else [own]
    if is_bounded and options.barrier is None:
        planned.append(_planned(dag, partitioner, options, barrier=True))
    cycles = listed.found.schedule.makespan_cycles
    if accesses > _RIVAL_ACCESSES or cycles <= listed.bound:
        planned = [each for each in planned if each[1].makespan_cycles <= cycles]
    shortest = min((listed.found, *_exact(planned, "in-flight")), key=lambda found: found.order)
    return TimedSchedule(_with_fifos(dag, shortest, options))


def _quickly(
    dag: CanonicalDag,
    partitioner: Partitioner,
    options: ScheduleOptions,
    is_enough: Callable[[NonStreamingSchedule], bool],
) -> TimedSchedule:
    """Return a large schedule of gangs, or the one in which nothing streams if that is shorter.

    Where the latter can hardly be beaten, or is enough, gangs are not looked at.
    """
    non_streaming = schedule_non_streaming(dag, options.pes, options.hardware)
    cycles = non_streaming.makespan_cycles
    found: TimedSchedule | None = None
    if not is_nearly_shortest(dag, options.pes, cycles) and not is_enough(non_streaming):
        plan, steady = _planned(dag, partitioner, options, barrier=False)
        if steady.makespan_cycles < cycles:
            found = _large(dag, _steady(plan, steady), options.effort)
    if found is None or found.schedule.makespan_cycles > cycles:
        found = _large(dag, through_memory(dag, options, non_streaming), options.effort)
    return replace(found, non_streaming=non_streaming)


def _with_fifos(dag: CanonicalDag, found: exact.ReplayedSchedule, options: ScheduleOptions) -> Schedule:
    """Return a schedule with its FIFOs in flight, or with the smallest if these are asked for: it takes no longer."""
    return (listed_schedules.with_minimal_fifos(dag, found) if options.fifos == "minimal" else found).schedule


def _large(dag: CanonicalDag, steady: Schedule, effort: Effort) -> TimedSchedule:
    """Return a large schedule with the times of one replay with its FIFOs, or steady ones if that is too much, too."""
    found = exact.replayed_once(dag, steady, _ACCESSES_QUICKLY if effort is Effort.QUICK else _ACCESSES_ONCE)
    if found is not None and not found.replay.deadlock:
        return TimedSchedule(found.schedule, is_replayed=True)
    # what some of what streams together take in a replay, beside the plan; ``None`` without any
    planned = taken = 0
    for nodes, cycles in replay_sample(dag, replay_of(steady), _SAMPLED_ACCESSES):
        members = list(nodes)
        planned += int(steady.last_out[members].max() - steady.start[members].min())
        taken += cycles
    return TimedSchedule(steady, sample=Sample(planned, taken) if planned else None)


def _planned(dag: CanonicalDag, partitioner: Partitioner, options: ScheduleOptions, *, barrier: bool) -> _Choice:
    blocks = partitioner.blocks(dag, options.pes, barrier=barrier, effort=options.effort)
    plan = Plan(dag, blocks, options, barrier)
    if not barrier and not is_own(partitioner.module):
        # What a third party puts on the machine together has to fit on it.
        largest = plan.gangs(streamable_edges(dag, blocks.block)).largest(dag)
        with faults_of("partitioner", partitioner.origin):
            if largest > options.pes:
                raise VerificationError(f"{largest} tasks that stream to one another against at most {options.pes}")
    return plan, plan.steady()


def _rivals(dag: CanonicalDag, partitioner: Partitioner, options: ScheduleOptions, own: _Choice) -> Iterator[_Choice]:
    """Yield plans of the partitioner's rivals, where their replays cost little: by exact times one may be shorter."""
    if partitioner.rivals and exact.is_replayable(dag, own[1], _RIVAL_ACCESSES):
        for rival in partitioner.rivals:
            yield _planned(dag, rival, options, barrier=own[0].barrier)


def _exact(planned: Iterable[_Choice], fifos: Fifos) -> Iterator[exact.ReplayedSchedule]:
    for plan, steady in planned:
        yield from exact.limited_schedules(plan, steady, fifos)


def _steady(plan: Plan, steady: Schedule) -> Schedule:
    """Return a schedule with steady times and FIFOs as they are asked for."""
    return exact.limited_steady(plan, steady, fifos_of(plan.options, is_replayed=False))
