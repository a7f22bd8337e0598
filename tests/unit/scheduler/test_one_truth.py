"""The printed makespan, speedup and gap are those of a replay with the printed FIFOs.

Of schedules chosen by an objective, and of fronts, `test_front.py` says the same.
"""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.forms.json_form import read_dag_file
from dfcompile.errors import InfeasibleError
from dfcompile.generators.canonical_dags import cholesky, fft, gaussian
from dfcompile.generators.single_operators import convolution
from dfcompile.options import Effort, Fifos
from dfcompile.records import replace
from dfcompile.scheduler import ScheduleOptions, Timing, exact_schedule, schedule, steady_schedule, streaming_schedule
from dfcompile.scheduler.checked_schedule import Scheduling
from dfcompile.scheduler.checker import check
from dfcompile.scheduler.simulation import NEVER, simulate
from dfcompile.scheduler.simulation.simulator import replay_of
from tests.examples import examples
from tests.locations import ROOT
from tests.strategies import DagShape, canonical_dags
from tests.unit.scheduler.plain_replay import plain_replay
from tests.unit.scheduler.streams import stream_graph

PARTITIONS = ("sb-lts", "sb-rlx", "work-ordered", "best")
FIFOS: tuple[Fifos | None, ...] = (None, "in-flight", "rule", "minimal", 1, 2, 7)
LIMITS = (None, None, 1, 3, 9)  # --max-fifo
KEPT = ROOT / "tests" / "data" / "canonical" / "kept"


def kept(name: str) -> CanonicalDag:
    """A graph on which an earlier version printed what no replay takes, or ended as a bug."""
    return read_dag_file(KEPT / f"{name}.dag")


@examples(60)
@given(
    canonical_dags(DagShape(max_volume=24)),
    st.integers(1, 64),
    st.sampled_from(PARTITIONS),
    st.sampled_from((True, False, None)),
    st.sampled_from(FIFOS),
    st.sampled_from(LIMITS),
    st.booleans(),
)
def test_printed_figures_are_those_of_a_replay_cycle_by_cycle(
    dag: CanonicalDag,
    pes: int,
    partition: str,
    barrier: bool | None,
    fifos: Fifos | None,
    most: int | None,
    demote: bool,
) -> None:
    limit = None if isinstance(fifos, int) else most
    options = ScheduleOptions(pes, partition, demote, barrier=barrier, fifos=fifos, max_fifo=limit)
    found = Scheduling(dag).on(options)
    figures, replayed = found.figures, plain_replay(dag, replay_of(found.schedule))

    assert figures.fifo_elements == found.schedule.fifo_capacity.sum()
    assert limit is None or found.schedule.fifo_capacity.max(initial=0) <= limit
    if figures.makespan_cycles is None:
        assert NEVER in replayed.end
        assert isinstance(fifos, int) or (fifos == "rule" and limit is None)
        assert (figures.speedup, figures.gap, figures.pe_utilization) == (None, None, None)
        return
    makespan, work = max(replayed.end, default=0), sum(dag.work.tolist())
    assert figures.makespan_cycles == makespan
    assert figures.speedup == (Fraction(work, makespan) if makespan else 1)
    assert figures.gap is not None
    assert 0 <= figures.gap * figures.lower_bound_cycles == makespan - figures.lower_bound_cycles


@examples(40)
@given(
    canonical_dags(DagShape(max_volume=64)),
    st.integers(1, 16),
    st.sampled_from(PARTITIONS),
    st.booleans(),
    st.booleans(),
)
def test_elements_in_flight_throttle_nothing_and_minimal_fifos_are_never_slower(
    dag: CanonicalDag, pes: int, partition: str, barrier: bool, demote: bool
) -> None:
    options = ScheduleOptions(pes, partition, demote, barrier=barrier)
    found = schedule(dag, options)
    minimal = schedule(dag, replace(options, fifos="minimal"))

    assert minimal.makespan_cycles <= found.makespan_cycles
    assert minimal.fifo_capacity.sum() <= found.fifo_capacity.sum() or minimal.makespan_cycles < found.makespan_cycles
    if barrier:
        free = simulate(dag, replace(replay_of(found), fifo_capacity=np.maximum(dag.edge_volume, 1)))
        assert found.makespan_cycles == free.makespan_cycles


@examples(30)
@given(canonical_dags(DagShape(max_volume=40)), st.integers(1, 16), st.booleans(), st.sampled_from(FIFOS))
def test_best_is_never_longer_than_the_published_ones_laid_out_alike(
    dag: CanonicalDag, pes: int, barrier: bool, fifos: Fifos | None
) -> None:
    cycles = {}
    for name in PARTITIONS:
        made = Scheduling(dag).on(ScheduleOptions(pes, name, barrier=barrier, fifos=fifos)).figures.makespan_cycles
        cycles[name] = 2**62 if made is None else made

    assert cycles["best"] == min(cycles.values())


