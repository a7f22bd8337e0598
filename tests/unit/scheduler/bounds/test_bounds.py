"""The lower bound against closed forms and against schedules."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.canonical_dag import CanonicalDag, DagBuilder, critical_path, topological_order
from dfcompile.generators.canonical_dags import cholesky
from dfcompile.scheduler import (
    ScheduleOptions,
    figures,
    lower_bound_cycles,
    schedule,
    schedule_non_streaming,
)
from dfcompile.scheduler.bounds import makespan
from dfcompile.scheduler.bounds.makespan import windows
from dfcompile.scheduler.bounds.precedence import directions, earliest, stream_delays
from tests.examples import examples
from tests.strategies import DagShape, canonical_dags
from tests.unit.scheduler.convolution import convolution_dag
from tests.unit.scheduler.element_simulator import simulate


def _graph(*edges: tuple[str, str, int]) -> CanonicalDag:
    """Return a graph in which nodes with a capital name are buffers."""
    builder = DagBuilder("graph")
    number: dict[str, int] = {}
    for name in dict.fromkeys(name for source, target, _ in edges for name in (source, target)):
        scope = builder.add_scope(name)
        number[name] = builder.add_memory(scope) if name.isupper() else builder.add_task(scope)
    for source, target, volume in edges:
        builder.add_edge(number[source], number[target], volume)
    return builder.finish()


def test_elementwise_chain_takes_volume_plus_levels_or_all_its_work() -> None:
    dag = _graph(("IN", "a", 100), ("a", "b", 100), ("b", "c", 100), ("c", "OUT", 100))

    assert lower_bound_cycles(dag, 3) == 102
    assert lower_bound_cycles(dag, 2) == 200  # c cannot start before a has ended: less than all work shared by two
    assert lower_bound_cycles(dag, 1) == 300


def test_bounds_with_single_elements_and_without_are_told_apart() -> None:
    dag = cholesky(4, 64, 1)

    assert [lower_bound_cycles(dag, 16, each_element=each) for each in (True, False, True)] == [81, 78, 81]


def test_components_behind_each_other_add_up() -> None:
    dag = _graph(
        ("IN", "a", 100),
        ("a", "b", 100),
        ("b", "MID", 100),
        ("MID", "c", 40),
        ("c", "OUT", 40),
        ("IN", "d", 60),
        ("d", "OUT", 60),
    )

    assert lower_bound_cycles(dag, 4) == 101 + 40


def test_a_task_of_as_many_producers_as_elements_waits_for_one_of_them_to_end() -> None:
    """All but two of three producers have ended when their reader runs on one of three elements."""
    producers = ("p", "q", "r")
    dag = _graph(
        *(("IN", name, 1) for name in producers),
        *((name, reader, 4) for reader in ("sum", "sink") for name in producers),
        *(("sum", f"last{number}", 2) for number in range(5)),
    )

    assert lower_bound_cycles(dag, 3) == 12
    assert schedule(dag, ScheduleOptions(3, "best")).makespan_cycles >= 12


def test_stream_past_a_memory_waits_for_it() -> None:
    dag = _graph(
        ("IN", "a", 10), ("a", "sum", 10), ("sum", "TOTAL", 1), ("TOTAL", "b", 10), ("a", "b", 10), ("b", "OUT", 10)
    )

    assert lower_bound_cycles(dag, 3) == 11 + 10


def test_downsampler_delays_what_follows() -> None:
    dag = _graph(("IN", "sum", 64), ("sum", "spread", 2), ("spread", "OUT", 64))

    # the first sum is there after 32 cycles; spreading takes 64
    assert lower_bound_cycles(dag, 2) == 32 + 64


def test_an_element_is_there_when_whole_inputs_are() -> None:
    dag = _graph(("IN", "sum", 10), ("sum", "spread", 4), ("spread", "OUT", 64))

    # two inputs and a half make an element: it is there after three cycles
    assert lower_bound_cycles(dag, 2) == 3 + 64


def test_work_that_cannot_start_early_is_shared_late() -> None:
    works = {"b": 50, "c": 40, "d": 30, "e": 20}
    tail = [edge for task, work in works.items() for edge in (("MID", task, work), (task, "OUT", work))]
    dag = _graph(("IN", "a", 100), ("a", "MID", 100), *tail)

    assert lower_bound_cycles(dag, 2) == 100 + sum(works.values()) // 2
    assert lower_bound_cycles(dag, 5) == 150


def test_consumer_of_more_tasks_than_can_run_beside_it_waits_for_the_others() -> None:
    rows = [edge for task in "abcdefgh" for edge in (("IN", task, 100), (task, "sum", 100))]
    dag = _graph(*rows, ("sum", "OUT", 100))

    # three of the eight run beside the sum, the other five share four elements before it
    assert lower_bound_cycles(dag, 4) == 200 + 100
    assert lower_bound_cycles(dag, 9) == 101


def test_work_between_a_first_and_a_last_task_is_shared() -> None:
    works = {"b": 80, "c": 50, "d": 40, "e": 30}
    rows = [edge for task, work in works.items() for edge in (("MID", task, work), (task, "LATE", work))]
    dag = _graph(("IN", "a", 100), ("a", "MID", 100), *rows, ("LATE", "g", 70), ("g", "OUT", 70))

    assert lower_bound_cycles(dag, 2) == 100 + 100 + 70


def _spine(steps: int, at: int, wide: int, work: int) -> list[tuple[str, str, int]]:
    """Small tasks in a row, each behind a memory of its own; many large ones behind the memory at one place."""
    row = [("IN", "s0", 1), *((f"s{step}", f"M{step}", 1) for step in range(steps))]
    row += [(f"M{step}", f"s{step + 1}", 1) for step in range(steps - 1)]
    return row + [
        edge for number in range(wide) for edge in ((f"M{at}", f"w{number}", work), (f"w{number}", "OUT", work))
    ]


def test_load_is_tried_at_every_end_where_it_is_not_at_every_start() -> None:
    """Of 150 starts 64 are tried, all ends are: that of the large tasks at the start of a step that is not among them.

    Backwards the same graph has 150 ends, and only as many starts as are tried.
    """
    forward = _graph(*_spine(150, 64, 8, 100))
    backward = _graph(*((target, source, volume) for source, target, volume in _spine(150, 64, 8, 100)))

    # 65 steps before the large tasks; those and the other 85 steps on two elements
    assert lower_bound_cycles(forward, 2) == 65 + -(-(800 + 85) // 2)
    assert lower_bound_cycles(backward, 2) == 65 + -(-(800 + 85) // 2)


def test_what_follows_a_path_waits_for_all_of_it() -> None:
    """Of a chain no more than two tasks are on the machine: it ends after 200 cycles, then two share 200 more."""
    tail = [edge for task in "wxyz" for edge in (("MID", task, 50), (task, "OUT", 50))]
    dag = _graph(("IN", "a", 100), ("a", "b", 100), ("b", "c", 100), ("c", "MID", 100), *tail)

    assert lower_bound_cycles(dag, 2) == 200 + 100


def test_published_outer_product_is_optimal_on_many_elements() -> None:
    dag = convolution_dag("op", whole_arrays=False)
    result = figures(dag, schedule(dag, ScheduleOptions(32)), schedule_non_streaming(dag, 32))

    assert (result.makespan_cycles, result.lower_bound_cycles, result.gap) == (24_769, 24_769, Fraction(0))
    assert result.speedup == Fraction(111_318, 24_769)
    assert result.pe_utilization == result.speedup / 32


@examples(80)
@given(canonical_dags(), st.integers(1, 8), st.sampled_from(["sb-rlx", "sb-lts", "work-ordered"]))
def test_nothing_beats_the_lower_bound(dag: CanonicalDag, pes: int, partition: str) -> None:
    bound = lower_bound_cycles(dag, pes)
    result = schedule(dag, ScheduleOptions(pes, partition))
    baseline = schedule_non_streaming(dag, pes)

    assert bound <= result.makespan_cycles
    assert bound <= simulate(dag, result, barrier=False).makespan_cycles
    assert max(bound, critical_path(dag)) <= baseline.makespan_cycles


@given(canonical_dags())
@examples(100)
def test_windows_hold_all_that_streams_demand(dag: CanonicalDag) -> None:
    """Whatever a large graph is spared, nothing follows from its windows that is not in them."""
    found = windows(dag, dag.nodes_count, each_element=False)
    ahead, back = directions(dag)
    columns = dag.is_computational.tolist(), dag.work.tolist()

    assert earliest(ahead, *columns, (found.start, found.end)) == (found.start, found.end)
    assert earliest(back, *columns, (found.after_end, found.after_start)) == (found.after_end, found.after_start)


def test_a_task_writes_what_its_last_element_allows_after_its_producer_has_ended() -> None:
    """The first task ends at 100, the second one writes ten elements after that; seen from the end, too."""
    dag = _graph(("IN", "a", 100), ("a", "b", 10), ("b", "OUT", 100), ("a", "c", 10), ("c", "OUT", 10))

    found = windows(dag, 4, each_element=False)

    assert max(found.end) == 110
    assert max(found.after_start) == 110


def test_a_task_waits_for_whole_elements_and_writes_all_that_the_last_one_allows() -> None:
    """Three elements become two, two become five: the first output needs two inputs, the last input gives three."""
    dag = _graph(("IN", "a", 3), ("a", "b", 2), ("b", "OUT", 5))

    awaited, written = (column[dag.is_computational].tolist() for column in stream_delays(dag))

    assert awaited == [2, 1]
    assert written == [1, 3]


@given(canonical_dags(DagShape(max_scopes=9, max_members=9)), st.integers(1, 60), st.booleans())
@examples(100)
def test_earliest_times_together_are_those_one_by_one(dag: CanonicalDag, pes: int, backwards: bool) -> None:
    order = topological_order(dag)[:: -1 if backwards else 1]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(makespan, "_FEWEST", 0)
        together = makespan._earliest_together(dag, order, pes, backwards=backwards)
        found = makespan._earliest_of_all(dag, order, pes, makespan._path_pes(dag, pes), backwards=backwards)

    expected = makespan._earliest(dag, order.tolist(), pes, pes, backwards=backwards)
    assert tuple(column.tolist() for column in found) == expected
    assert together is not None or pes < dag.edges_count + dag.tasks_count


def test_nothing_takes_no_time() -> None:
    assert windows(DagBuilder("nothing").finish(), 4).end == []
