"""What is asked of an exploration, and which points are best."""

from collections.abc import Sequence
from enum import StrEnum, unique
from math import ceil, inf

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag.extraction.granularity import Granularity
from dfcompile.dfmodel_backend.machine.cost import cost_usd, power_w
from dfcompile.dfmodel_backend.machine.system import System
from dfcompile.options import DEFAULT_TRIES, ExpansionRule
from dfcompile.scheduler.options import QUICK_PARTITION

_MEMORY_AREA = 0.5  # of a kB, in processing elements [asa23]
KB_BYTES = 1024

Figures = tuple[float, ...]  # one per objective asked for, the smaller the better


@unique
class Objective(StrEnum):
    """A figure of a point that is to be small."""

    MAKESPAN = "makespan"  # cycles of the machine, memory included
    IO = "io"  # bytes between the chip and memory outside
    AREA = "area"  # of processing elements
    ENERGY = "energy"  # J
    COST = "cost"  # $


class Machine(Struct, frozen=True):
    """What a point runs on.

    Attributes:
        pes: number of processing elements P.
        memory_bytes: on the chip, beside the FIFOs.
        system: of one chip with so many cores; for energy and cost.
    """

    pes: int
    memory_bytes: int
    system: System

    @property
    def area(self) -> float:
        """``0.5 * memory + P``, the memory in kB: in areas of a processing element [asa23]."""
        return _MEMORY_AREA * self.memory_bytes / KB_BYTES + self.pes

    def makespan_cycles(self, schedule_cycles: int, io_bytes: int) -> int:
        """Return the cycles of a schedule, or those of its traffic where that takes longer: they overlap."""
        per_cycle = self.system.dram_gb_per_s / self.system.accelerator.frequency_ghz
        return max(schedule_cycles, ceil(io_bytes / per_cycle))

    @property
    def cost_usd(self) -> float:
        """Price of the chip and its DRAM by the system file."""
        return cost_usd(self.system)

    def energy_j(self, makespan_cycles: int) -> float:
        """Return power of the system by its file, times the time of a number of cycles."""
        return power_w(self.system) * makespan_cycles / self.system.accelerator.frequency_ghz * 1e-9


def figures_of(objectives: Sequence[Objective], machine: Machine, schedule_cycles: int, io_bytes: int) -> Figures:
    """Return the figures of a point; none gets smaller where the schedule or I/O gets larger.

    So the figures of bounds of both are bounds of the figures.

    Args:
        objectives: in the order of the figures.
        machine: that it runs on.
        schedule_cycles: of its schedule, if memory took no time.
        io_bytes: off the chip.
    """
    makespan_cycles = machine.makespan_cycles(schedule_cycles, io_bytes)
    value = {
        Objective.MAKESPAN: float(makespan_cycles),
        Objective.IO: float(io_bytes),
        Objective.AREA: machine.area,
        Objective.ENERGY: machine.energy_j(makespan_cycles),
        Objective.COST: machine.cost_usd,
    }
    return tuple(value[objective] for objective in objectives)


def covers(one: Figures, other: Figures) -> bool:
    """Return whether no figure of one is larger than the other's."""
    return all(mine <= theirs for mine, theirs in zip(one, other, strict=True))


def pareto_set(found: Sequence[Figures]) -> tuple[int, ...]:
    """Return the numbers of those that no others cover, ascending; of equal ones the first.

    >>> pareto_set([(2, 1), (1, 2), (2, 2), (1, 2)])
    (0, 1)
    """
    kept: list[int] = []
    for number in sorted(range(len(found)), key=lambda each: (found[each], each)):
        if not any(covers(found[other], found[number]) for other in kept):
            kept.append(number)
    return tuple(sorted(kept))


def largest_gap(front: Sequence[Figures], bounds: Sequence[Figures]) -> float:
    """Return by what part every figure of something is at most better than those of one in a front.

    It is 0 if one of the front covers a bound, else the least e with which one of ``1 + e`` times better figures would;
    of several bounds the largest of these.

    Args:
        front: figures that were attained.
        bounds: what no figures fall below.

    >>> largest_gap([(4, 10), (8, 5)], [(4, 8), (9, 9)])
    0.25
    """
    if not front or not bounds:
        return inf if bounds else 0.0
    attained = np.array(front, dtype=np.float64)[:, None, :]
    least = np.array(bounds, dtype=np.float64)[None, :, :]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(attained <= least, 1.0, attained / least)
    return float(ratio.max(axis=2).min(axis=0).max() - 1.0)


TASKS_PER_TRY = 8_000
MOST_TASKS = 2**17


class Asked(Struct, frozen=True):
    """The space that is explored, and how long.

    Attributes:
        pes: numbers of processing elements.
        memories: bytes of on-chip memory.
        objectives: what is to be small.
        rules: of the user; what they name is chosen from them, everything else is as by default. None: all operators
            are chosen from all their expansions.
        granularities: of the tasks.
        system: whose prices and powers count.
        partition: name of the partitioner.
        tries: schedules that are made at most, one of more than `TASKS_PER_TRY` tasks counts as several.
    """

    pes: tuple[int, ...]
    memories: tuple[int, ...]
    objectives: tuple[Objective, ...]
    rules: tuple[ExpansionRule, ...]
    granularities: tuple[Granularity, ...]
    system: System
    partition: str = QUICK_PARTITION
    tries: int = DEFAULT_TRIES

    def machine(self, pes: int, memory_bytes: int) -> Machine:
        """Return the machine of a number of processing elements and an amount of memory."""
        return Machine(pes, memory_bytes, self.system.one_chip.with_cores(pes))
