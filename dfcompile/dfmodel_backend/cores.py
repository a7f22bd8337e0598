"""Cores for kernels: cycles of a kernel on so many cores, and the best split of a chip among kernels."""

from bisect import bisect_left
from dataclasses import dataclass

from dfcompile.dfmodel_backend.system import Accelerator
from dfcompile.dfmodel_backend.workload import KernelWork


@dataclass(frozen=True, slots=True)
class CoreSplit:
    """Cores of one kernel: ``lanes x stages`` of them."""

    lanes: int
    stages: int

    @property
    def cores(self) -> int:
        """Cores that the kernel occupies."""
        return self.lanes * self.stages


@dataclass(frozen=True, slots=True)
class CoreTable:
    """Pareto-optimal choices for one kernel, fewest cycles (most cores) first."""

    cycles: tuple[int, ...]
    splits: tuple[CoreSplit, ...]
    cores: tuple[int, ...]
    least_area: int  # the least cores x cycles of any choice

    def fewest(self, cycles: int) -> int:
        """Return the row with the fewest cores among those of at most ``cycles``; there must be one."""
        return bisect_left(self.cycles, cycles + 1) - 1


def cycles_of(kernel: KernelWork, split: CoreSplit, lanes_per_core: int, stages_per_core: int) -> int:
    """Return the cycles of a kernel: rows go to lanes, columns to stages [ko24, section 4].

    Neither filling the pipeline nor loading weights counts.
    """
    row_steps = -(-kernel.rows // (split.lanes * lanes_per_core))
    if not kernel.systolic:
        return row_steps * kernel.n
    return row_steps * -(-kernel.n // (split.stages * stages_per_core)) * kernel.k


def core_table(kernel: KernelWork, chip: Accelerator) -> CoreTable:
    """Return all core splits of a kernel that no other split beats in both cores and cycles."""
    best: dict[int, tuple[int, CoreSplit]] = {}
    row_blocks = -(-kernel.rows // chip.lanes_per_core)
    column_blocks = -(-kernel.n // chip.stages_per_core) if kernel.systolic else 1
    for lanes in useful_parts(row_blocks, chip.cores):
        for stages in useful_parts(column_blocks, chip.cores // lanes):
            split = CoreSplit(lanes, stages)
            cycles = cycles_of(kernel, split, chip.lanes_per_core, chip.stages_per_core)
            if split.cores not in best or cycles < best[split.cores][0]:
                best[split.cores] = (cycles, split)
    rows: list[tuple[int, CoreSplit]] = []
    for cores in sorted(best):
        if not rows or best[cores][0] < rows[-1][0]:
            rows.append(best[cores])
    rows.reverse()
    return CoreTable(
        cycles=tuple(cycles for cycles, _ in rows),
        splits=tuple(split for _, split in rows),
        cores=tuple(split.cores for _, split in rows),
        least_area=min(cycles * split.cores for cycles, split in rows),
    )


def least_cycles(wanted: list[tuple[CoreTable, int]], cores: int) -> int | None:
    """Split a chip so that the slowest kernel is as fast as possible, and return its cycles.

    Exact: a time is possible if the fewest cores with which every kernel meets it fit, and the least possible
    time is found by bisection.

    Args:
        wanted: tables, and how many kernels have each; kernels of one shape share a table.
        cores: of the chip.

    Returns:
        Cycles of the slowest kernel, or None if even one core each is too many.
    """
    if sum(count for _, count in wanted) > cores:
        return None
    area = -(-sum(table.least_area * count for table, count in wanted) // cores)
    low = max(area, *(table.cycles[0] for table, _ in wanted))
    high = max(table.cycles[-1] for table, _ in wanted)
    # `high` is always possible. The answer is rarely far above the area bound: widen from there, then bisect.
    step = max(1, low >> 7)
    while low + step < high:
        if _cores_for(wanted, low + step, cores) <= cores:
            high = low + step
            break
        low, step = low + step + 1, step * 2
    while low < high:
        middle = (low + high) // 2
        if _cores_for(wanted, middle, cores) <= cores:
            high = middle
        else:
            low = middle + 1
    return max(table.cycles[table.fewest(high)] for table, _ in wanted)


def _cores_for(wanted: list[tuple[CoreTable, int]], cycles: int, limit: int) -> int:
    total = 0
    for table, count in wanted:
        total += count * table.cores[bisect_left(table.cycles, cycles + 1) - 1]
        if total > limit:
            break
    return total


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
