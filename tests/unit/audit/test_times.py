"""Times of schedules, computed anew: those of replays pass, any others do not, even if the checker accepts them."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dfcompile.audit import schedules
from dfcompile.audit.graph_figures import GraphFigures
from dfcompile.audit.schedules import audit_times, plain_times
from dfcompile.canonical_dag import CanonicalDag
from dfcompile.errors import VerificationError
from dfcompile.generators.canonical_dags import chain
from dfcompile.records import replace
from dfcompile.scheduler import ScheduleOptions
from dfcompile.scheduler.checked_schedule import CheckedSchedule, Scheduling
from dfcompile.scheduler.checker import check
from dfcompile.scheduler.schedules import Schedule
from dfcompile.scheduler.simulation import simulate
from dfcompile.scheduler.simulation.simulator import replay_of
from tests.examples import examples
from tests.strategies import canonical_dags


def scheduled(dag: CanonicalDag, pes: int, partition: str) -> CheckedSchedule:
    return Scheduling(dag).on(ScheduleOptions(pes, partition, simulated=True))


def with_later_times(schedule: Schedule, times: int) -> Schedule:
    """Return a schedule that takes so many times as long, in the same order and with all streams in FIFOs."""
    start, first_out, last_out = (times * column for column in (schedule.start, schedule.first_out, schedule.last_out))
    makespan = int(last_out.max(initial=0))
    return replace(schedule, start=start, first_out=first_out, last_out=last_out, makespan_cycles=makespan)


@examples(40)
@given(canonical_dags(), st.integers(1, 6), st.sampled_from(["sb-rlx", "best"]))
def test_a_plain_replay_takes_as_long_and_waits_as_often(dag: CanonicalDag, pes: int, partition: str) -> None:
    found = scheduled(dag, pes, partition)
    plain = plain_times(GraphFigures(dag), found.schedule)
    assert plain is not None
    assert found.simulation is not None

    audit_times("schedule", found.schedule, GraphFigures(dag))

    assert [plain.end[node] for node in range(dag.nodes_count)] == found.simulation.end.tolist()
    assert plain.read_stall_cycles == found.simulation.read_stall.sum()
    assert plain.write_stall_cycles == found.simulation.write_stall.sum()


@examples(40)
@given(canonical_dags(), st.integers(1, 3))
def test_a_plain_replay_with_one_place_in_each_fifo_ends_if_a_simulation_does(dag: CanonicalDag, pes: int) -> None:
    schedule = scheduled(dag, pes, "sb-rlx").schedule
    small = replace(schedule, fifo_capacity=np.where(schedule.streamed, 1, 0))

    plain, simulated = plain_times(GraphFigures(dag), small), simulate(dag, replay_of(small))

    assert plain is not None
    assert sorted(plain.end) == np.flatnonzero(simulated.end >= 0).tolist()


@examples(40)
@given(canonical_dags(), st.integers(1, 6))
def test_longer_times_that_the_checker_accepts_are_refused(dag: CanonicalDag, pes: int) -> None:
    schedule = scheduled(dag, pes, "sb-rlx").schedule
    assume(schedule.makespan_cycles)
    longer = with_later_times(schedule, 2)
    try:
        check(dag, longer)
    except VerificationError:
        assume(False)

    with pytest.raises(VerificationError, match="recomputed"):
        audit_times("schedule", longer, GraphFigures(dag))


def test_of_a_large_schedule_tasks_without_streams_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedules, "MOST_STEPS", 0)
    dag = chain(5, 64, 1)
    schedule = scheduled(dag, 1, "best").schedule
    assert not schedule.streamed.any()

    audit_times("schedule", schedule, GraphFigures(dag))
    with pytest.raises(VerificationError, match=r"schedule: (start|end) of '.*': found \d+ against \d+ recomputed"):
        audit_times("schedule", with_later_times(schedule, 2), GraphFigures(dag))
