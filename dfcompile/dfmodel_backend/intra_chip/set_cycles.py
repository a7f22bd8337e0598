"""Cycles of sets of kernels that share the cores of a chip, each kind of set once."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dfcompile.dfmodel_backend.columns import Members
from dfcompile.dfmodel_backend.intra_chip.cores import CoreTable, least_cycles


class SetCycles:
    """The cycles of the slowest kernel of a set, with the cores split at best.

    Sets with as many kernels of each shape are the same set: of a chain of equal kernels few are different.
    """

    def __init__(self, tables: Sequence[CoreTable], cores: int) -> None:
        """Take the table of each kernel, where equal ones are one object: to compare long ones takes time."""
        self._cores = cores
        self._different = tuple({id(table): table for table in tables}.values())
        numbers = {id(table): number for number, table in enumerate(self._different)}
        places = np.array([numbers[id(table)] for table in tables])
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
