"""Task by task: list schedules are short, proofs are proofs, and both are the same each time."""

from operator import add

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dfcompile.canonical_dag import CanonicalDag, DagBuilder, parse_dag
from dfcompile.generators.canonical_dags import chain, cholesky, fft, gaussian
from dfcompile.options import Effort
from dfcompile.records import replace
from dfcompile.scheduler import ScheduleOptions, lower_bound_cycles, schedule, schedule_non_streaming
from dfcompile.scheduler.bounds.makespan import windows
from dfcompile.scheduler.checked_schedule import Scheduling
from dfcompile.scheduler.listing import cp_sat, listed_schedules
from dfcompile.scheduler.listing.list_schedule import FREE, ListScheduler, Rule
from dfcompile.scheduler.listing.listed_schedules import listed_plan, listed_schedule
from tests.examples import examples
from tests.strategies import DagShape, canonical_dags
from tests.unit.scheduler.brute_force import shortest_makespan

TINY = DagShape(max_scopes=4, max_members=2, max_volume=12)


def test_high_effort_finds_the_optimum_and_nearly_always_proves_it() -> None:
    """`PROPERTY_EXAMPLES=38` tries 304 graphs; the bound may miss the optimum of one in twenty, or of one."""
    tried = missed = 0

    @examples(8)
    @given(canonical_dags(TINY), st.integers(1, 3))
    def one(dag: CanonicalDag, pes: int) -> None:
        nonlocal tried, missed
        assume(1 <= dag.tasks_count <= 5)  # all orders of more take too long
        optimum = shortest_makespan(dag, pes)
        figures = Scheduling(dag).on(ScheduleOptions(pes, "best", effort=Effort.HIGH)).figures
        tried, missed = tried + 1, missed + (figures.lower_bound_cycles < optimum)

        assert figures.makespan_cycles == optimum
        assert figures.lower_bound_cycles <= optimum

    one()
    assert missed <= max(tried // 20, 1), f"{missed} of {tried} optima are not proved"


@pytest.mark.parametrize("pes", [2, 3, 7])
def test_tasks_of_a_chain_take_elements_in_turn(pes: int) -> None:
    dag = chain(40, 64, 3)
    found = schedule(dag, ScheduleOptions(pes, "best", effort=Effort.QUICK))
    tasks = found.pe[dag.is_computational]

    assert tasks[:pes].tolist() == list(range(pes))
    assert tasks[pes:].tolist() == tasks[:-pes].tolist()  # in turn: no assignment is shorter


@given(canonical_dags(), st.integers(1, 5), st.sampled_from([Effort.QUICK, Effort.DEFAULT]), st.sampled_from([None, 3]))
@examples(100)
def test_random_schedules_are_no_longer_than_without_streams(
    dag: CanonicalDag, pes: int, effort: Effort, max_fifo: int | None
) -> None:
    found = schedule(dag, ScheduleOptions(pes, "best", effort=effort, max_fifo=max_fifo))

    assert found.makespan_cycles <= schedule_non_streaming(dag, pes).makespan_cycles


def test_a_task_that_would_only_wait_lets_others_run() -> None:
    """``b`` could begin in cycle 1 and would keep the second element for 100 cycles; ``c`` takes 50 of them."""
    scheduler = ListScheduler(gaussian(2, 64, 1), 2)
    never_early = [2**40] * scheduler.nodes
    late, early = (
        scheduler.forwards(Rule.at_once(scheduler.left(), latest)) for latest in (never_early, [0] * scheduler.nodes)
    )

    for found in (late, early):
        assert found.cycles == max(found.end)
        for node, before in enumerate(found.before):
            assert before == FREE or found.end[before] <= found.start[node]


def test_the_default_is_near_the_bound() -> None:
    """Of others `test_time_table.py` has the figures."""
    dag = chain(128, 512, 1)

    assert schedule(dag, ScheduleOptions(16, "best")).makespan_cycles <= 1.001 * lower_bound_cycles(dag, 16)


def test_minimal_fifos_are_never_slower_where_lists_are_shorter() -> None:
    """Beyond the sizes where the search for the smallest ends by itself; gangs alone take 608 cycles."""
    dag, options = fft(4, 256, 1), ScheduleOptions(4, "best")
    found, minimal = (schedule(dag, replace(options, fifos=fifos)) for fifos in (None, "minimal"))

    assert int(dag.edge_volume.sum()) > listed_schedules._SEARCHED_ELEMENTS
    assert minimal.makespan_cycles == found.makespan_cycles == 545
    assert minimal.fifo_capacity.sum() <= found.fifo_capacity.sum()


def test_a_proof_raises_the_bound_to_the_optimum() -> None:
    dag, options = gaussian(6, 64, 1), ScheduleOptions(8, "best", effort=Effort.HIGH)
    figures = Scheduling(dag).on(options).figures

    assert lower_bound_cycles(dag, 8) == 134
    assert figures.makespan_cycles == figures.lower_bound_cycles == 136


def test_a_plan_that_ends_before_any_schedule_can_is_no_horizon_of_proofs() -> None:
    """Rates promise of 30 -> 16 -> 3 -> 48 elements an end that no replay reaches; then a bound proves that."""
    dag = parse_dag(
        "dfcompile-dag/1 rates\ntask e\ntask g\ntask h\ntask a\ntask b\ntask c\ntask d\nbuffer y\n"
        "task i\ntask f\ntask j\nedge g -> h volume=5\nedge a -> b volume=30\nedge b -> c volume=16\n"
        "edge c -> d volume=3\nedge d -> y volume=48\nedge e -> f volume=48\nedge i -> j volume=48\n"
    )
    options, non_streaming = ScheduleOptions(8, "best", effort=Effort.HIGH), schedule_non_streaming(dag, 8)
    (planned, *_) = listed_plan(dag, options).found
    window = windows(dag, 8)
    assert planned.cycles < max(map(add, window.start, window.after_start))

    listed = listed_schedule(dag, options, lower_bound_cycles(dag, 8), non_streaming)

    assert listed.found is not None
    assert listed.bound <= listed.found.schedule.makespan_cycles


def test_a_program_without_any_solution_proves_that_schedules_take_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    dag = gaussian(4, 64, 1)
    plan = listed_plan(dag, ScheduleOptions(2, "best")).found[0]
    monkeypatch.setattr(cp_sat, "_answer", lambda _: {"status": "INFEASIBLE", "bound": 0, "start": [], "end": []})

    assert cp_sat.solve(dag, 2, (windows(dag, 2), 1), (plan.start, plan.end))[0] == plan.cycles + 1


def test_high_effort_is_the_same_each_time() -> None:
    dag, options = gaussian(3, 64, 2), ScheduleOptions(2, "best", effort=Effort.HIGH)
    first, second = (listed_schedule(dag, options, 1, schedule_non_streaming(dag, 2)) for _ in range(2))

    assert first.bound == second.bound
    assert first.planned.start.tolist() == second.planned.start.tolist()
    assert first.planned.pe.tolist() == second.planned.pe.tolist()


def test_without_the_solver_no_proof_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listed_schedules, "is_installed", lambda: False)
    dag, options = gaussian(6, 64, 1), ScheduleOptions(8, "best", effort=Effort.HIGH)

    assert listed_schedule(dag, options, lower_bound_cycles(dag, 8), schedule_non_streaming(dag, 8)).bound == 134


