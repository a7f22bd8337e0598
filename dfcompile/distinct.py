"""The different numbers of an array, by sorting.

For integers NumPy 2.3 and later fill a hash table, which of millions of different numbers takes twenty times as long.
"""

from typing import TypeVar

import numpy as np
import numpy.typing as npt

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
