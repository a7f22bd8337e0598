"""The error of planned times, measured on the same assignment with shorter streams."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.canonical_dag import CanonicalDag, verify
from dfcompile.generators.canonical_dags import cholesky, gaussian
from dfcompile.scheduler import ScheduleOptions, schedule_non_streaming
from dfcompile.scheduler.listing import listed_schedules
from dfcompile.scheduler.listing.list_schedule import ListSchedule, ListScheduler
from dfcompile.scheduler.listing.listed_schedules import coarse_sample, listed_schedule, shortened
from dfcompile.scheduler.schedules import Schedule
from dfcompile.scheduler.simulation import simulate
from dfcompile.scheduler.simulation.simulator import replay_of
from dfcompile.scheduler.streaming_schedule import timed_schedule
from tests.examples import examples
from tests.strategies import DagShape, canonical_dags


def _listed(dag: CanonicalDag, pes: int) -> tuple[ListSchedule, Schedule]:
    planned = listed_schedule(dag, ScheduleOptions(pes, "best"), 0, schedule_non_streaming(dag, pes)).planned
    scheduler = ListScheduler(dag, pes, planned.streamed)
    return scheduler.of_times(planned.start.tolist(), planned.last_out.tolist()), planned


def _error(dag: CanonicalDag, listed: ListSchedule, planned: Schedule) -> Fraction | None:
    sample = coarse_sample(dag, planned, listed)
    return None if sample is None else sample.error


@examples(20)
@given(canonical_dags(DagShape(max_volume=24)), st.integers(1, 6))
def test_error_of_what_is_not_shortened_is_that_of_its_replay(dag: CanonicalDag, pes: int) -> None:
    listed, planned = _listed(dag, pes)
    taken = simulate(dag, replay_of(planned)).makespan_cycles

    expected = Fraction(taken - listed.cycles, listed.cycles) if listed.cycles else None
    assert _error(dag, listed, planned) == expected


@pytest.mark.parametrize("dag", [gaussian(8, 2048, 0), cholesky(5, 2048, 1)], ids=["gaussian", "cholesky"])
def test_shorter_streams_have_about_the_same_error(dag: CanonicalDag, monkeypatch: pytest.MonkeyPatch) -> None:
    listed, planned = _listed(dag, 16)
    taken = simulate(dag, replay_of(planned), details=False).makespan_cycles

    monkeypatch.setattr(listed_schedules, "_SAMPLED_ELEMENTS", int(dag.edge_volume.sum()) // 16)
    found = _error(dag, listed, planned)

    assert found is not None
    assert abs(float(found) - (taken - listed.cycles) / listed.cycles) < 0.02


def test_shortened_graph_is_canonical() -> None:
    dag = gaussian(8, 2048, 3)

    short = shortened(dag, 100)
    verify(short)
    assert np.array_equal(short.edge_volume, -(-dag.edge_volume // 100))


def test_schedule_that_is_too_large_for_a_replay_has_an_error() -> None:
    dag = gaussian(8, 2**26, 0)  # volumes with the common divisor 1

    found = timed_schedule(dag, ScheduleOptions(16, "best"))

    assert not found.schedule.timing.is_exact
    assert found.sample is not None
    assert abs(found.sample.error) < Fraction(1, 20)
