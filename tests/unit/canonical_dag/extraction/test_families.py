"""Families of tasks: every iteration is in one task, and there are no more tasks than asked for."""

from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.canonical_dag.extraction import Granularity
from dfcompile.canonical_dag.extraction.families import TaskFamily, divide, split
from dfcompile.canonical_dag.extraction.scopes import Access, MapScope


def dense(extents: list[int], spatial: list[bool]) -> MapScope:
    """A scope that writes each element of an array in row order."""
    strides = tuple(prod(extents[axis + 1 :]) for axis in range(len(extents)))
    return MapScope("f", "f", None, tuple(extents), tuple(spatial), (), (Access("T", 0, strides),))


extents = st.lists(st.integers(1, 7), min_size=1, max_size=3)


@given(st.data(), extents, st.one_of(st.none(), st.integers(1, 20)))
def test_a_family_does_all_iterations_in_at_most_so_many_tasks(
    data: st.DataObject, extents: list[int], most: int | None
) -> None:
    spatial = data.draw(st.lists(st.booleans(), min_size=len(extents), max_size=len(extents)))
    (family,) = divide([dense(extents, spatial)], Granularity(max_tasks=most))

    assert int(family.iterations().column().sum()) == prod(extents)
    assert int(family.written(family.scope.writes[0]).column().sum()) == prod(extents)
    declared = prod(extent for extent, is_spatial in zip(extents, spatial, strict=True) if is_spatial)
    assert family.members <= (declared if most is None else min(most, declared))


@given(extents, st.integers(1, 20))
def test_pieces_of_a_task_do_all_iterations(extents: list[int], pieces: int) -> None:
    (family,) = split(divide([dense(extents, [False] * len(extents))]), [True], pieces)

    assert int(family.iterations().column().sum()) == prod(extents)
    assert family.members <= pieces


@pytest.mark.parametrize(
    ("extents", "pieces", "volumes"),
    [
        ([7], 3, [3, 3, 1]),
        ([7], 4, [2, 2, 2, 1]),
        ([2, 5], 4, [3, 2, 3, 2]),  # the rest of each row is shorter, not that of the last alone
        ([3, 5], 7, [3, 2, 3, 2, 3, 2]),
        ([2, 3, 5], 6, [5] * 6),
    ],
)
def test_what_is_left_of_a_row_is_a_smaller_task(extents: list[int], pieces: int, volumes: list[int]) -> None:
    (family,) = split(divide([dense(extents, [False] * len(extents))]), [True], pieces)

    assert family.iterations().column().tolist() == volumes
    found = family.iterations()
    assert (found.total, found.first, found.is_even) == (sum(volumes), volumes[0], len(set(volumes)) == 1)
    assert found.resized(9).column().tolist() == [volumes[0]] * 9
    assert found.resized(len(volumes)) == found


def accumulating(*strides: int) -> TaskFamily:
    """One task of 4 x 6 iterations."""
    scope = MapScope("f", "f", None, (4, 6), (False, False), (), (Access("T", 0, strides),))
    return divide([scope])[0]


def test_only_loops_that_write_other_elements_each_time_are_cut() -> None:
    by_rows, inner, outer = accumulating(6, 1), accumulating(1, 0), accumulating(0, 1)

    assert [family.members for family in split([by_rows, inner, outer], [True] * 3, 8)] == [8, 4, 1]
    assert [family.members for family in split([by_rows, inner, outer], [False, True, False], 8)] == [1, 4, 1]


def test_iterations_that_meet_in_an_element_are_not_cut() -> None:
    """Both loops move, by 2 and by 1: several iterations write one element."""
    overlapping = accumulating(2, 1)

    assert split([overlapping], [True], 4)[0].members == 1
