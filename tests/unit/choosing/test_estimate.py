"""Equal tasks on elements that get free at different times: runs of elements give what single ones give."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.choosing.elements import Elements, Placed
from tests.examples import examples

FAMILIES = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 40), st.integers(1, 12)), min_size=1, max_size=12)
Elapsed = np.ndarray[tuple[int], np.dtype[np.int64]]


@given(st.integers(1, 9), FAMILIES)
@examples(200)
def test_runs_of_elements_are_placed_like_single_ones(pes: int, families: list[tuple[int, int, int]]) -> None:
    elements, free = Elements(pes), np.zeros(pes, dtype=np.int64)
    now = 0
    for wait, members, cycles in families:
        now = max(now, int(free.min())) + wait
        first, end, sooner = _placed(free, now, members, cycles)

        assert elements.place(now, members, cycles) == Placed(first, end, cycles, members, sooner)
        assert elements.first_free == free.min()


@given(st.integers(1, 9), FAMILIES, st.integers(1, 40))
@examples(200)
def test_tasks_that_begin_before_a_limit_are_those_that_begin_before_it_anyway(
    pes: int, families: list[tuple[int, int, int]], limit: int
) -> None:
    elements, free = Elements(pes), np.zeros(pes, dtype=np.int64)
    for _, members, cycles in families:
        now = elements.first_free
        before = [begin for begin in _begins(free.copy(), members, cycles) if begin < now + limit]
        _begins(free, len(before), cycles)

        placed = elements.place(now, members, cycles, now + limit)

        assert placed.members == len(before)
        assert placed.end == max(before) + cycles


def _placed(free: Elapsed, now: int, members: int, cycles: int) -> tuple[int, int, int]:
    """Give each task in turn to an element that gets free first, the one that did so first."""
    np.maximum(free, now, out=free)
    first, begins = int(free.min()), _begins(free, members, cycles)
    end = max(begins) + cycles
    return first, end, sum(begin + cycles <= end - cycles for begin in begins)


def _begins(free: Elapsed, members: int, cycles: int) -> list[int]:
    begins = []
    for _ in range(members):
        element = int(free.argmin())
        begins.append(int(free[element]))
        free[element] += cycles
    return begins
