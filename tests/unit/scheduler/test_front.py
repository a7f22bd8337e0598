"""Fronts of makespan and FIFO elements: nothing tried beats them, and each is what its options and a replay give."""

from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.errors import InfeasibleError
from dfcompile.generators.canonical_dags import gaussian
from dfcompile.options import Effort, Fifos, Objective, Timing
from dfcompile.records import replace
from dfcompile.scheduler import ScheduleOptions, check, front
from dfcompile.scheduler.checked_schedule import Scheduling
from dfcompile.scheduler.front import Selection, Tried, find_front, grouped, leanest, options_text, selected
from dfcompile.scheduler.simulation.simulator import replay_of
from tests.examples import examples
from tests.strategies import DagShape, canonical_dags
from tests.unit.scheduler.plain_replay import plain_replay
from tests.unit.scheduler.streams import stream_graph

FRONT = Selection(Objective.MAKESPAN, front=True)


@examples(12)
@given(
    canonical_dags(DagShape(max_volume=24)),
    st.integers(1, 16),
    st.sampled_from(("sb-rlx", "sb-lts", "best")),
    st.sampled_from((None, True, False)),
    st.sampled_from((None, "minimal", "rule", 7)),
    st.sampled_from((None, 9)),
)
def test_each_of_a_front_is_accepted_by_the_checker_and_takes_what_a_replay_takes(
    dag: CanonicalDag, pes: int, partition: str, barrier: bool | None, fifos: Fifos | None, most: int | None
) -> None:
    scheduling = Scheduling(dag)
    asked = ScheduleOptions(pes, partition, barrier=barrier, fifos=fifos, max_fifo=most)
    found = find_front(scheduling, [asked])
    alone = scheduling.on(asked).figures

    for one in found:
        check(dag, one.found.schedule)
        assert max(plain_replay(dag, replay_of(one.found.schedule)).end, default=0) == one.cost[0]
        assert one.found.schedule.fifo_capacity.sum() == one.cost[1]
        assert most is None or one.found.schedule.fifo_capacity.max(initial=0) <= most
        assert barrier is None or one.found.schedule.barrier is barrier
        again = scheduling.on(one.options).figures
        assert (again.makespan_cycles, again.fifo_elements) == one.cost
    for shorter, leaner in pairwise(found):
        assert shorter.cost[0] < leaner.cost[0]
        assert shorter.cost[1] > leaner.cost[1]
    if alone.makespan_cycles is not None:
        assert found[0].cost <= (alone.makespan_cycles, alone.fifo_elements)


@examples(10)
@given(canonical_dags(DagShape(max_volume=24)), st.integers(1, 8))
def test_more_effort_never_gives_a_front_that_less_effort_beats(dag: CanonicalDag, pes: int) -> None:
    scheduling, options = Scheduling(dag), ScheduleOptions(pes, "sb-rlx")
    quick, high = (find_front(scheduling, [replace(options, effort=each)]) for each in (Effort.QUICK, Effort.HIGH))

    for one in quick:
        assert any(other.cost[0] <= one.cost[0] and other.cost[1] <= one.cost[1] for other in high)


def test_the_leanest_within_a_slack() -> None:
    scheduling = Scheduling(gaussian(5, 64, 1))
    found = find_front(scheduling, [ScheduleOptions(8, "best")])
    shortest, fewest = found[0], found[-1]

    assert len(found) > 1
    assert leanest(found, Fraction(0)) is shortest
    assert leanest(found, Fraction(10)) is fewest
    exactly = Fraction(fewest.cost[0] - shortest.cost[0], shortest.cost[0])
    assert leanest(found, exactly) is fewest
    assert leanest(found, exactly - Fraction(1, 10**6)) is not fewest


def test_a_makespan_is_chosen_by_its_fifos_among_equals() -> None:
    scheduling = Scheduling(gaussian(5, 64, 1))
    cost = {barrier: scheduling.on(ScheduleOptions(64, "best", barrier=barrier)).figures for barrier in (True, False)}

    (chosen,) = selected(scheduling, [ScheduleOptions(64, "best")], Selection(Objective.FIFO, Fraction(0)))
    shortest = min(figures.makespan_cycles or 0 for figures in cost.values())
    words = min(each.fifo_elements for each in cost.values() if each.makespan_cycles == shortest)
    assert chosen.cost[0] == shortest
    assert chosen.cost[1] <= words


def test_selections_of_several_requests() -> None:
    options = [ScheduleOptions(pes, name) for pes in (2, 4) for name in ("sb-rlx", "sb-lts")]
    scheduling = Scheduling(gaussian(5, 64, 1))

    assert grouped(options, Selection(Objective.FIFO)) == tuple((each,) for each in options)
    assert [len(group) for group in grouped(options, FRONT)] == [2, 2]
    together = selected(scheduling, options[:2], FRONT)
    alone = [one.cost for each in options[:2] for one in find_front(scheduling, [each])]
    assert {one.cost for one in together} <= set(alone)
    assert together[0].cost == min(alone)


def test_options_of_a_schedule_are_those_that_give_it() -> None:
    options = ScheduleOptions(4, "sb-lts", barrier=False, fifos="minimal", max_fifo=16)

    assert options_text(options) == "--partition sb-lts --no-barrier --max-fifo 16 --fifo minimal"
    assert options_text(ScheduleOptions(4, "best", barrier=True)) == "--partition best --barrier"


def test_where_all_deadlock_the_fifos_are_named() -> None:
    dag = stream_graph(
        [("in", "fork", 8), ("fork", "sum", 8), ("sum", "spread", 1), ("spread", "join", 8), ("fork", "join", 8),
         ("join", "out", 8)]
    )  # fmt: skip

    with pytest.raises(
        InfeasibleError,
        match=r"on 4 processing elements: all schedules tried end in a deadlock with fifos of 1 elements \(larger",
    ):
        selected(Scheduling(dag), [ScheduleOptions(4, "sb-rlx", fifos=1)], FRONT)


def test_steady_times_do_not_compete_with_replayed_ones() -> None:
    scheduling = Scheduling(gaussian(6, 64, 1))
    exact, steady = (
        Tried(options, scheduling.on(options))
        for options in (ScheduleOptions(8), ScheduleOptions(8, timing=Timing.STEADY))
    )

    assert find_front(scheduling, []) == ()
    assert front._not_beaten([steady, exact]) == (exact,)
    assert front._not_beaten([steady]) == (steady,)
