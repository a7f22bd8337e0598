"""Equal tasks on elements that get free at different times: runs of elements give what single ones give."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.choosing.estimate import Elements
from tests.examples import examples

FAMILIES = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 40), st.integers(1, 12)), min_size=1, max_size=12)


@given(st.integers(1, 9), FAMILIES)
@examples(200)
def test_runs_of_elements_are_placed_like_single_ones(pes: int, families: list[tuple[int, int, int]]) -> None:
    elements, free = Elements(pes), np.zeros(pes, dtype=np.int64)
    for ready, members, cycles in families:
        expected = _placed(free, ready, members, cycles)

        assert elements.place(ready, members, cycles) == expected


def _placed(free: np.ndarray[tuple[int], np.dtype[np.int64]], ready: int, members: int, cycles: int) -> tuple[int, int]:
    """Search for the last end cycle by cycle; of the elements that end last those in front get no more than needed."""
    begin = np.maximum(free, ready)
    first = end = int(begin.min())
    while int(np.maximum((end - begin) // cycles, 0).sum()) < members:
        end += 1
    counts = np.maximum((end - begin) // cycles, 0)
    surplus = int(counts.sum()) - members
    counts[np.flatnonzero((counts > 0) & (begin + counts * cycles == end))[:surplus]] -= 1
    free[:] = np.where(counts > 0, begin + counts * cycles, free)
    return first, end
