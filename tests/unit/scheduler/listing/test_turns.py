"""Chains: tasks in turn, at every size and effort, and proved to be optimal."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.canonical_dag import CanonicalDag, DagBuilder
from dfcompile.generators.canonical_dags import chain, fork_join, gaussian
from dfcompile.options import Effort
from dfcompile.scheduler import ScheduleOptions
from dfcompile.scheduler.checked_schedule import Scheduling
from dfcompile.scheduler.listing import listed_schedules
from dfcompile.scheduler.listing.list_schedule import ListScheduler, in_turn, is_chain
from tests.examples import examples
from tests.unit.scheduler.brute_force import shortest_makespan


@st.composite
def rows(draw: st.DrawFn, most: int = 5, largest: int = 14) -> CanonicalDag:
    """Tasks in a row, some with memory between them, some that also read what is there or write what nobody reads."""
    builder = DagBuilder("row")
    size = draw(st.integers(1, most))
    volumes = draw(st.lists(st.integers(1, largest), min_size=size + 1, max_size=size + 1))
    before = builder.add_memory(builder.add_scope("in"))
    for number, task in enumerate(builder.add_tasks(builder.add_scope("task"), size)):
        builder.add_edge(before, task, volumes[number])
        if draw(st.booleans()):
            builder.add_edge(builder.add_memory(builder.add_scope(f"given{number}")), task, volumes[number])
        if draw(st.booleans()):
            builder.add_edge(task, builder.add_memory(builder.add_scope(f"kept{number}")), volumes[number + 1])
        before = task
        if number == size - 1 or draw(st.integers(0, 3)) == 0:
            before = builder.add_memory(builder.add_scope(f"between{number}"))
            builder.add_edge(task, before, volumes[number + 1])
    return builder.finish()


@examples(25)
@given(rows(), st.integers(1, 4), st.sampled_from(Effort))
def test_a_chain_is_scheduled_in_the_least_time_and_that_is_proved(dag: CanonicalDag, pes: int, effort: Effort) -> None:
    optimum = shortest_makespan(dag, pes)
    figures = Scheduling(dag).on(ScheduleOptions(pes, "best", effort=effort)).figures

    assert is_chain(dag)
    assert figures.makespan_cycles == figures.lower_bound_cycles == optimum


@examples(40)
@given(rows(most=30, largest=200), st.integers(1, 9))
def test_times_in_turn_are_those_of_any_list_schedule(dag: CanonicalDag, pes: int) -> None:
    streamed = dag.is_computational[dag.edge_source] & dag.is_computational[dag.edge_target]
    found = in_turn(dag, pes, streamed)

    assert ListScheduler(dag, pes).settled(found.sequence, found.before) == found


def test_a_chain_is_scheduled_in_turn_where_no_other_lists_are_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    dag = chain(300, 64, 3)
    options = ScheduleOptions(16, "best", effort=Effort.QUICK)
    listed = Scheduling(dag).on(options).figures
    monkeypatch.setattr(listed_schedules, "_QUICK_NODES", 100)

    figures = Scheduling(dag).on(options).figures

    assert figures.gap == 0
    assert figures.makespan_cycles == listed.makespan_cycles


def test_a_chain_that_is_too_large_for_a_replay_keeps_its_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    dag = chain(300, 64, 3)
    exact = Scheduling(dag).on(ScheduleOptions(16, "best")).figures
    for limit in ("_REPLAYED_ELEMENTS", "_QUICKLY_REPLAYED_ELEMENTS"):
        monkeypatch.setattr(listed_schedules, limit, 1000)

    found = Scheduling(dag).on(ScheduleOptions(16, "best", effort=Effort.QUICK))

    assert not found.figures.is_exact
    assert found.sample is not None
    assert found.figures.makespan_cycles is not None
    assert exact.makespan_cycles is not None
    assert found.figures.makespan_cycles == pytest.approx(exact.makespan_cycles, rel=0.01)


@pytest.mark.parametrize("dag", [fork_join(2, 3, 8, 1), gaussian(3, 8, 1)], ids=["fork-join", "gaussian"])
def test_what_forks_is_no_chain(dag: CanonicalDag) -> None:
    assert not is_chain(dag)


def test_two_chains_are_none() -> None:
    builder = DagBuilder("two")
    first, second, third, fourth = builder.add_tasks(builder.add_scope("task"), 4)
    for source, target in ((first, second), (third, fourth)):
        builder.add_edge(source, target, 3)
    dag = builder.finish()

    assert not is_chain(dag)
    assert np.count_nonzero(dag.is_computational) == 4
