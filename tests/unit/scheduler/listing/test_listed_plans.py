"""List schedules that were planned before a schedule is made: they save a search and change nothing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.generators.canonical_dags import chain, cholesky, fft
from dfcompile.options import Effort
from dfcompile.scheduler import ScheduleOptions
from dfcompile.scheduler.listing.list_schedule import ListSchedule
from dfcompile.scheduler.listing.list_search import ListSearch
from dfcompile.scheduler.listing.listed_schedules import _planned, _replayed, listed_plan
from dfcompile.scheduler.schedules import Schedule
from dfcompile.scheduler.simulation import simulate
from dfcompile.scheduler.simulation.simulator import replay_of
from dfcompile.scheduler.streaming_schedule import timed_schedule
from tests.examples import examples
from tests.strategies import DagShape, canonical_dags


@given(canonical_dags(DagShape(max_scopes=5)), st.integers(1, 5), st.sampled_from(list(Effort)[:2]))
@examples(60)
def test_a_plan_changes_nothing(dag: CanonicalDag, pes: int, effort: Effort) -> None:
    options = ScheduleOptions(pes, "best", effort=effort)

    with_plan = timed_schedule(dag, options, plan=listed_plan(dag, options))

    without = timed_schedule(dag, options)
    assert _columns(with_plan.schedule) == _columns(without.schedule)
    assert with_plan.bound_cycles == without.bound_cycles


def test_a_plan_saves_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    searches: list[int] = []
    run = ListSearch.run

    def counted(search: ListSearch, known: ListSchedule) -> tuple[ListSchedule, ...]:
        searches.append(known.cycles)
        return run(search, known)

    monkeypatch.setattr(ListSearch, "run", counted)
    dag, options = cholesky(5, seed=1), ScheduleOptions(4, "best", effort=Effort.QUICK)
    plan = listed_plan(dag, options)
    found = timed_schedule(dag, options, plan=plan)

    assert len(searches) == 1
    assert plan.cycles <= found.schedule.makespan_cycles
    assert found.non_streaming is plan.non_streaming


def test_what_a_bound_would_end_earlier_is_searched_anew() -> None:
    dag, options = cholesky(5, seed=1), ScheduleOptions(4, "best", effort=Effort.QUICK)
    plan = listed_plan(dag, options)

    assert plan.found_with(plan.cycles) is None
    assert plan.found_with(plan.cycles - 1) is plan.found


def test_rules_that_come_from_the_bound_are_tried_anew() -> None:
    plan = listed_plan(cholesky(6), ScheduleOptions(3, "best", effort=Effort.DEFAULT))

    assert plan.found_with(0) is None


@given(canonical_dags(DagShape(max_scopes=5)), st.integers(1, 6))
@examples(60)
def test_no_replay_takes_less_than_was_planned(dag: CanonicalDag, pes: int) -> None:
    options = ScheduleOptions(pes, "best", effort=Effort.DEFAULT)
    streamed = dag.is_computational[dag.edge_source] & dag.is_computational[dag.edge_target]

    for found in listed_plan(dag, options).found:
        planned = _planned(dag, options, found, streamed)
        assert simulate(dag, replay_of(planned)).makespan_cycles >= planned.makespan_cycles


def test_what_was_planned_to_take_longer_is_not_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    dag, options = fft(8, 64, 3), ScheduleOptions(6, "best", effort=Effort.DEFAULT)
    streamed = dag.is_computational[dag.edge_source] & dag.is_computational[dag.edge_target]
    planned = [_planned(dag, options, found, streamed) for found in listed_plan(dag, options).found]
    replays = [simulate(dag, replay_of(each)).makespan_cycles for each in planned]

    found = [each.schedule.makespan_cycles for each in _replayed(dag, planned, 0)]

    assert min(found) == min(replays)
    assert found == replays[: len(found)]
    assert len(found) < len(replays)


def test_a_chain_needs_no_other_schedule() -> None:
    plan = listed_plan(chain(40, 64, 3), ScheduleOptions(4, "best", effort=Effort.QUICK))

    assert plan.non_streaming is None


def _columns(schedule: Schedule) -> list[object]:
    values = (getattr(schedule, name) for name in schedule.__struct_fields__)
    return [value.tolist() if isinstance(value, np.ndarray) else value for value in values]
