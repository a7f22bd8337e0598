"""Schedules in which nothing streams: known times are those of a replay, or none are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.errors import VerificationError
from dfcompile.generators.canonical_dags import chain
from dfcompile.records import replace
from dfcompile.scheduler import Schedule, ScheduleOptions, schedule, schedule_non_streaming
from dfcompile.scheduler.listing.list_schedule import through_memory
from dfcompile.scheduler.simulation import simulate
from dfcompile.scheduler.simulation.simulator import replay_of, replayed, settled_replay
from tests.examples import examples
from tests.strategies import canonical_dags


def without_streams(dag: CanonicalDag, pes: int) -> Schedule:
    return through_memory(dag, ScheduleOptions(pes), schedule_non_streaming(dag, pes))


@given(canonical_dags(), st.integers(1, 5))
@examples(200)
def test_the_times_of_a_list_schedule_are_those_of_its_replay(dag: CanonicalDag, pes: int) -> None:
    planned = without_streams(dag, pes)
    found, expected = settled_replay(dag, planned), simulate(dag, replay_of(planned))

    assert found is not None
    assert found.makespan_cycles == expected.makespan_cycles == planned.makespan_cycles
    for column in ("start", "end", "read_stall", "write_stall", "peak"):
        assert np.array_equal(getattr(found, column), getattr(expected, column)), column
    assert not found.deadlock
    assert np.array_equal(replayed(dag, planned).last_out, expected.end)


@given(canonical_dags(), st.integers(1, 5), st.data())
@examples(200)
def test_other_times_settle_nothing(dag: CanonicalDag, pes: int, data: st.DataObject) -> None:
    """All begin a cycle later than they could, or one ends later."""
    planned = without_streams(dag, pes)
    later = planned.last_out.copy()
    later[data.draw(st.integers(0, dag.nodes_count - 1))] += 1

    assert settled_replay(dag, replace(planned, last_out=later)) is None
    assert settled_replay(dag, replace(planned, start=planned.start + 1, last_out=planned.last_out + 1)) is None


def test_with_streams_or_barriers_a_replay_is_needed() -> None:
    dag = chain(4, 8, 1)
    planned = without_streams(dag, 2)

    assert settled_replay(dag, replace(planned, barrier=True)) is None
    assert settled_replay(dag, schedule(dag, ScheduleOptions(4, "sb-rlx"))) is None


def test_a_task_without_an_element_is_named() -> None:
    dag = chain(4, 8, 1)
    planned = without_streams(dag, 2)

    with pytest.raises(VerificationError):
        settled_replay(dag, replace(planned, pe=np.full_like(planned.pe, -1)))