def test_bursts_of_a_downsampler_are_held() -> None:
    dag = kept("short28")
    sizes: tuple[Fifos, ...] = ("rule", "in-flight")
    rule, free = (schedule(dag, ScheduleOptions(16, fifos=fifos)).makespan_cycles for fifos in sizes)
    figures = Scheduling(dag).on(ScheduleOptions(16)).figures

    assert (rule, free) == (50, 37)
    assert figures.gap == 0  # the bound, too, looks at each element
    assert Scheduling(dag).on(ScheduleOptions(16, timing=Timing.STEADY)).figures.gap is None  # 36: no proof


@pytest.mark.parametrize("timing", list(Timing))
@pytest.mark.parametrize("name", ["crash5", "crash_relay"])
def test_relays_of_few_elements_are_accepted_by_the_checker(name: str, timing: Timing) -> None:
    scheduling = Scheduling(kept(name))
    for pes in (2, 3, 4, 6, 9, 12):
        for partition in ("sb-lts", "sb-rlx"):
            sizes: tuple[Fifos | None, ...] = (None, "minimal", 2) if timing.is_exact else (None,)
            for fifos in sizes:
                scheduling.on(ScheduleOptions(pes, partition, barrier=False, timing=timing, fifos=fifos))


def test_finalists_of_best_are_timed_exactly() -> None:
    dag = kept("best_exact_17")
    options = ScheduleOptions(64, "best", barrier=True)

    assert schedule(dag, options).makespan_cycles == 100
    assert schedule(dag, replace(options, partition="sb-rlx")).makespan_cycles == 100


@pytest.mark.parametrize("timing", list(Timing))
def test_a_write_to_memory_of_a_later_block_is_not_throttled(timing: Timing) -> None:
    dag = convolution(10, 5, 4, expansion="lmv")

    assert schedule(dag, ScheduleOptions(4, timing=timing)).makespan_cycles == 2993


def test_what_is_too_large_for_a_replay_is_steady_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    dag = gaussian(8, 64, 1)
    monkeypatch.setattr(exact_schedule, "MOST_ACCESSES", 1000)
    once = Scheduling(dag).on(ScheduleOptions(16))
    monkeypatch.setattr(streaming_schedule, "_ACCESSES_ONCE", 1000)
    found = Scheduling(dag).on(ScheduleOptions(16))
    planned = Scheduling(dag).on(ScheduleOptions(16, timing=Timing.STEADY))

    assert (found.schedule.timing, found.figures.makespan_cycles) == (Timing.STEADY, planned.figures.makespan_cycles)
    assert once.schedule.timing is Timing.EXACT
    assert once.schedule.fifo_capacity.tolist() == planned.schedule.fifo_capacity.tolist()
    assert once.figures.makespan_cycles == simulate(dag, replay_of(once.schedule)).makespan_cycles
    assert found.sample is not None
    assert -Fraction(1, 2) < found.sample.error < Fraction(1, 2)
    assert (planned.sample, found.schedule.fifo_capacity.tolist()) == (
        None,
        planned.schedule.fifo_capacity.tolist(),
    )


def test_fifos_too_small_to_end_are_an_error_of_the_request() -> None:
    dag = stream_graph(
        [("in", "fork", 8), ("fork", "sum", 8), ("sum", "spread", 1), ("spread", "join", 8), ("fork", "join", 8),
         ("join", "out", 8)]
    )  # fmt: skip

    with pytest.raises(InfeasibleError, match="deadlock, 'fork' waits for a place for an element to 'join'"):
        schedule(dag, ScheduleOptions(4, fifos=1))


def test_traffic_too_large_to_look_at_has_steady_times() -> None:
    dag = stream_graph([("in", "a", 2**40), ("a", "b", 2**40 - 1), ("b", "out", 2**40 - 1)])
    found = Scheduling(dag).on(ScheduleOptions(2, "sb-rlx"))

    assert found.schedule.timing is Timing.STEADY
    assert found.sample is None  # there is no sample that can be replayed


@pytest.mark.parametrize("limits", [("QUICK_NODES",), ("QUICK_NODES", "_PLACED_IN_ORDER")], ids=["two", "one"])
@pytest.mark.parametrize("seed", range(6))
def test_large_schedules_that_are_placed_quickly_are_not_longer_than_with_barriers(
    seed: int, limits: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit in limits:
        monkeypatch.setattr(steady_schedule, limit, 0)
    for dag in (gaussian(9, 64, seed), fft(16, 64, seed), cholesky(5, 64, seed)):
        once, barrier = (
            schedule(dag, ScheduleOptions(4, "sb-rlx", barrier=barrier, timing=Timing.STEADY, effort=Effort.QUICK))
            for barrier in (False, True)
        )
        check(dag, once)
        assert once.makespan_cycles <= barrier.makespan_cycles
