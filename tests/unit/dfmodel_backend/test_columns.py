"""Equal rows of columns."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.dfmodel_backend.columns import equal_rows

rows = st.lists(st.tuples(st.integers(-2, 2), st.integers(0, 1), st.integers(0, 2**62)), max_size=30)


@given(rows)
def test_groups_are_those_of_whole_rows(rows: list[tuple[int, int, int]]) -> None:
    table = np.array(rows, np.int64).reshape(-1, 3)
    expected, inverse, count = np.unique(table, axis=0, return_inverse=True, return_counts=True)

    first, group, found = equal_rows(list(table.T))

    assert np.array_equal(table[first], expected)
    assert np.array_equal(group, inverse.reshape(-1))
    assert np.array_equal(found, count)
