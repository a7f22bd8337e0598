"""Schedules in which every task is a gang of its own, and every stream has the room that it needs."""

from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag.dag import Bool, CanonicalDag, Int64, frozen
from dfcompile.distinct import distinct
from dfcompile.options import Effort
from dfcompile.records import replace
from dfcompile.scheduler.baseline import schedule_non_streaming
from dfcompile.scheduler.bounds.makespan import windows
from dfcompile.scheduler.exact_schedule import MOST_WORK, ReplayedSchedule
from dfcompile.scheduler.fifo import fifo_room, late_sizes, minimal_fifo_sizes, next_through_memory
from dfcompile.scheduler.listing.cp_sat import is_installed, solve
from dfcompile.scheduler.listing.list_schedule import ListSchedule, ListScheduler, in_turn, is_chain, planned_schedule
from dfcompile.scheduler.listing.list_search import Budget, ListSearch
from dfcompile.scheduler.options import ScheduleOptions
from dfcompile.scheduler.schedules import NonStreamingSchedule, Sample, Schedule
from dfcompile.scheduler.simulation import Simulation, simulate
from dfcompile.scheduler.simulation.simulator import NODE_ACCESSES, replay_of, with_times_of

_MOST_NODES = 2**18  # some seconds a pass
_QUICK_NODES = 2**15  # a tenth of a second
_CHAIN_NODES = 2**18  # a million take more than a gigabyte
_BUDGETS = {
    Effort.QUICK: Budget(node_passes=0, fewest_passes=2, most_passes=2),
    Effort.DEFAULT: Budget(node_passes=200_000, fewest_passes=6, most_passes=3_000),
    Effort.HIGH: Budget(node_passes=2_000_000, fewest_passes=12, most_passes=8_000),
}
_REPLAYED_ELEMENTS = 2**27  # of one replay: about two seconds
_QUICKLY_REPLAYED_ELEMENTS = 2**25  # half a second
_ALL_REPLAYED_ELEMENTS = 2**23  # of the replays of all schedules found, beyond the first
_SEARCHED_ELEMENTS = 2**11  # up to which the search for the smallest FIFOs ends by itself
_SEARCHING_ELEMENTS = 2**22  # of all replays of a search for smaller FIFOs of more: some seconds
_SAMPLED_ELEMENTS = 2**22  # of a replay with shorter streams: some tenths of a second
_PROVED_TASKS = 1000
_PROVED_WORK = 2**60  # times tasks: the solver sums up in 64 bits


class ListedSchedule(Struct, frozen=True, eq=False):
    """The shortest list schedule found.

    Attributes:
        found: with the times and FIFOs of its replay; ``None`` where that is too large.
        planned: with times that do not look at single elements, and FIFOs that hold whole streams.
        bound: cycles that every schedule takes at least, as far as they were proved.
        sample: what it takes with shorter streams, where a replay of all is too large.
    """

    found: ReplayedSchedule | None
    planned: Schedule
    bound: int
    sample: Sample | None = None


class ListedPlan(Struct, frozen=True, eq=False):
    """List schedules that were found before any bound was known, and without their replays.

    Attributes:
        found: the shortest first.
        non_streaming: the schedule in which nothing streams; ``None`` where it was not needed.
        needs_bound: whether a search that knows a bound would try other rules.
    """

    found: tuple[ListSchedule, ...]
    non_streaming: NonStreamingSchedule | None
    needs_bound: bool

    @property
    def cycles(self) -> int:
        """What the shortest takes as planned."""
        return self.found[0].cycles

    def found_with(self, bound: int) -> tuple[ListSchedule, ...] | None:
        """Return what a search that knows a bound finds; ``None`` where that may be something else."""
        return None if self.needs_bound or self.cycles <= bound else self.found


def is_listable(dag: CanonicalDag, options: ScheduleOptions) -> bool:
    """Return whether list schedules are looked for: with exact times, and FIFOs as deep as what is in flight.

    Those of chains are known, whatever the effort. With little effort lists are looked for where they can be replayed:
    steady times, and FIFOs that hold whole streams, are for who asks for more.
    """
    if not options.timing.is_exact or options.demote or options.fifos not in {None, "in-flight", "minimal"}:
        return False
    if sum(dag.work.tolist()) > MOST_WORK:
        return False
    if not options.hardware.is_literature and _elements(dag, dag.between_tasks) > _QUICKLY_REPLAYED_ELEMENTS:
        return False  # streams may cost more than memory: only a replay tells
    if is_listable_size(dag.nodes_count, _elements(dag, dag.between_tasks), options.effort):
        return True
    return dag.nodes_count <= most_listable_nodes(options.effort, is_chain=True) and is_chain(dag)


def is_listable_size(nodes: int, elements: int, effort: Effort) -> bool:
    """Return whether list schedules are looked for, as far as that depends on sizes.

    Args:
        nodes: of a graph.
        elements: on all its edges from task to task.
        effort: of the search.
    """
    is_small = effort is not Effort.QUICK or elements <= _REPLAYED_ELEMENTS
    return is_small and nodes <= most_listable_nodes(effort)


