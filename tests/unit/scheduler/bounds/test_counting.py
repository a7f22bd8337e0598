"""What some processing element must run one after another."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.generators.canonical_dags import fft, gaussian
from dfcompile.scheduler import lower_bound_cycles
from dfcompile.scheduler.bounds.crossing import counting_bound
from tests.examples import examples


def _bound(tasks: list[tuple[int, int, int]], pes: int) -> int:
    """Of tasks given by earliest end, cycles from the start to the end of the schedule, and work."""
    end, after_start, work = (np.array(column, dtype=np.int64) for column in zip(*tasks, strict=True))
    return counting_bound(end, after_start, work, pes)


def test_of_five_tasks_one_of_two_elements_runs_three() -> None:
    """Their work alone is 25 for either element."""
    assert _bound([(10, 10, 10)] * 5, 2) == 30


def test_small_tasks_do_not_count_where_large_ones_take_longer() -> None:
    assert _bound([(10, 10, 10)] * 3 + [(1, 1, 1)] * 2, 2) == 20


def test_the_first_ends_late_and_the_last_begins_early() -> None:
    assert _bound([(50, 70, 10)] * 5, 2) == 50 + 10 + 70


def test_tasks_that_all_fit_at_once_say_nothing() -> None:
    assert _bound([(10, 10, 10)] * 2, 2) == 0


@examples(60)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9), st.integers(0, 9)), min_size=1, max_size=6), st.data())
def test_no_assignment_is_shorter(tasks: list[tuple[int, int, int]], data: st.DataObject) -> None:
    """Tasks with heads and tails, in all orders on all elements: those of one element by head, then as drawn."""
    pes = data.draw(st.integers(1, 3))
    order = data.draw(st.permutations(tasks))
    shortest = min(
        max(_cycles([task for task, own in zip(order, where, strict=True) if own == pe]) for pe in range(pes))
        for where in product(range(pes), repeat=len(order))
    )

    assert _bound([(head + work, work + tail, work) for head, work, tail in tasks], pes) <= shortest


def _cycles(tasks: list[tuple[int, int, int]]) -> int:
    now = latest = 0
    for head, work, tail in tasks:
        now = max(now, head) + work
        latest = max(latest, now + tail)
    return latest


@pytest.mark.parametrize(
    ("dag", "pes", "bound"),
    [(gaussian(8, 2048, 2), 16, 5459), (gaussian(8, 2048, 6), 16, 3074), (fft(32, 2048, 4), 64, 3418)],
)
def test_large_tasks_do_not_fit_in_turn(dag: CanonicalDag, pes: int, bound: int) -> None:
    """The other bounds give 4,911, 2,824 (a schedule of 3,074 is known) and 3,174."""
    assert lower_bound_cycles(dag, pes) == bound
