"""Columns of numbers: the same figure of many sets of kernels."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Column = npt.NDArray[np.float64]  # one figure per set, or per configuration
Numbers = npt.NDArray[np.int64]
Members = npt.NDArray[np.bool_]  # [set, kernel]: whether the kernel at that position is in the set


def equal_rows(columns: Sequence[Numbers]) -> tuple[Numbers, Numbers, Numbers]:
    """Put equal rows into groups, in ascending order of rows.

    Args:
        columns: of the rows, all as long.

    Returns:
        The first row of each group, the group of each row, and the number of rows of each group.
    """
    order = np.lexsort(columns[::-1])
    begins = np.ones(len(order), dtype=np.bool_)
    begins[1:] = False
    for column in columns:
        begins[1:] |= np.diff(column[order]) != 0
    starts = np.flatnonzero(begins)
    group = np.empty(len(order), dtype=np.int64)
    group[order] = np.cumsum(begins) - 1
    return order[starts], group, np.diff(np.append(starts, len(order)))


def members_of(sets: tuple[int, ...], kernels: int) -> Members:
    """Return masks as rows ``[set, kernel]``."""
    width = max(1, -(-kernels // 8))
    packed = np.frombuffer(b"".join(mask.to_bytes(width, "little") for mask in sets), np.uint8)
    return np.unpackbits(packed.reshape(len(sets), width), axis=1, count=kernels, bitorder="little").astype(bool)
