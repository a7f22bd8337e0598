"""No FIFO holds more than it may, whatever else is asked for; the schedule still ends."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.errors import UserError
from dfcompile.generators.canonical_dags import cholesky, gaussian
from dfcompile.options import Effort, Fifos, Timing
from dfcompile.records import replace
from dfcompile.scheduler import ScheduleOptions, check, schedule
from dfcompile.scheduler.checked_schedule import Scheduling
from tests.examples import examples
from tests.strategies import DagShape, canonical_dags

PLAIN = ScheduleOptions(pes=4, partition="sb-rlx")


@examples(40)
@given(
    canonical_dags(DagShape(max_volume=24)),
    st.integers(1, 6),
    st.integers(1, 5),
    st.sampled_from(["sb-rlx", "sb-lts", "best"]),
    st.sampled_from([None, True, False]),
    st.sampled_from(list(Timing)),
    st.sampled_from([None, "minimal", "in-flight"]),
)
def test_no_fifo_is_deeper_than_allowed(
    dag: CanonicalDag, pes: int, most: int, partition: str, barrier: bool | None, timing: Timing, fifos: Fifos | None
) -> None:
    options = ScheduleOptions(pes, partition, barrier=barrier, timing=timing, fifos=fifos, max_fifo=most)
    found = schedule(dag, options)
    if timing is Timing.EXACT or fifos is None:  # steady times are those of FIFOs by the rule
        check(dag, found)
    assert found.fifo_capacity.max(initial=0) <= most


def test_a_limit_that_nothing_reaches_changes_nothing() -> None:
    dag = gaussian(5, 64, 0)
    free = schedule(dag, PLAIN)
    limited = schedule(dag, replace(PLAIN, max_fifo=64))
    assert free.makespan_cycles == limited.makespan_cycles
    assert free.fifo_capacity.tolist() == limited.fifo_capacity.tolist()


def test_smaller_fifos_cost_time_and_are_reported_as_replayed() -> None:
    scheduling = Scheduling(cholesky(3, 256, 1))
    free, limited = (scheduling.on(replace(PLAIN, partition="best", max_fifo=most)) for most in (None, 1))
    assert limited.schedule.fifo_capacity.max() == 1
    assert free.schedule.fifo_capacity.max() > 1
    assert limited.figures.is_exact
    assert limited.schedule.makespan_cycles >= free.schedule.makespan_cycles


def test_limits_that_make_no_sense_are_refused() -> None:
    with pytest.raises(UserError, match="max-fifo: found 0, expected at least 1"):
        ScheduleOptions(pes=4, max_fifo=0)
    with pytest.raises(UserError, match="fifo: found 8 elements against at most 4"):
        ScheduleOptions(pes=4, fifos=8, max_fifo=4)


def test_with_a_limit_the_schedule_is_no_longer_than_with_barriers() -> None:
    """Lists send nearly all through memory then: they alone take 628 cycles, and all of them 460."""
    dag, options = gaussian(8, 256, 1), ScheduleOptions(16, "best", max_fifo=16, effort=Effort.QUICK)
    found, barriers = (schedule(dag, replace(options, barrier=barrier)) for barrier in (None, True))

    assert found.makespan_cycles <= barriers.makespan_cycles
