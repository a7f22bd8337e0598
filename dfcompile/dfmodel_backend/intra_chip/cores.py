"""Cores for kernels: cycles of a kernel on so many cores, and the best split of a chip among the kernels of sets."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from msgspec import Struct

from dfcompile.dfmodel_backend.columns import Column, Numbers
from dfcompile.dfmodel_backend.machine.system import Machine
from dfcompile.dfmodel_backend.workload.kernel_work import KernelWork

LARGEST = 2**62
TOO_FEW = -1  # cycles of a set with more kernels than cores
MOST_ENTRIES = 4_000_000  # of a table of cores, and of what is looked up at a time
_KEPT = 256  # tables: those of very large chips take a megabyte


class CoreSplit(Struct, frozen=True):
    """Cores of one kernel: ``lanes x stages`` of them."""

    lanes: int
    stages: int

    @property
    def cores(self) -> int:
        """Cores that the kernel occupies."""
        return self.lanes * self.stages


class CoreTable(Struct, frozen=True):
    """Pareto-optimal choices for one kernel, fewest cycles (most cores) first."""

    cycles: tuple[int, ...]
    splits: tuple[CoreSplit, ...]
    cores: tuple[int, ...]
    least_area: int  # the least cores x cycles of any choice


def core_table(kernel: KernelWork, chip: Machine) -> CoreTable:
    """Return all core splits of a kernel that no other split beats in both cores and cycles."""
    row_blocks = -(-kernel.rows // chip.lanes_per_core)
    column_blocks = -(-kernel.columns // (kernel.stages_per_core or chip.stages_per_core))
    return _table_of_blocks(row_blocks, column_blocks, kernel.steps, chip.cores)


@lru_cache(_KEPT)  # ways to share a graph among chips differ in few kernels
def _table_of_blocks(row_blocks: int, column_blocks: int, steps_per_block: int, most_cores: int) -> CoreTable:
    number = np.int64
    if row_blocks * column_blocks * steps_per_block >= LARGEST:
        number = np.object_  # type: ignore[assignment]  # whole numbers of any size behave the same
    stages = np.array(useful_parts(column_blocks, most_cores), np.int64)
    steps = -(-column_blocks // stages.astype(number)) * steps_per_block
    # By number of cores: the fewest cycles and the lanes that give them.
    best = np.full(min(most_cores, row_blocks * int(stages[-1])) + 1, LARGEST, number)
    lanes_of = np.zeros(len(best), np.int64)
    for lanes in useful_parts(row_blocks, most_cores):
        count = int(np.searchsorted(stages, most_cores // lanes, side="right"))
        cores = lanes * stages[:count]
        cycles = -(-row_blocks // lanes) * steps[:count]
        is_better = (cycles < best[cores]) | (lanes_of[cores] == 0)
        best[cores[is_better]] = cycles[is_better]
        lanes_of[cores[is_better]] = lanes
    found = np.flatnonzero(lanes_of)
    least = np.minimum.accumulate(best[found])
    found = found[np.append(True, least[1:] < least[:-1])][::-1]
    splits = zip(lanes_of[found].tolist(), (found // lanes_of[found]).tolist(), strict=True)
    cycles_of_splits = best[found].tolist()
    return CoreTable(
        cycles=tuple(cycles_of_splits),
        splits=tuple(CoreSplit(lanes, parts) for lanes, parts in splits),
        cores=tuple(found.tolist()),
        least_area=min(cycles * cores for cycles, cores in zip(cycles_of_splits, found.tolist(), strict=True)),
    )


def least_enough(high: int, is_enough: Callable[[int], bool]) -> int:
    """Return the least number from 0 on that is enough; all larger ones are, and ``high`` is.

    It is rarely large: widen in steps that double, then bisect.
    """
    low = 0
    while 2 * low < high and not is_enough(2 * low):
        low = 2 * low + 1
    return low + bisect_left(range(low, min(2 * low, high)), x=True, key=is_enough)


def useful_parts(blocks: int, limit: int) -> list[int]:
    """Return, ascending, the smallest part count for each distinct value of ``ceil(blocks / parts)``."""
    parts = []
    part = 1
    while part <= min(blocks, limit):
        parts.append(part)
        steps = -(-blocks // part)
        if steps == 1:
            break
        part = -(-blocks // (steps - 1))
    return parts


def least_cycles(tables: tuple[CoreTable, ...], counts: Numbers, cores: int) -> Numbers:
    """Split a chip so that the slowest kernel of each set is as fast as possible, and return its cycles.

    Exact: a time is possible if the fewest cores with which every kernel meets it fit, and the least possible time is
    among the cycles of the tables: one bisection over all of these, for all sets side by side.

    Args:
        tables: of kernels; sets have some of each.
        counts: ``[set, table]``.
        cores: of the chip.

    Returns:
        Cycles of the slowest kernel of each set, 0 of none, or `TOO_FEW` if even one core each is too many.
    """
    used = np.flatnonzero(counts.any(axis=0))
    entries = max(len(counts), sum(len(tables[number].cycles) for number in used)) * len(used)
    if entries > MOST_ENTRIES and len(counts) > 1:  # sets with fewer different kernels have smaller tables
        half = len(counts) // 2
        return np.concatenate([least_cycles(tables, part, cores) for part in (counts[:half], counts[half:])])
    cycles = sorted({0, *(cycle for number in used for cycle in tables[number].cycles)})
    needed = np.array([_cores_within(tables[number], cycles, cores) for number in used]).reshape(len(used), len(cycles))
    results: Numbers = np.array([*cycles, TOO_FEW], np.int64 if cycles[-1] < LARGEST else np.object_)
    return results[_least_possible(counts[:, used].astype(float), needed, len(cycles), cores)]


def _cores_within(table: CoreTable, cycles: list[int], cores: int) -> Column:
    """Return the fewest cores for at most so many cycles, more than there are where that is too few."""
    fewest = np.searchsorted(np.array(table.cycles), np.array(cycles), side="right") - 1
    return np.where(fewest < 0, cores + 1.0, np.array(table.cores, float)[fewest])


def _least_possible(counts: Column, needed: Column, times: int, cores: int) -> Numbers:
    """Return the number of the first time that each set can meet, that of the times if not even the last one."""
    low = np.zeros(len(counts), np.int64)
    high = np.full(len(counts), times, np.int64)
    while (low < high).any():
        middle = (low + high) // 2
        fits = np.einsum("st,ts->s", counts, needed[:, np.minimum(middle, times - 1)]) <= cores
        is_open = low < high
        high = np.where(is_open & fits, middle, high)
        low = np.where(is_open & ~fits, middle + 1, low)
    return low


class SplitTable:
    """Splits of the cores of a kernel: those count that fewer lanes or stages would make slower.

    Attributes:
        cycles: every number of cycles that some split takes, ascending.
    """

    def __init__(self, work: KernelWork, chip: Machine) -> None:
        self._chip = chip
        self._row_blocks = -(-work.rows // chip.lanes_per_core)
        self._column_blocks = -(-work.columns // (work.stages_per_core or chip.stages_per_core))
        self._per_block = work.steps  # cycles for one block of rows and columns
        self._lanes = useful_parts(self._row_blocks, chip.cores)
        splits = (
            CoreSplit(lanes, stages)
            for lanes in self._lanes
            for stages in useful_parts(self._column_blocks, chip.cores // lanes)
        )
        self.cycles = tuple(sorted({self.cycles_of(split) for split in splits}))
        self._known: dict[int, tuple[CoreSplit, ...]] = {}

    def cycles_of(self, split: CoreSplit) -> int:
        """Return the cycles of a split."""
        return -(-self._row_blocks // split.lanes) * -(-self._column_blocks // split.stages) * self._per_block

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
