"""Columns of numbers: the same figure of many sets of kernels."""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

Column = npt.NDArray[np.float64]  # one figure per set, or per configuration
Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]  # which sets, arcs or kernels
Members = npt.NDArray[np.bool_]  # [set, kernel]: whether the kernel at that position is in the set
CELLS = 2**24  # sets times kernels as numbers at a time: they are eight times as large as members
_MOST = 2**62  # rows that a number tells apart

_Number = TypeVar("_Number", np.float32, np.float64, np.int64)


def equal_rows(columns: Sequence[Numbers]) -> tuple[Numbers, Numbers, Numbers]:
    """Put equal rows into groups, in ascending order of rows.

    Args:
        columns: of the rows, all as long.

    Returns:
        The first row of each group, the group of each row, and the number of rows of each group.
    """
    order = _ascending(columns)
    begins = np.ones(len(order), dtype=np.bool_)
    begins[1:] = False
    for column in columns:
        begins[1:] |= np.diff(column[order]) != 0
    starts = np.flatnonzero(begins)
    group = np.empty(len(order), dtype=np.int64)
    group[order] = np.cumsum(begins) - 1
    return order[starts], group, np.diff(np.append(starts, len(order)))


def _ascending(columns: Sequence[Numbers]) -> Numbers:
    """Return the order of rows, equal ones as they come; by one number for each row where that is possible."""
    key = np.zeros(len(columns[0]), dtype=np.int64)
    rows = 1
    for column in columns:
        least = int(column.min(initial=0))
        width = int(column.max(initial=0)) - least + 1
        rows *= width
        if rows > _MOST:
            return np.lexsort(columns[::-1])
        key = key * width + (column - least)
    return np.argsort(key, kind="stable")


def members_of(sets: tuple[int, ...], kernels: int) -> Members:
    """Return masks as rows ``[set, kernel]``."""
    width = max(1, -(-kernels // 8))
    packed = np.frombuffer(b"".join(mask.to_bytes(width, "little") for mask in sets), np.uint8)
    return np.unpackbits(packed.reshape(len(sets), width), axis=1, count=kernels, bitorder="little").astype(bool)


def sums_over(members: Members, of_kernels: npt.NDArray[_Number]) -> npt.NDArray[_Number]:
    """Return the sum over the kernels of each set of what each kernel has; ``[kernel]`` or ``[kernel, figure]``."""
    found = np.zeros((len(members), *of_kernels.shape[1:]), of_kernels.dtype)
    if not of_kernels.any():  # as exchanges of one chip
        return found
    rows = max(1, CELLS // max(1, members.shape[1]))
    for start in range(0, len(members), rows):
        found[start : start + rows] = members[start : start + rows].astype(of_kernels.dtype) @ of_kernels
    return found
