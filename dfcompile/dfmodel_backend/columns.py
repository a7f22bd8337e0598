"""NumPy arrays over many sets of kernels: one figure of all sets at a time, and which kernels are in each set."""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

Column = npt.NDArray[np.float64]  # one figure per set, or per configuration
Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]  # which sets, arcs or kernels
Members = npt.NDArray[np.bool_]  # [set, kernel]: whether the kernel at that position is in the set
CELLS = 2**24  # members, sets times kernels, turned into numbers at a time: a number takes up to eight times the memory
_MOST_KEYS = 2**62  # different keys of rows that fit an int64

_Number = TypeVar("_Number", np.float32, np.float64, np.int64)


def equal_rows(columns: Sequence[Numbers]) -> tuple[Numbers, Numbers, Numbers]:
    """Group equal rows of a table, in ascending order of rows.

    Args:
        columns: of the table, all of the same length.

    Returns:
        The first row of each group, the group of each row, and the number of rows of each group.
    """
    order = _ascending(columns)
    begins = np.arange(len(order)) == 0  # whether a group begins at each row, in that order
    for column in columns:
        begins[1:] |= np.diff(column[order]) != 0
    starts = np.flatnonzero(begins)
    group = np.empty(len(order), dtype=np.int64)
    group[order] = np.cumsum(begins) - 1
    return order[starts], group, np.diff(np.append(starts, len(order)))


def _ascending(columns: Sequence[Numbers]) -> Numbers:
    """Return the stable ascending order of rows; sorts by one integer key per row if the keys fit an int64."""
    key = np.zeros(len(columns[0]), dtype=np.int64)
    rows = 1
    for column in columns:
        least = int(column.min(initial=0))
        width = int(column.max(initial=0)) - least + 1
        rows *= width
        if rows > _MOST_KEYS:
            return np.lexsort(columns[::-1])
        key = key * width + (column - least)
    return np.argsort(key, kind="stable")


def members_of(sets: tuple[int, ...], kernels: int) -> Members:
    """Return sets of kernels, given as bit masks, as rows ``[set, kernel]``."""
    width = max(1, -(-kernels // 8))
    packed = np.frombuffer(b"".join(mask.to_bytes(width, "little") for mask in sets), np.uint8)
    return np.unpackbits(packed.reshape(len(sets), width), axis=1, count=kernels, bitorder="little").astype(bool)


def sums_over(members: Members, figures: npt.NDArray[_Number]) -> npt.NDArray[_Number]:
    """Return figures of kernels, ``[kernel]`` or ``[kernel, figure]``, summed over each set."""
    sums = np.zeros((len(members), *figures.shape[1:]), figures.dtype)
    if not figures.any():  # such as exchanges between chips where there is only one
        return sums
    rows = max(1, CELLS // max(1, members.shape[1]))
    for start in range(0, len(members), rows):
        sums[start : start + rows] = members[start : start + rows].astype(figures.dtype) @ figures
    return sums
