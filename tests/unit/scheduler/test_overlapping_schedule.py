"""Schedules without barriers: gangs as soon as elements and data are there."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.canonical_dag import CanonicalDag, DagBuilder
from dfcompile.errors import VerificationError
from dfcompile.records import replace
from dfcompile.scheduler import Schedule, ScheduleOptions, Timing, check, lower_bound_cycles, schedule
from tests.examples import examples
from tests.strategies import DagShape, canonical_dags
from tests.unit.scheduler.element_simulator import held_by_readers, simulate

PARTITIONS = ("sb-lts", "sb-rlx", "work-ordered")


def _rows(*rows: tuple[int, ...]) -> CanonicalDag:
    """Return independent chains between memories; a row lists the volumes along one chain."""
    builder = DagBuilder("rows")
    for number, volumes in enumerate(rows):
        tasks = builder.add_tasks(builder.add_scope(f"row{number}"), len(volumes) - 1)
        ends = [builder.add_memory(builder.add_scope(f"{name}{number}")) for name in ("in", "out")]
        for (left, right), volume in zip(pairwise([ends[0], *tasks, ends[1]]), volumes, strict=True):
            builder.add_edge(left, right, volume)
    return builder.finish()


def _on_two_elements() -> tuple[CanonicalDag, Schedule]:
    """Return a task of 90 cycles beside three of 30, in blocks of two."""
    dag = _rows((90, 90), (30, 30), (30, 30), (30, 30))
    return dag, schedule(dag, ScheduleOptions(2, "work-ordered", barrier=False))


@examples(80)
@given(canonical_dags(), st.integers(1, 6), st.sampled_from(PARTITIONS), st.booleans())
def test_overlapping_schedules_are_accepted_and_run_without_deadlock(
    dag: CanonicalDag, pes: int, partition: str, demote: bool
) -> None:
    result = schedule(dag, ScheduleOptions(pes, partition, demote, barrier=False))

    assert not result.barrier
    check(dag, result)
    room = result.fifo_capacity + held_by_readers(dag, result)
    assert not simulate(dag, result, fifo_capacity=room, barrier=False).stalled
    assert result.makespan_cycles >= lower_bound_cycles(dag, pes)
    with_barriers = schedule(dag, ScheduleOptions(pes, partition, demote, barrier=True))
    assert result.makespan_cycles <= with_barriers.makespan_cycles


def test_a_reader_takes_its_inputs_one_after_another() -> None:
    """The last of 17 elements is written while the reader holds the first and waits for its other input."""
    builder = DagBuilder("diamond")
    first, memory, second, reader = (
        builder.add_memory(builder.add_scope(name)) if name == "memory" else builder.add_task(builder.add_scope(name))
        for name in ("first", "memory", "second", "reader")
    )
    for source, target in ((first, memory), (memory, second), (first, reader), (second, reader)):
        builder.add_edge(source, target, 17)
    dag = builder.finish()
    result = schedule(dag, ScheduleOptions(3, "sb-lts", demote=False, barrier=False))

    assert result.fifo_capacity.tolist() == [0, 0, 16, 1]
    assert simulate(dag, result, barrier=False).stalled
    assert not simulate(
        dag, result, fifo_capacity=result.fifo_capacity + held_by_readers(dag, result), barrier=False
    ).stalled
    check(dag, result)


def test_a_relay_that_is_read_faster_than_it_is_written_has_its_last_element_in_time() -> None:
    """By steady times: 40 elements within 90 cycles, read one a cycle; the 40th read is behind the last write."""
    dag = _rows((90, 40, 40), (40, 40))
    planned = schedule(dag, ScheduleOptions(2, "sb-lts", barrier=False, timing=Timing.STEADY))
    check(dag, planned)
    producer, consumer, _ = np.flatnonzero(dag.is_computational).tolist()

    assert planned.block[producer] < planned.block[consumer]
    assert (planned.first_out[producer], planned.last_out[producer]) == (3, 90)
    assert (planned.start[consumer], planned.last_out[consumer]) == (51, 91)


@examples(30)
@given(canonical_dags(DagShape(max_scopes=5)), st.integers(2, 6), st.sampled_from(PARTITIONS))
def test_what_streams_from_gang_to_gang_leads_on_and_is_held_whole(dag: CanonicalDag, pes: int, partition: str) -> None:
    result = schedule(dag, ScheduleOptions(pes, partition, barrier=False))

    source, target = dag.edge_source, dag.edge_target
    relayed = result.streamed & (result.block[source] != result.block[target])
    assert (result.block[source] < result.block[target])[relayed].all()
    assert (result.fifo_capacity == dag.edge_volume)[relayed].all()
    assert (result.start[target] < result.last_out[source])[relayed].all()
    room = result.fifo_capacity + held_by_readers(dag, result)
    assert not simulate(dag, result, fifo_capacity=room, barrier=False).stalled


def test_a_relay_starts_before_its_producer_ends() -> None:
    # alone the producer takes 40 cycles; in one gang it would keep its element for 89, past memory all would take 130
    dag = _rows((40, 40, 90))
    result = schedule(dag, ScheduleOptions(2, "sb-lts", barrier=False))
    check(dag, result)
    producer, consumer = np.flatnonzero(dag.is_computational).tolist()
    edge = int(np.flatnonzero(dag.edge_source == producer)[0])

    assert result.block[producer] < result.block[consumer]
    assert (result.streamed[edge], result.fifo_capacity[edge]) == (True, 40)
    assert (result.start[producer], result.last_out[producer]) == (0, 40)
    assert (result.start[consumer], result.last_out[consumer]) == (1, 91)
    assert simulate(dag, result, barrier=False).makespan_cycles == 91
    assert schedule(dag, ScheduleOptions(2, "sb-lts", demote=True, barrier=False)).makespan_cycles == 130
    planned = schedule(dag, ScheduleOptions(2, "sb-lts", barrier=False, timing=Timing.STEADY))
    narrow = planned.fifo_capacity.copy()
    narrow[edge] -= 1
    with pytest.raises(VerificationError, match="between two blocks through a fifo that does not hold all of it"):
        check(dag, replace(planned, fifo_capacity=narrow))


def test_short_tasks_follow_one_another_beside_a_long_one() -> None:
    dag, overlapping = _on_two_elements()
    with_barriers = schedule(dag, ScheduleOptions(2, "work-ordered"))

    assert (with_barriers.makespan_cycles, overlapping.makespan_cycles) == (120, 90)
    assert (with_barriers.barrier, overlapping.barrier) == (True, False)


def test_a_gang_waits_for_as_many_elements_as_it_needs() -> None:
    dag = _rows((40, 40), (10, 10), (100, 100, 100))
    result = schedule(dag, ScheduleOptions(2, "work-ordered", barrier=False))
    check(dag, result)

    # the chain of two takes the first element for 100 cycles, the second one for 101
    assert result.makespan_cycles == 100 + 40


def test_an_element_serves_from_the_start_of_its_task_to_its_last_output() -> None:
    # the second task of the chain starts when the first has read 50 elements; its element does 40 cycles of other work
    dag = _rows((100, 2, 2), (40, 40))
    result = schedule(dag, ScheduleOptions(2, "sb-rlx", barrier=False))
    check(dag, result)

    assert result.makespan_cycles <= 141


def test_each_rule_of_overlapping_blocks_is_checked() -> None:
    dag, good = _on_two_elements()
    check(dag, good)
    tasks = np.flatnonzero(dag.is_computational)
    long, first, second, third = tasks.tolist()
    assert good.pe[long] != good.pe[first] == good.pe[second] == good.pe[third]

    together = good.block.copy()
    together[second] = together[first]
    early = good.start.copy()
    early[third] -= 1
    for rule, broken in {
        "on an element after a task of the same or a later block": replace(good, block=together),
        r"overlap on element \d": replace(good, start=early),
        "starts before the end of an earlier block": replace(good, barrier=True),
    }.items():
        with pytest.raises(VerificationError, match=rule):
            check(dag, broken)


def test_a_producer_that_ends_before_its_consumer_starts_needs_room() -> None:
    dag = _rows((20, 20, 20))
    good = schedule(dag, ScheduleOptions(2, barrier=False))
    check(dag, good)
    consumer = int(np.flatnonzero(dag.is_computational)[1])
    behind = [consumer, int(dag.edge_target[dag.edge_source == consumer][0])]

    later = [column.copy() for column in (good.start, good.first_out, good.last_out)]
    for column in later:
        column[behind] += 20
    broken = replace(good, start=later[0], first_out=later[1], last_out=later[2], makespan_cycles=int(later[2].max()))
    with pytest.raises(VerificationError, match="with more than its fifo holds"):
        check(dag, broken)
    check(dag, replace(broken, fifo_capacity=np.where(good.streamed, 20, 0)))


def test_a_fast_producer_off_all_cycles_gets_room() -> None:
    # the join waits for the last of 50 elements; without room the copy would wait on its element for the join
    builder = DagBuilder("join")
    memories = [builder.add_memory(builder.add_scope(name)) for name in ("long", "short", "out")]
    total, spread, copy, join = builder.add_tasks(builder.add_scope("task"), 4)
    for source, target, volume in (
        (memories[0], total, 50),
        (total, spread, 1),
        (spread, join, 5),
        (memories[1], copy, 5),
        (copy, join, 5),
        (join, memories[2], 5),
    ):
        builder.add_edge(source, target, volume)
    dag = builder.finish()
    stream = np.flatnonzero((dag.edge_source == copy) & (dag.edge_target == join))[0]

    overlapping, with_barriers = (
        schedule(dag, ScheduleOptions(4, barrier=barrier, timing=Timing.STEADY)) for barrier in (False, True)
    )
    assert (overlapping.fifo_capacity[stream], with_barriers.fifo_capacity[stream]) == (5, 1)
    assert simulate(dag, overlapping, barrier=False).makespan_cycles <= overlapping.makespan_cycles
