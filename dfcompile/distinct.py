"""The different numbers of an array, by sorting or by tables.

For integers NumPy 2.3 and later fill a hash table, which of millions of different numbers takes twenty times as long.
"""

from typing import TypeVar

import numpy as np
import numpy.typing as npt

_SPARSE = 8  # times the length of a row that its numbers may reach: tables of as many entries cost less than sorting

_Number = TypeVar("_Number", bound=np.generic)


def distinct(values: npt.NDArray[_Number]) -> npt.NDArray[_Number]:
    """Return the different values of an array of any shape, ascending; fastest where it has sorted runs.

    >>> distinct(np.array([[3, 1], [3, 2]]))
    array([1, 2, 3])
    """
    ordered = np.sort(values, axis=None, kind="stable")
    is_first = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return ordered[is_first]


def numbered(values: npt.NDArray[np.integer]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the different values of a row of numbers from 0 on, ascending, and the place of each value among these.

    This is ``np.unique`` with ``return_inverse``, without sorting where values are about as small as the row is long.

    >>> numbered(np.array([7, 2, 7, 5]))
    (array([2, 5, 7]), array([2, 0, 2, 1]))
    """
    most = int(values.max(initial=-1)) + 1
    if most > _SPARSE * len(values):
        found, place = np.unique(values, return_inverse=True)
        return found.astype(np.int64), place
    is_there = np.zeros(most, dtype=np.bool_)
    is_there[values] = True
    return np.flatnonzero(is_there), (np.cumsum(is_there) - 1)[values]


def first_places(values: npt.NDArray[np.integer]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the different values of a row of numbers from 0 on, ascending, and where in the row each comes first.

    >>> first_places(np.array([7, 2, 7, 5]))
    (array([2, 5, 7]), array([1, 3, 0]))
    """
    most = int(values.max(initial=-1)) + 1
    if most > _SPARSE * len(values):
        found, first = np.unique(values, return_index=True)
        return found.astype(np.int64), first
    place = np.full(most, len(values), dtype=np.int64)
    np.minimum.at(place, values, np.arange(len(values)))
    found = np.flatnonzero(place < len(values))
    return found, place[found]
