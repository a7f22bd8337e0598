"""The time-table bound: against all schedules of tiny graphs, and against optima that are known."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.generators.canonical_dags import cholesky, gaussian
from dfcompile.options import Effort
from dfcompile.records import replace
from dfcompile.scheduler import ScheduleOptions, lower_bound_cycles, schedule
from dfcompile.scheduler.bounds import time_table
from dfcompile.scheduler.checked_schedule import Scheduling
from tests.examples import examples
from tests.strategies import DagShape, canonical_dags
from tests.unit.scheduler.brute_force import shortest_makespan
from tests.unit.scheduler.streams import stream_graph


def test_more_tasks_than_elements_must_be_there_at_once() -> None:
    # Each of the four writes its last element in cycle 100 or later, and its reader needs 100 cycles from then on.
    dag = stream_graph(
        [edge for name in "abcd" for edge in (("in", name, 100), (name, f"{name}2", 1), (f"{name}2", "out", 100))]
    )

    assert lower_bound_cycles(dag, 8) == 200
    assert lower_bound_cycles(dag, 4) == 200
    assert lower_bound_cycles(dag, 3) == 300  # all work shared by three is 267, but nobody is cut in two


def test_a_full_time_puts_off_what_is_no_part_of_it() -> None:
    # The chain of two holds both elements from cycle 1 on, or from its end backwards: the third task finds no room.
    dag = stream_graph([("in", "a", 100), ("a", "b", 100), ("b", "out", 100), ("in", "c", 10), ("c", "out", 10)])

    assert lower_bound_cycles(dag, 2) == shortest_makespan(dag, 2) == 110


@pytest.mark.parametrize(
    ("dag", "pes", "bound", "makespan"),
    [
        (gaussian(16, 2048, 1), 128, 2388, 2388),  # proved optimal by nothing but this bound
        (cholesky(8, 2048, 1), 64, 2418, 2423),
    ],
)
def test_bound_is_no_less_than_the_optimum_of_the_relaxation_that_a_solver_finds(
    dag: CanonicalDag, pes: int, bound: int, makespan: int
) -> None:
    """Optima of intervals, precedences and one cumulative constraint: 2,388 and 2,407 by OR-Tools' CP-SAT."""
    figures = Scheduling(dag).on(ScheduleOptions(pes, "best")).figures

    assert figures.lower_bound_cycles == bound
    assert figures.makespan_cycles is not None
    assert bound <= figures.makespan_cycles <= makespan


@examples(20)
@given(canonical_dags(DagShape(max_scopes=4, max_members=2, max_volume=12)), st.integers(1, 3))
def test_no_schedule_of_a_tiny_graph_is_shorter(dag: CanonicalDag, pes: int) -> None:
    assume(1 <= dag.tasks_count <= 4)
    shortest = shortest_makespan(dag, pes)

    assert lower_bound_cycles(dag, pes) <= shortest <= schedule(dag, ScheduleOptions(pes, "best")).makespan_cycles


@examples(60)
@given(canonical_dags(DagShape(max_scopes=12, max_volume=40)), st.integers(1, 8))
def test_less_effort_never_gives_a_larger_bound(dag: CanonicalDag, pes: int) -> None:
    bounds = []
    for visits in (0, 40, 300, 300_000):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(time_table, "_VISITS", visits)
            bounds.append(lower_bound_cycles(replace(dag), pes))  # of each DAG it is found once

    assert bounds[-1] == max(bounds)
    assert bounds[-1] <= schedule(dag, ScheduleOptions(pes, "best", effort=Effort.QUICK)).makespan_cycles
