"""What tasks do from cycle to cycle, and the chain of waits: as an access by access account has it."""

from itertools import pairwise
from operator import mul

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.errors import VerificationError
from dfcompile.generators.canonical_dags import chain, cholesky, gaussian
from dfcompile.records import replace
from dfcompile.scheduler import NO_PE, Schedule, ScheduleOptions, Timing, schedule
from dfcompile.scheduler.activity import Activity, activity
from dfcompile.scheduler.checked_schedule import Scheduling
from dfcompile.scheduler.simulation import simulate
from dfcompile.scheduler.simulation.simulator import replay_of
from tests.examples import examples
from tests.strategies import DagShape, canonical_dags
from tests.unit.scheduler.streams import stream_graph

CHOICES = st.tuples(
    st.integers(1, 12),
    st.sampled_from(("sb-lts", "sb-rlx", "best")),
    st.booleans(),
    st.sampled_from((None, "rule", "minimal", 2)),
)


def happening(dag: CanonicalDag, made: Schedule, steps: int) -> Activity:
    found = activity(dag, made, steps)
    assert found is not None
    return found


@examples(60)
@given(canonical_dags(DagShape(max_volume=24)), CHOICES, st.sampled_from((1, 3, 40, 10**6)))
def test_phases_cover_each_task_and_hold_its_work_and_its_stalls(
    dag: CanonicalDag, choices: tuple[int, str, bool, None], steps: int
) -> None:
    pes, partition, barrier, fifos = choices
    found = Scheduling(dag).on(ScheduleOptions(pes, partition, barrier=barrier, fifos=fifos))
    made = found.schedule
    if found.figures.makespan_cycles is None:
        assert activity(dag, made, steps) is None
        return
    seen, replay = happening(dag, made, steps), simulate(dag, replay_of(made))
    waits = replay.read_stall.sum() + replay.write_stall.sum()

    assert (seen.worked_cycles, seen.occupied_cycles) == (dag.work.sum(), dag.work.sum() + waits)
    for node in np.flatnonzero(made.pe != NO_PE).tolist():
        phases = seen.phases[node]
        assert (phases[0].begin, phases[-1].end) == (made.start[node], made.last_out[node])
        assert all(before.end == after.begin for before, after in pairwise(phases))
        assert sum(phase.worked_cycles for phase in phases) == dag.work[node]
        assert all(0 <= phase.worked_cycles <= phase.end - phase.begin for phase in phases)


@examples(40)
@given(canonical_dags(DagShape(max_volume=12)), st.integers(1, 8), st.booleans())
def test_elements_in_fifos_are_those_written_and_not_read(dag: CanonicalDag, pes: int, barrier: bool) -> None:
    made = schedule(dag, ScheduleOptions(pes, "best", barrier=barrier))
    seen = happening(dag, made, 10**6)

    assert len(seen.held) == made.makespan_cycles + 1
    assert (seen.held >= 0).all()
    assert seen.held[-1] == 0
    assert seen.held.max(initial=0) <= made.fifo_capacity.sum()
    assert sum(seen.working) == pytest.approx(dag.work.sum())
    assert max(seen.occupied, default=0) <= pes


@examples(60)
@given(canonical_dags(DagShape(max_volume=24)), CHOICES)
def test_critical_path_leads_from_the_makespan_back_to_cycle_0(
    dag: CanonicalDag, choices: tuple[int, str, bool, None]
) -> None:
    pes, partition, barrier, fifos = choices
    found = Scheduling(dag).on(ScheduleOptions(pes, partition, barrier=barrier, fifos=fifos))
    if not found.figures.makespan_cycles:
        return
    path = happening(dag, found.schedule, 10).path

    assert (path[0].end, path[-1].begin) == (found.schedule.makespan_cycles, 0)
    assert all(later.begin == earlier.end for later, earlier in pairwise(path))
    for stay in path:
        assert found.schedule.pe[stay.node] != NO_PE
        assert found.schedule.last_out[stay.node] >= stay.end


def test_a_join_waits_for_its_slower_input() -> None:
    dag = stream_graph([("fork", "sum", 12), ("sum", "spread", 1), ("spread", "join", 12), ("fork", "join", 12)])
    made = schedule(dag, ScheduleOptions(4, fifos=12))
    seen = happening(dag, made, 1000)

    # The last of 12 elements is there after 12 cycles, their sum one later, its first copy one later, then all 12;
    # the sum waits for its first element alone, one follows on the other.
    assert made.makespan_cycles == 26
    assert [(dag.node_name(stay.node), stay.begin, stay.end) for stay in seen.path] == [
        ("join", 14, 26),
        ("spread", 13, 14),
        ("sum", 1, 13),
        ("fork", 0, 1),
    ]
    assert seen.held.tolist()[:13] == [0, *range(1, 13)]


def test_a_full_fifo_is_awaited_at_its_edge() -> None:
    dag = stream_graph([("fast", "slow", 4), ("slow", "out", 16)])
    made = schedule(dag, ScheduleOptions(3, fifos=1))
    seen = happening(dag, made, 1000)
    fast = next(node for node in range(dag.nodes_count) if dag.node_name(node) == "fast")
    awaited = {phase.awaited for phase in seen.phases[fast] if phase.worked_cycles < phase.end - phase.begin}

    assert awaited == {0}
    assert sum(phase.end - phase.begin for phase in seen.phases[fast]) > 4


def test_steady_times_have_no_activity() -> None:
    dag = chain(4, 16)

    assert activity(dag, schedule(dag, ScheduleOptions(2, timing=Timing.STEADY)), 100) is None


@pytest.mark.parametrize("barrier", [True, False])
def test_of_what_streams_too_much_to_be_followed_means_are_known(
    monkeypatch: pytest.MonkeyPatch, barrier: bool
) -> None:
    dag = gaussian(8, 256, 3)
    made = schedule(dag, ScheduleOptions(16, "sb-rlx", barrier=barrier))
    exact = happening(dag, made, 100)
    monkeypatch.setattr("dfcompile.scheduler.activity.MOST_FOLLOWED", 600)
    mean = happening(dag, made, 100)

    assert exact.averaged == 0 < mean.averaged
    assert (mean.worked_cycles, mean.occupied_cycles) == (exact.worked_cycles, exact.occupied_cycles)
    for found in (mean, exact):
        lasting = [found.step_cycles] * len(found.working)
        lasting[-1] -= sum(lasting) - made.makespan_cycles
        assert sum(map(mul, found.working, lasting)) == pytest.approx(dag.work.sum())
    assert (mean.path[0].end, mean.path[-1].begin) == (made.makespan_cycles, 0)
    assert mean.held[-1] == 0
    assert (mean.held >= 0).all()


def test_times_of_no_replay_are_a_bug() -> None:
    dag = cholesky(4, 64, 1)
    made = schedule(dag, ScheduleOptions(3, "best"))
    late = replace(made, **{name: getattr(made, name) + 9 for name in ("start", "first_out", "last_out")})

    with pytest.raises(VerificationError, match="its times are not those of a replay"):
        activity(dag, replace(late, makespan_cycles=made.makespan_cycles + 9), 100)
