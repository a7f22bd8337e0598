"""Repeated schedules: iterations beside each other, replayed as one graph."""

from heapq import heappop, heappush

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.errors import UserError, VerificationError
from dfcompile.options import Timing
from dfcompile.records import replace
from dfcompile.scheduler import ScheduleOptions
from dfcompile.scheduler.checked_schedule import Scheduling
from dfcompile.scheduler.repetition import Repetition, best_repetition, check_repetition, repeated
from dfcompile.scheduler.schedules import NO_PE, Schedule
from dfcompile.scheduler.simulation import Replay, simulate
from tests.examples import examples
from tests.strategies import canonical_dags


def written_out(dag: CanonicalDag, repeats: int) -> CanonicalDag:
    """Return the graph so many times, beside itself."""
    moved = np.arange(repeats).repeat(dag.edges_count).astype(np.int32) * np.int32(dag.nodes_count)
    return replace(
        dag,
        kind=np.tile(dag.kind, repeats),
        volume_in=np.tile(dag.volume_in, repeats),
        volume_out=np.tile(dag.volume_out, repeats),
        node_scope=np.tile(dag.node_scope, repeats),
        node_member=np.tile(dag.node_member, repeats),
        edge_source=np.tile(dag.edge_source, repeats) + moved,
        edge_target=np.tile(dag.edge_target, repeats) + moved,
        edge_volume=np.tile(dag.edge_volume, repeats),
        edge_distinct=np.tile(dag.edge_distinct, repeats),
        edge_element_bytes=np.tile(dag.edge_element_bytes, repeats),
        edge_order=np.tile(dag.edge_order, repeats),
        edge_first=np.tile(dag.edge_first, repeats),
        edge_taken=np.tile(dag.edge_taken, repeats),
    )


def replay_of(dag: CanonicalDag, schedule: Schedule, found: Repetition) -> Replay:
    """Return all iterations on P elements: a task takes the one that has been free for longest."""
    repeats = found.repeats
    moved = np.repeat(np.arange(repeats, dtype=np.int64) * found.interval_cycles, dag.nodes_count)
    start, end = np.tile(schedule.start, repeats) + moved, np.tile(schedule.last_out, repeats) + moved
    pe = np.full(len(start), NO_PE, dtype=np.int32)
    free = [(0, number) for number in range(found.pes)]
    for task in sorted(np.flatnonzero(np.tile(dag.is_computational, repeats)), key=lambda one: (start[one], end[one])):
        since, pe[task] = heappop(free)
        assert since <= start[task]
        heappush(free, (int(end[task]), int(pe[task])))
    return Replay(
        pe=pe,
        order=start,
        streamed=np.tile(schedule.streamed, repeats),
        fifo_capacity=np.tile(schedule.fifo_capacity, repeats),
        block=np.zeros(len(start), dtype=np.int32),
        barrier=False,
    )


@given(canonical_dags(), st.integers(1, 6), st.integers(0, 9), st.integers(1, 7), st.sampled_from(["sb-rlx", "best"]))
@examples(40)
def test_a_replay_of_all_iterations_ends_when_the_last_one_should(
    dag: CanonicalDag, pes: int, more: int, repeats: int, partition: str
) -> None:
    """Replayed element by element nothing is later than in the repetition: an element early is no harm."""
    schedule = Scheduling(dag).on(ScheduleOptions(pes, partition)).schedule
    found = repeated(dag, schedule, repeats, pes + more)

    replay = simulate(written_out(dag, repeats), replay_of(dag, schedule, found))

    moved = np.repeat(np.arange(repeats, dtype=np.int64) * found.interval_cycles, dag.nodes_count)
    assert not replay.deadlock
    assert (replay.end <= np.tile(schedule.last_out, repeats) + moved).all()
    assert found.makespan_cycles <= repeats * schedule.makespan_cycles
    assert found.least_interval_cycles <= found.interval_cycles
    busy = int((schedule.last_out - schedule.start)[dag.is_computational].sum())
    assert found.interval_cycles * (pes + more) >= busy


@given(canonical_dags(), st.integers(1, 4))
@examples(20)
def test_a_shorter_interval_is_rejected_or_fits(dag: CanonicalDag, pes: int) -> None:
    schedule = Scheduling(dag).on(ScheduleOptions(pes)).schedule
    found = repeated(dag, schedule, 9, pes)
    shorter = found.least_interval_cycles - 1
    if shorter < 1:
        return
    wrong = replace(
        found,
        repeats=10 * schedule.makespan_cycles,
        interval_cycles=shorter,
        in_flight=-(-schedule.makespan_cycles // shorter),
        makespan_cycles=schedule.makespan_cycles + (10 * schedule.makespan_cycles - 1) * shorter,
    )

    with pytest.raises(VerificationError, match=r"tasks at once against"):
        check_repetition(dag, schedule, wrong)


@given(canonical_dags(), st.integers(1, 12), st.integers(2, 50))
@examples(10)
def test_many_iterations_have_all_elements_busy(dag: CanonicalDag, pes: int, repeats: int) -> None:
    """On one element each they have no gaps, so that the best repetition is within one iteration of the least."""
    scheduling = Scheduling(dag)
    alone = scheduling.on(ScheduleOptions(1)).schedule
    found = best_repetition(scheduling, ScheduleOptions(pes), repeats)

    assert found.makespan_cycles <= repeated(dag, alone, repeats, pes).makespan_cycles
    assert found.makespan_cycles <= repeats * scheduling.on(ScheduleOptions(pes)).schedule.makespan_cycles
    assert found.pes == pes


@given(canonical_dags())
@examples(5)
def test_what_is_not_exact_is_refused(dag: CanonicalDag) -> None:
    schedule = Scheduling(dag).on(ScheduleOptions(2)).schedule

    with pytest.raises(UserError, match=r"repeat: found steady times against exact ones"):
        repeated(dag, replace(schedule, timing=Timing.STEADY), 2, 2)
    with pytest.raises(VerificationError, match=r"repetition: makespan"):
        check_repetition(dag, schedule, replace(repeated(dag, schedule, 3, 2), makespan_cycles=-1))
