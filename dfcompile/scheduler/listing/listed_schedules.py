"""Schedules in which every task is a gang of its own, and every stream has the room that it needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.dag import Bool, Int64
from dfcompile.distinct import distinct
from dfcompile.options import Effort, Timing
from dfcompile.records import replace
from dfcompile.scheduler.baseline.non_streaming import schedule_non_streaming
from dfcompile.scheduler.bounds.makespan import windows
from dfcompile.scheduler.exact_schedule import ReplayedSchedule
from dfcompile.scheduler.fifo.search import minimal_fifo_sizes
from dfcompile.scheduler.fifo.sizes import (
    LIMIT_ROUNDS,
    fifo_room,
    late_sizes,
    next_through_memory,
    whole_streams,
)
from dfcompile.scheduler.listing.coarse_replay import coarse_sample
from dfcompile.scheduler.listing.cp_sat import is_installed, solve
from dfcompile.scheduler.listing.list_schedule import FREE, ListSchedule, ListScheduler
from dfcompile.scheduler.listing.list_search import Budget, ListSearch
from dfcompile.scheduler.listing.turns import in_turn, is_chain
from dfcompile.scheduler.options import ScheduleOptions
from dfcompile.scheduler.schedules import NO_PE, NonStreamingSchedule, Sample, Schedule
from dfcompile.scheduler.simulation import Simulation, simulate
from dfcompile.scheduler.simulation.simulator import replay_of, with_times_of

_MOST_NODES = 2**18  # some seconds a pass
_QUICK_NODES = 2**15  # a tenth of a second
_CHAIN_NODES = 2**18  # a million take more than a gigabyte
_BUDGETS = {
    Effort.QUICK: Budget(node_passes=0, fewest_passes=2, most_passes=2),
    Effort.DEFAULT: Budget(node_passes=200_000, fewest_passes=6, most_passes=3_000),
    Effort.HIGH: Budget(node_passes=2_000_000, fewest_passes=12, most_passes=8_000),
}
_MOST_WORK = 2**60  # cycles of all tasks: times fit in 64 bits with room to spare
_REPLAYED_ELEMENTS = 2**27  # of one replay: about two seconds
_QUICKLY_REPLAYED_ELEMENTS = 2**25  # half a second
_ALL_REPLAYED_ELEMENTS = 2**23  # of the replays of all schedules found, beyond the first
_SEARCHED_ELEMENTS = 2**11  # up to which the search for the smallest FIFOs ends by itself
_SEARCHING_ELEMENTS = 2**22  # of all replays of a search for smaller FIFOs of more: some seconds
_NODE_ELEMENTS = 500  # a node costs about as much as so many elements
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
    if sum(dag.work.tolist()) > _MOST_WORK:
        return False
    if dag.nodes_count <= most_listable_nodes(options.effort):
        streamed = dag.is_computational[dag.edge_source] & dag.is_computational[dag.edge_target]
        if is_listable_size(dag.nodes_count, sum(dag.edge_volume[streamed].tolist()), options.effort):
            return True
    return dag.nodes_count <= _CHAIN_NODES and is_chain(dag)


def is_listable_size(nodes: int, elements: int, effort: Effort) -> bool:
    """Return whether list schedules are looked for, as far as that depends on sizes.

    Args:
        nodes: of a graph.
        elements: on all its edges from task to task.
        effort: of the search.
    """
    is_small = effort is not Effort.QUICK or elements <= _REPLAYED_ELEMENTS
    return is_small and nodes <= most_listable_nodes(effort)


def most_listable_nodes(effort: Effort) -> int:
    """Return up to how many nodes of a graph list schedules are looked for, but of chains."""
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
    streamed = dag.is_computational[dag.edge_source] & dag.is_computational[dag.edge_target]
    best: ListedSchedule | None = None
    proved = bound
    for round_number in range(LIMIT_ROUNDS + 1):
        known = None if plan is None or round_number else plan.found_with(bound)
        listed = _shortest(dag, options, bound, streamed, known or non_streaming)
        proved = max(proved, listed.bound)
        schedule = listed.planned if listed.found is None else listed.found.schedule
        deep = next_through_memory(dag, schedule, options, round_number)
        if not deep.any():
            best = replace(listed, bound=proved)
            break
        streamed = streamed & ~deep
    assert best is not None  # a FIFO never needs more than its edge has elements
    return best


def listed_plan(dag: CanonicalDag, options: ScheduleOptions) -> ListedPlan:
    """Return the list schedules found without a bound; the replay of the shortest takes no less than planned."""
    streamed = dag.is_computational[dag.edge_source] & dag.is_computational[dag.edge_target]
    if is_chain(dag):
        return ListedPlan((in_turn(dag, options.pes, streamed),), None, needs_bound=True)
    scheduler, non_streaming = ListScheduler(dag, options.pes, streamed), schedule_non_streaming(dag, options.pes)
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
    """Return the shortest list schedule, from what a search found or from the schedule in which nothing streams."""
    if is_chain(dag):
        return _shortest_chain(dag, options, bound, streamed)
    if isinstance(known, tuple):
        found = known
    else:
        scheduler = ListScheduler(dag, options.pes, streamed)
        first = _in_the_order_of(scheduler, known)
        found = ListSearch(scheduler, bound, _BUDGETS[options.effort]).run(first)
    if _is_proof_tried(dag, options, streamed):
        solved = solve(dag, options.pes, (windows(dag, options.pes), bound), (found[0].start, found[0].end))
        of_times = ListScheduler(dag, options.pes, streamed).of_times(solved.start, solved.end)
        bound, found = solved.bound, (of_times, *found)
    elements = sum(dag.edge_volume[streamed].tolist())
    planned = _planned(dag, options, found[0], streamed)
    if elements > _REPLAYED_ELEMENTS:

        def settled_cycles(short: CanonicalDag) -> int:
            return ListScheduler(short, options.pes, streamed).settled(found[0].sequence, found[0].before).cycles

        return ListedSchedule(None, planned, bound, coarse_sample(dag, planned, settled_cycles))
    replays = max(_ALL_REPLAYED_ELEMENTS // max(elements, 1), 1)
    others = (_planned(dag, options, each, streamed) for each in found[1:replays])
    replayed = min(_replayed(dag, chain([planned], others), bound), key=lambda each: each.schedule.makespan_cycles)
    if _is_free(dag, streamed) and _is_each_alone(dag, planned):
        # The replay of the first is one without any limit: nothing is earlier in any schedule.
        bound = max(bound, replayed.schedule.makespan_cycles)
    return ListedSchedule(_with_smaller_fifos(dag, replayed), planned, bound)


def _shortest_chain(dag: CanonicalDag, options: ScheduleOptions, bound: int, streamed: Bool) -> ListedSchedule:
    """Return the schedule of a chain that none beats; where all streams do, what it takes is a bound."""
    found = in_turn(dag, options.pes, streamed)
    planned = _planned(dag, options, found, streamed)
    most = _QUICKLY_REPLAYED_ELEMENTS if options.effort is Effort.QUICK else _REPLAYED_ELEMENTS
    if sum(dag.edge_volume[streamed].tolist()) > most:

        def cycles_in_turn(short: CanonicalDag) -> int:
            return in_turn(short, options.pes, streamed).cycles

        return ListedSchedule(None, planned, bound, coarse_sample(dag, planned, cycles_in_turn))
    replayed = next(_replayed(dag, [planned], bound))
    proved = replayed.schedule.makespan_cycles if _is_free(dag, streamed) else bound
    return ListedSchedule(_with_smaller_fifos(dag, replayed), planned, max(bound, proved))


def _is_free(dag: CanonicalDag, streamed: Bool) -> bool:
    """Return whether all edges stream that may."""
    task = dag.is_computational
    return np.array_equal(streamed, task[dag.edge_source] & task[dag.edge_target])


def _is_each_alone(dag: CanonicalDag, planned: Schedule) -> bool:
    """Return whether every task has a processing element of its own."""
    return len(distinct(planned.pe[dag.is_computational])) == dag.tasks_count


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


def _with_smaller_fifos(dag: CanonicalDag, found: ReplayedSchedule) -> ReplayedSchedule:
    """Return the schedule with smaller FIFOs, if late accesses need less; they were never full in its replay."""
    late = late_sizes(dag, replay_of(found.schedule), found.replay)
    return found if late is None else _sized(dag, found.schedule, *late)


def with_minimal_fifos(dag: CanonicalDag, found: ReplayedSchedule) -> ReplayedSchedule:
    """Return a schedule with the smallest FIFOs that keep its makespan.

    They are searched for as long as the replays of the search look at no more than some elements in all.
    """
    elements = _streamed_elements(dag, found.schedule)
    tries = _SEARCHING_ELEMENTS // max(elements + dag.nodes_count * _NODE_ELEMENTS, 1)
    most = None if elements <= _SEARCHED_ELEMENTS else tries
    capacity = minimal_fifo_sizes(dag, replay_of(found.schedule), found.schedule.makespan_cycles, most)
    replay = simulate(dag, replace(replay_of(found.schedule), fifo_capacity=capacity))
    return _sized(dag, found.schedule, capacity, replay)


def _streamed_elements(dag: CanonicalDag, schedule: Schedule) -> int:
    return sum(dag.edge_volume[schedule.streamed].tolist())


def _sized(dag: CanonicalDag, schedule: Schedule, capacity: Int64, replay: Simulation) -> ReplayedSchedule:
    return ReplayedSchedule(with_times_of(dag, replace(schedule, fifo_capacity=capacity), replay), replay)


def _planned(dag: CanonicalDag, options: ScheduleOptions, found: ListSchedule, streamed: Bool) -> Schedule:
    """Return a list schedule with FIFOs that hold whole streams; each node is a block of its own."""
    pe, used = [NO_PE] * dag.nodes_count, 0
    task = dag.is_computational
    block = np.empty(dag.nodes_count, dtype=np.int32)
    block[found.sequence] = np.arange(dag.nodes_count)
    is_task, barrier = task.tolist(), False
    for node in found.sequence:
        if is_task[node]:
            before = found.before[node]
            pe[node] = used if before == FREE else pe[before]
            used += before == FREE
    start, end = (np.array(column, dtype=np.int64) for column in (found.start, found.end))
    awaited = np.maximum(-(-dag.volume_in // np.maximum(dag.volume_out, 1)), 1)
    columns = (
        block,
        np.array(pe, dtype=np.int32),
        start,
        np.where(task & (dag.volume_out > 0), start + awaited, end),
        end,
        streamed.copy(),
        whole_streams(dag, streamed),
    )
    for column in columns:
        column.setflags(write=False)
    return Schedule(options.pes, options.partition, barrier, Timing.STEADY, *columns, makespan_cycles=found.cycles)
