"""Tasks of equal figures count as one with a number."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.scheduler.bounds.crossing import alike, crossing_bound, first_sums, largest_sum

FIGURES = st.lists(st.tuples(st.integers(1, 4), st.integers(1, 3)), min_size=1, max_size=12)


@given(FIGURES)
def test_each_kind_is_a_stretch_of_equal_tasks(figures: list[tuple[int, int]]) -> None:
    first, second = (np.array(column, dtype=np.int64) for column in zip(*figures, strict=True))
    order, firsts = alike(first, second)

    assert sorted(order.tolist()) == list(range(len(figures)))
    stretches = [[figures[task] for task in stretch] for stretch in np.split(order, firsts[1:])]
    assert [len(set(stretch)) for stretch in stretches] == [1] * len(set(figures))


@given(FIGURES, st.integers(0, 40))
def test_the_largest_are_those_of_all_written_out(figures: list[tuple[int, int]], most: int) -> None:
    values, counts = (np.array(column, dtype=np.int64) for column in zip(*figures, strict=True))
    each = sorted((value for value, count in figures for _ in range(count)), reverse=True)

    assert largest_sum(values, counts, most) == sum(each[:most])


def test_sums_of_rows_take_the_first_kinds() -> None:
    found = first_sums(np.array([5, 3, 2]), np.array([[1, 1, 9], [0, 4, 1], [0, 0, 1]]), 3)
    assert found.tolist() == [5 + 3 + 2, 3 * 3, 2]


@given(FIGURES, st.integers(1, 5))
def test_what_crosses_two_times_does_not_depend_on_the_order_of_tasks(figures: list[tuple[int, int]], pes: int) -> None:
    work, held = (np.array(column, dtype=np.int64) for column in zip(*figures, strict=True))
    end = held + work

    assert crossing_bound(end, work, work, pes) == crossing_bound(end[::-1], work[::-1], work[::-1], pes)
