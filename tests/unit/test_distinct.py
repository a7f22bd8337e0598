"""The different numbers of an array: those of a set, ascending."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from dfcompile.distinct import distinct, first_places, numbered
from tests.examples import examples

shapes = arrays.array_shapes(min_dims=1, max_dims=3, min_side=0)


@given(arrays.arrays(st.sampled_from([np.int64, np.int32, np.uint8, np.bool_]), shapes))
@examples(100)
def test_each_value_stands_there_once_in_order(values: np.ndarray) -> None:
    found = distinct(values)

    assert found.tolist() == sorted(set(values.ravel().tolist()))
    assert found.dtype == values.dtype


@pytest.mark.parametrize("values", [np.zeros(0), np.array([1.5, -0.5, 1.5])])
def test_real_numbers_too(values: np.ndarray) -> None:
    assert distinct(values).tolist() == sorted(set(values.tolist()))


rows_of_numbers = arrays.arrays(st.sampled_from([np.int64, np.int32]), st.integers(0, 20), elements=st.integers(0, 300))


@given(rows_of_numbers)
@examples(100)
def test_places_among_the_different_values(values: np.ndarray) -> None:
    found, place = numbered(values)

    assert found.tolist() == sorted(set(values.tolist()))
    assert found[place].tolist() == values.tolist()


@given(rows_of_numbers)
@examples(100)
def test_where_each_value_comes_first(values: np.ndarray) -> None:
    found, first = first_places(values)

    assert found.tolist() == sorted(set(values.tolist()))
    assert first.tolist() == [values.tolist().index(value) for value in found]
