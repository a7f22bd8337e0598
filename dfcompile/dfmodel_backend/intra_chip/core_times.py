"""The best split of a chip among kernels for many sets of kernels at once, each kind of set once."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dfcompile.dfmodel_backend.columns import Column, Members, Numbers
from dfcompile.dfmodel_backend.intra_chip.cores import CoreTable, least_cycles

MOST_ENTRIES = 4_000_000  # of a table of cores, and of what is looked up at a time


def least_cycles_of_counts(tables: tuple[CoreTable, ...], counts: Numbers, cores: int) -> Column:
    """Return the cycles of the slowest kernel of each set under the best split, infinite if there are too few cores.

    The answer is among the cycles of the tables: one bisection over all of these, for all sets side by side.

    Args:
        tables: of kernels; sets have some of each.
        counts: ``[set, table]``.
        cores: of the chip.
    """
    found = np.full(len(counts), np.inf)
    used = np.flatnonzero(counts.any(axis=0))
    if not len(used):
        return np.zeros(len(counts))
    most = max(1, MOST_ENTRIES // max(1, sum(len(tables[number].cycles) for number in used)))
    if len(used) > most and len(counts) > 1:  # sets with fewer different kernels have smaller tables
        half = len(counts) // 2
        parts = (counts[:half], counts[half:])
        return np.concatenate([least_cycles_of_counts(tables, part, cores) for part in parts])
    cycles = sorted({cycle for number in used for cycle in tables[number].cycles})
    needed = np.stack([_cores_for(tables[number], cycles, cores) for number in used], axis=1)
    exact = np.array([float(cycle) for cycle in cycles])
    step = max(1, MOST_ENTRIES // len(used))
    for start in range(0, len(counts), step):
        found[start : start + step] = _bisect(counts[start : start + step, used].astype(float), needed, exact, cores)
    return found


def _cores_for(table: CoreTable, cycles: list[int], cores: int) -> Column:
    """Return the fewest cores for at most so many cycles, more than there are where that is too few."""
    fewest = np.searchsorted(np.array(table.cycles), np.array(cycles), side="right") - 1
    return np.where(fewest < 0, cores + 1.0, np.array(table.cores, float)[fewest])


def _bisect(counts: Column, needed: Column, exact: Column, cores: int) -> Column:
    low = np.zeros(len(counts), np.int64)
    high = np.full(len(counts), len(exact), np.int64)  # that many: not even the most cycles are enough
    while (low < high).any():
        middle = (low + high) // 2
        taken = np.einsum("st,st->s", counts, needed[np.minimum(middle, len(exact) - 1)])
        fits = taken <= cores
        is_open = low < high
        high = np.where(is_open & fits, middle, high)
        low = np.where(is_open & ~fits, middle + 1, low)
    return np.append(exact, np.inf)[low]


class SetCycles:
    """The cycles of the slowest kernel of a set, with the cores split at best.

    Sets with as many kernels of each shape are the same set: of a chain of equal kernels few are different.
    """

    def __init__(self, tables: Sequence[CoreTable], cores: int) -> None:
        """Take the table of each kernel, where equal ones are one object: to compare long ones takes time."""
        self._cores = cores
        self._different = tuple({id(table): table for table in tables}.values())
        numbers = {id(table): number for number, table in enumerate(self._different)}
        places = np.array([numbers[id(table)] for table in tables], np.intp)
        self._has_shape: npt.NDArray[np.int64] = np.eye(len(numbers), dtype=np.int64)[places]

    def of(self, members: Members) -> list[int | None]:
        """Return the cycles of each set, ``[set, kernel]``; None without cores enough, 0 without kernels."""
        counts = members.astype(np.int64) @ self._has_shape
        different, place = np.unique(counts, axis=0, return_inverse=True)
        cycles = [self._of_counts(row) for row in different.tolist()]
        return [cycles[number] for number in place.reshape(-1).tolist()]

    def _of_counts(self, counts: Sequence[int]) -> int | None:
        wanted = [(table, count) for table, count in zip(self._different, counts, strict=True) if count]
        return least_cycles(wanted, self._cores) if wanted else 0
