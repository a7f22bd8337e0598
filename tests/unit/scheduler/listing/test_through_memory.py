"""Large schedules: that in which nothing streams is taken where it is shorter."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.canonical_dag import CanonicalDag, DagBuilder
from dfcompile.options import Effort
from dfcompile.scheduler import ScheduleOptions, schedule_non_streaming, streaming_schedule
from dfcompile.scheduler.checker import check
from dfcompile.scheduler.listing import list_schedule, listed_schedules
from dfcompile.scheduler.simulation import simulate
from dfcompile.scheduler.simulation.simulator import replay_of
from dfcompile.scheduler.streaming_schedule import TimedSchedule, timed_schedule
from tests.examples import examples
from tests.strategies import canonical_dags


def large(dag: CanonicalDag, pes: int, *, is_enough: bool = False) -> TimedSchedule:
    """Schedule a graph as if it were too large for lists."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streaming_schedule, "QUICK_NODES", -1)
        patch.setattr(listed_schedules, "is_listable", lambda *_: False)
        options = ScheduleOptions(pes, "best", effort=Effort.QUICK)
        return timed_schedule(dag, options, is_enough=lambda _: is_enough)


@given(canonical_dags(), st.integers(1, 5))
@examples(100)
def test_a_large_schedule_is_no_longer_than_without_streams(dag: CanonicalDag, pes: int) -> None:
    found = large(dag, pes)

    check(dag, found.schedule)
    assert found.is_replayed
    assert found.schedule.makespan_cycles <= schedule_non_streaming(dag, pes).makespan_cycles
    assert found.schedule.makespan_cycles == simulate(dag, replay_of(found.schedule)).makespan_cycles


def layers(width: int, volume: int) -> CanonicalDag:
    """Return two rows of tasks; each streams to one whose input is a tenth of the work before it."""
    builder = DagBuilder("layers")
    first, second = builder.add_scope("first"), builder.add_scope("second")
    memory = builder.add_memory(builder.add_scope("in"))
    for number in range(width):
        task, follower = builder.add_task(first, number), builder.add_task(second, number)
        builder.add_edge(memory, task, volume)
        builder.add_edge(task, follower, volume // 10)
        builder.add_edge(follower, builder.add_memory(builder.add_scope(f"out{number}")), volume // 10)
    return builder.finish()


def test_followers_that_would_keep_an_element_idle_do_not_stream() -> None:
    """Eight long tasks and eight short ones on four elements: 2 x 100 and 2 x 10 cycles; in pairs they take 400."""
    dag = layers(8, 100)

    found = large(dag, 4).schedule

    assert not found.streamed.any()
    assert found.makespan_cycles == 220


def a_chain_beside_tasks(length: int, others: int, volume: int) -> CanonicalDag:
    """Return tasks of which each streams to the next, and others of the same work."""
    builder = DagBuilder("beside")
    scope, memory = builder.add_scope("all"), builder.add_memory(builder.add_scope("in"))
    before = memory
    for number in range(length + others):
        task = builder.add_task(scope, number)
        builder.add_edge(before if number < length else memory, task, volume)
        if number >= length - 1:
            builder.add_edge(task, builder.add_memory(builder.add_scope(f"out{number}")), volume)
        before = task
    return builder.finish()


def test_gangs_of_many_tasks_are_looked_at_where_they_bring_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """24 tasks of 100 cycles on two elements, 1,200 if shared; a chain of 14 (13) of them takes 1,400 (1,300) alone."""
    far, near = a_chain_beside_tasks(14, 10, 100), a_chain_beside_tasks(13, 11, 100)
    without = {dag: schedule_non_streaming(dag, 2).makespan_cycles for dag in (far, near)}
    assert without == {far: 1400, near: 1300}
    assert all(large(dag, 2).schedule.makespan_cycles < cycles for dag, cycles in without.items())

    monkeypatch.setattr(list_schedule, "_MANY", -1)

    assert large(far, 2).schedule.makespan_cycles < without[far]
    assert large(near, 2).schedule.makespan_cycles == without[near]


def test_no_gangs_are_looked_at_where_nothing_that_streams_is_of_use() -> None:
    dag = a_chain_beside_tasks(14, 10, 100)

    assert large(dag, 2).schedule.streamed.any()
    assert not large(dag, 2, is_enough=True).schedule.streamed.any()
