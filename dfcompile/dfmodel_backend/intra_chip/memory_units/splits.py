"""Every useful split of cores, lanes by stages, of one kernel, and the least ones for a number of cycles."""

from bisect import bisect_right

from dfcompile.dfmodel_backend.intra_chip.cores import CoreSplit, useful_parts
from dfcompile.dfmodel_backend.machine.machine import Machine
from dfcompile.dfmodel_backend.workload.kernel_work import KernelWork


class SplitTable:
    """Splits of the cores of a kernel.

    Attributes:
        cycles: every number of cycles that some split takes, ascending.
    """

    def __init__(self, work: KernelWork, chip: Machine) -> None:
        self._chip = chip
        self._row_blocks = -(-work.rows // chip.lanes_per_core)
        self._column_blocks = -(-work.columns // (work.stages_per_core or chip.stages_per_core))
        self._per_block = work.steps  # cycles for one block of rows and columns
        self._lanes = useful_parts(self._row_blocks, chip.cores)
        self.cycles = tuple(
            sorted(
                {self.cycles_of(CoreSplit(lanes, stages)) for lanes in self._lanes for stages in self._stages(lanes)}
            )
        )
        self._known: dict[int, tuple[CoreSplit, ...]] = {}

    def _stages(self, lanes: int) -> list[int]:
        return useful_parts(self._column_blocks, self._chip.cores // lanes)

    def cycles_of(self, split: CoreSplit) -> int:
        """Return the cycles of a split."""
        return -(-self._row_blocks // split.lanes) * -(-self._column_blocks // split.stages) * self._per_block

    @property
    def splits(self) -> tuple[CoreSplit, ...]:
        """All splits that fewer lanes or stages would make slower."""
        return tuple(CoreSplit(lanes, stages) for lanes in self._lanes for stages in self._stages(lanes))

    def least(self, cycles: int) -> tuple[CoreSplit, ...]:
        """Return the splits of at most so many cycles of which neither lanes nor stages can be fewer."""
        rank = bisect_right(self.cycles, cycles)
        if rank not in self._known:
            self._known[rank] = tuple(self._staircase(self.cycles[rank - 1])) if rank else ()
        return self._known[rank]

    def _staircase(self, cycles: int) -> list[CoreSplit]:
        found = []
        fewest = self._chip.cores + 1
        for lanes in self._lanes:
            column_steps = cycles // (-(-self._row_blocks // lanes) * self._per_block)
            if not column_steps:
                continue
            stages = -(-self._column_blocks // column_steps)
            if lanes * stages <= self._chip.cores and stages < fewest:
                found.append(CoreSplit(lanes, stages))
                fewest = stages
        return found