def most_listable_nodes(effort: Effort, *, is_chain: bool = False) -> int:
    """Return up to how many nodes of a graph list schedules are looked for; of a chain more."""
    if is_chain:
        return max(_CHAIN_NODES, most_listable_nodes(effort))
    return _QUICK_NODES if effort is Effort.QUICK else _MOST_NODES


def listed_schedule(
    dag: CanonicalDag,
    options: ScheduleOptions,
    bound: int,
    non_streaming: NonStreamingSchedule,
    plan: ListedPlan | None = None,
) -> ListedSchedule:
    """Return the shortest list schedule that a stated effort finds; see `with_minimal_fifos` for smaller FIFOs.

    A FIFO never throttles: it holds what is in flight. Where that is more than ``max_fifo`` the edge goes through
    memory, and all is placed anew. It is never longer than the schedule in which nothing streams: in the order of
    that, every task has all its elements by the time when it starts there, so with streams none ends later.

    Args:
        dag: the graph.
        options: P, the effort, the largest FIFO.
        bound: what no schedule is shorter than, in cycles.
        non_streaming: the schedule in which nothing streams.
        plan: what `listed_plan` gave, if it was asked.
    """
    streamed, proved, round_number = dag.between_tasks, bound, 0
    while True:  # at last nothing is deep: a FIFO never needs more than its edge has elements
        known = None if plan is None or round_number else plan.found_with(bound)
        listed = _shortest(dag, options, bound, streamed, known or non_streaming)
        proved = max(proved, listed.bound)
        schedule = listed.planned if listed.found is None else listed.found.schedule
        deep = next_through_memory(dag, schedule, options, round_number)
        if not deep.any():
            return replace(listed, bound=proved)
        streamed, round_number = streamed & ~deep, round_number + 1


def listed_plan(dag: CanonicalDag, options: ScheduleOptions) -> ListedPlan:
    """Return the list schedules found without a bound; the replay of the shortest takes no less than planned."""
    if is_chain(dag):
        return ListedPlan((in_turn(dag, options.pes, dag.between_tasks, options.hardware),), None, needs_bound=True)
    scheduler = ListScheduler(dag, options.pes, hardware=options.hardware)
    non_streaming = schedule_non_streaming(dag, options.pes, options.hardware)
    search = ListSearch(scheduler, 0, _BUDGETS[options.effort])
    found = search.run(_in_the_order_of(scheduler, non_streaming))
    return ListedPlan(found, non_streaming, search.needs_bound)


def _in_the_order_of(scheduler: ListScheduler, non_streaming: NonStreamingSchedule) -> ListSchedule:
    """Return the list schedule with streams whose tasks come in the order of one without."""
    return scheduler.of_times(non_streaming.start.tolist(), non_streaming.end.tolist())