@pytest.mark.parametrize("count", [10, 70])
def test_work_of_any_size_is_scheduled_with_high_effort(count: int) -> None:
    """The solver sums up in 64 bits; what does not fit is not given to it."""
    builder = DagBuilder("wide")
    tasks = builder.add_tasks(builder.add_scope("task"), count)
    for number, task in enumerate(tasks):
        source, target = (builder.add_memory(builder.add_scope(f"{side}{number}")) for side in ("in", "out"))
        builder.add_edge(source, task, 2**48)
        builder.add_edge(task, target, 2**48)
    dag = builder.finish()

    figures = Scheduling(dag).on(ScheduleOptions(7, "best", effort=Effort.HIGH)).figures

    assert figures.makespan_cycles is not None
    assert figures.lower_bound_cycles <= figures.makespan_cycles <= 1.3 * figures.lower_bound_cycles


def test_a_task_that_waits_makes_room_for_those_that_stream_together() -> None:
    """Lists that leave no element idle take 3,409 cycles; the bound is 3,084."""
    assert schedule(cholesky(5, 2048, 1), ScheduleOptions(16, "best")).makespan_cycles <= 3087


@examples(10)
@given(canonical_dags(TINY), st.integers(0, 3))
def test_with_an_element_for_each_task_the_schedule_is_proved(dag: CanonicalDag, more: int) -> None:
    assume(dag.tasks_count)
    figures = Scheduling(dag).on(ScheduleOptions(dag.tasks_count + more, "best")).figures

    assert figures.makespan_cycles == figures.lower_bound_cycles


def test_with_an_element_for_each_task_no_replay_is_too_large_for_a_proof() -> None:
    """The bound itself looks at no more than a million accesses."""
    dag = cholesky(5, 2048, 3)
    figures = Scheduling(dag).on(ScheduleOptions(64, "best")).figures

    assert lower_bound_cycles(dag, 64) < figures.lower_bound_cycles == figures.makespan_cycles