def _shortest(
    dag: CanonicalDag,
    options: ScheduleOptions,
    bound: int,
    streamed: Bool,
    known: NonStreamingSchedule | tuple[ListSchedule, ...],
) -> ListedSchedule:
    """Return the shortest list schedule, from what a search found or from the schedule in which nothing streams.

    Of a chain none beats the one whose tasks take the elements in turn.
    """
    is_row = is_chain(dag)
    if is_row:
        found: tuple[ListSchedule, ...] = (in_turn(dag, options.pes, streamed, options.hardware),)
    elif isinstance(known, tuple):
        found = known
    else:
        scheduler = ListScheduler(dag, options.pes, streamed, options.hardware)
        found = ListSearch(scheduler, bound, _BUDGETS[options.effort]).run(_in_the_order_of(scheduler, known))
    if not is_row and _is_proof_tried(dag, options, streamed):
        known_times = windows(dag, options.pes), bound
        bound, times = solve(dag, options.pes, known_times, (found[0].start, found[0].end))
        found = (ListScheduler(dag, options.pes, streamed, options.hardware).of_times(*times), *found)
    elements, planned = _elements(dag, streamed), _planned(dag, options, found[0], streamed)
    is_quick = is_row and options.effort is Effort.QUICK
    if elements > (_QUICKLY_REPLAYED_ELEMENTS if is_quick else _REPLAYED_ELEMENTS):
        return ListedSchedule(None, planned, bound, coarse_sample(dag, planned, found[0]))
    replays = max(_ALL_REPLAYED_ELEMENTS // max(elements, 1), 1)
    others = (_planned(dag, options, each, streamed) for each in found[1:replays])
    replayed = min(_replayed(dag, chain([planned], others), bound), key=lambda each: each.schedule.makespan_cycles)
    is_each_alone = len(distinct(planned.pe[dag.is_computational])) == dag.tasks_count
    if _is_free(dag, streamed) and (is_row or is_each_alone) and options.hardware.is_literature:
        # The replay of the first is one without any limit: nothing is earlier in any schedule. Memory may be, else.
        bound = max(bound, replayed.schedule.makespan_cycles)
    # FIFOs were never full in its replay: late accesses may need less.
    late = late_sizes(dag, replay_of(replayed.schedule), replayed.replay)
    return ListedSchedule(replayed if late is None else _sized(dag, replayed.schedule, *late), planned, bound)


def _is_free(dag: CanonicalDag, streamed: Bool) -> bool:
    """Return whether all edges stream that may."""
    return np.array_equal(streamed, dag.between_tasks)


def _is_proof_tried(dag: CanonicalDag, options: ScheduleOptions, streamed: Bool) -> bool:
    """Return whether a solver looks for a proof, and for more: with all streams, or it would prove something else."""
    is_asked = options.effort is Effort.HIGH and options.pes < dag.tasks_count <= _PROVED_TASKS
    fits = sum(dag.work.tolist()) * dag.tasks_count <= _PROVED_WORK
    return _is_free(dag, streamed) and is_asked and fits and is_installed()


def _replayed(dag: CanonicalDag, planned: Iterable[Schedule], bound: int) -> Iterator[ReplayedSchedule]:
    """Yield schedules with what is in flight as FIFOs, up to one that cannot be shorter than those before.

    No replay takes less than was planned; those planned to be shorter come first.
    """
    shortest: int | None = None
    for each in planned:
        if shortest is not None and each.makespan_cycles >= shortest:
            return
        replay = simulate(dag, replay_of(each))
        yield _sized(dag, each, fifo_room(each.streamed, replay.peak), replay)
        if replay.makespan_cycles <= bound:
            return
        shortest = replay.makespan_cycles if shortest is None else min(shortest, replay.makespan_cycles)


def with_minimal_fifos(dag: CanonicalDag, found: ReplayedSchedule) -> ReplayedSchedule:
    """Return a schedule with the smallest FIFOs that keep its makespan.

    They are searched for as long as the replays of the search look at no more than some elements in all.
    """
    elements = _elements(dag, found.schedule.streamed)
    tries = _SEARCHING_ELEMENTS // max(elements + dag.nodes_count * NODE_ACCESSES, 1)
    most = None if elements <= _SEARCHED_ELEMENTS else tries
    capacity = minimal_fifo_sizes(dag, replay_of(found.schedule), found.schedule.makespan_cycles, most)
    replay = simulate(dag, replace(replay_of(found.schedule), fifo_capacity=capacity))
    return _sized(dag, found.schedule, capacity, replay)


def _elements(dag: CanonicalDag, streamed: Bool) -> int:
    return int(dag.edge_volume[streamed].sum())


def _sized(dag: CanonicalDag, schedule: Schedule, capacity: Int64, replay: Simulation) -> ReplayedSchedule:
    return ReplayedSchedule(with_times_of(dag, replace(schedule, fifo_capacity=capacity), replay), replay)


def _planned(dag: CanonicalDag, options: ScheduleOptions, found: ListSchedule, streamed: Bool) -> Schedule:
    """Return a list schedule with FIFOs that hold whole streams; each node is a block of its own."""
    order = found.sequence, found.elements(dag.is_computational.tolist())
    start, end = (np.array(column, dtype=np.int64) for column in (found.start, found.end))
    return planned_schedule(dag, options, order, (start, end), streamed)


def shortened(dag: CanonicalDag, divisor: int) -> CanonicalDag:
    """Return a graph whose volumes are so many times smaller, rounded up.

    >>> from dfcompile.generators.canonical_dags import chain
    >>> dag = chain(3, 64, 1)
    >>> bool((shortened(dag, 16).edge_volume == -(-dag.edge_volume // 16)).all())
    True
    """
    columns = ("volume_in", "volume_out", "edge_volume", "edge_distinct")
    return replace(dag, **{name: frozen(-(-getattr(dag, name) // divisor)) for name in columns})


def coarse_sample(dag: CanonicalDag, planned: Schedule, listed: ListSchedule) -> Sample | None:
    """Return what a schedule with shorter streams takes in a replay, beside its plan; ``None`` without cycles.

    That tells how wrong planned times are where a replay is too large. Of every stream one element in so many is left.
    Rates, order and elements stay, so what bursts and what waits does so in the same places, and weighs more beside
    shorter streams.

    Args:
        dag: the graph.
        planned: its schedule, FIFOs never full.
        listed: the list schedule that it is.
    """
    short = shortened(dag, max(-(-int(dag.edge_volume.sum()) // _SAMPLED_ELEMENTS), 1))
    cycles = (
        ListScheduler(short, planned.pes, planned.streamed, planned.hardware)
        .settled(listed.sequence, listed.before)
        .cycles
    )
    taken = simulate(short, replay_of(planned).unlimited(short), details=False).makespan_cycles
    return Sample(cycles, taken) if cycles else None
