"""What sets of kernels take as configurations of a chip: time, traffic, memories [ko24, section 4].

One model for kernels of a canonical DAG and for those of a set-up file. Where the two differ, it is told by `Rules`, by
how many kernels read a tensor, and by what `DesignModel` adds: tiles that run one after the other, groups of chips.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from dfcompile.dfmodel_backend.columns import Column, Members, Numbers, sums_over
from dfcompile.dfmodel_backend.intra_chip.cores import TOO_FEW, CoreTable, core_table, least_cycles
from dfcompile.dfmodel_backend.intra_chip.flow_columns import NOBODY, FlowColumns, HeldColumns
from dfcompile.dfmodel_backend.kernel_sets import FusionShape
from dfcompile.dfmodel_backend.machine.system import Machine
from dfcompile.dfmodel_backend.options import Overlap
from dfcompile.dfmodel_backend.workload.kernel_work import KernelWork

if TYPE_CHECKING:
    from dfcompile.dfmodel_backend.intra_chip.memory_units import PmuModel


class Rules(Struct, frozen=True):
    """How figures of a configuration are counted.

    Attributes:
        overlap: of compute, DRAM traffic and exchange.
        counted: which of them count: letters of ``CMN``.
        utilization: of the peak; 0: cores are split among kernels.
        has_whole_bytes: whether parts of a tensor are rounded up to bytes; and whether what streams out is written
            once, however many parts the weights come in.
        reads_once: whether what streams in is read once, too.
    """

    overlap: Overlap
    counted: str = "CMN"
    utilization: float = 0.0
    has_whole_bytes: bool = True
    reads_once: bool = False


class StepColumns(Struct, frozen=True):
    """Figures of configurations, one entry each; of a design per micro-batch and layer; times in ns."""

    compute_ns: Column
    memory_ns: Column
    network_ns: Column
    time_ns: Column
    dram_bytes: Column  # moved
    network_bytes: Column

    def times_ns(self, number: int) -> tuple[float, float, float, float]:
        """Return the times of a configuration."""
        columns = (self.compute_ns, self.memory_ns, self.network_ns, self.time_ns)
        compute_ns, memory_ns, network_ns, time_ns = (float(column[number]) for column in columns)
        return compute_ns, memory_ns, network_ns, time_ns


class SetModel(ABC):
    """Constants of every kernel and tensor of a chip, and the figures of any set of kernels."""

    tiles = 1  # that follow one another; those of a graph's configurations only change SRAM
    micro_batch = 1  # inputs whose tensors wait together

    def __init__(
        self, machine: Machine, works: tuple[KernelWork, ...], flows: FlowColumns, held: HeldColumns, rules: Rules
    ) -> None:
        self.machine = machine
        self.works = works
        self.flows = flows
        self.held = held
        self.rules = rules
        # How often each kernel runs per tile; 0: once, with others that do; runs of a kernel are not tiled.
        self.inputs: Numbers = np.zeros(len(works), np.int64)
        self.sram_extra_bytes: Column = np.zeros(len(works))  # added to each kernel's configuration

    @property
    @abstractmethod
    def shape(self) -> FusionShape:
        """Which kernels may share a configuration, whatever it costs."""

    @property
    @abstractmethod
    def always_bytes(self) -> float:
        """What is in DRAM all the time."""

    @property
    def sram_capacity(self) -> float:
        """SRAM of the chip as far as it limits configurations; 0 means unlimited."""
        return self.machine.sram_bytes

    @property
    def pmu(self) -> PmuModel | None:
        """Memory units of the chip, where they are counted: they are the limit then."""
        return None

    @property
    def tile_key(self) -> bytes | None:
        """What tiles of kernels and tensors are like: models with the same key have the same limits of sets."""
        return None

    @cached_property
    def most_weight_tiles(self) -> tuple[int, ...]:
        """How often the weights of each kernel alone may be cut: down to one row of its output.

        A row of an elementwise kernel is an element; what streams in is read once per tile there, too, which is more
        than needed where the weight is as large as the output.
        """
        with_weight = set(self.held.users.kernels.tolist())
        return tuple(work.rows if kernel in with_weight else 1 for kernel, work in enumerate(self.works))

    @cached_property
    def flop(self) -> Column:
        """FLOP of a tile of each kernel."""
        return np.array([work.flop for work in self.works], float)

    @cached_property
    def tables(self) -> tuple[CoreTable, ...]:
        """Pareto table of cores and cycles of each kernel; equal ones are one object."""
        shapes = {work.shape: work for work in self.works}
        tables = {shape: core_table(work, self.machine) for shape, work in shapes.items()}
        different: dict[CoreTable, CoreTable] = {}
        known = {shape: different.setdefault(table, table) for shape, table in tables.items()}
        return tuple(known[work.shape] for work in self.works)

    @cached_property
    def different_tables(self) -> tuple[tuple[CoreTable, ...], Numbers]:
        """Tables that differ, and the number of each kernel's among them."""
        different = {id(table): table for table in self.tables}
        numbers = {one: number for number, one in enumerate(different)}
        return tuple(different.values()), np.array([numbers[id(table)] for table in self.tables], np.int64)

    def cycles(self, members: Members) -> Numbers:
        """Return the cycles of the slowest kernel of each set; `TOO_FEW` without cores enough.

        Sets with as many kernels of each shape are the same set: of a chain of equal kernels few are different.
        """
        tables, numbers = self.different_tables
        counts = np.rint(sums_over(members, np.eye(len(tables), dtype=np.float32)[numbers])).astype(np.int64)
        different, place = np.unique(counts, axis=0, return_inverse=True)
        return np.asarray(least_cycles(tables, different, self.machine.cores)[place.reshape(-1)])

    def ns_of(self, cycles: Numbers) -> Column:
        """Return the times of numbers of cycles, infinite without cores enough."""
        return np.where(cycles == TOO_FEW, inf, cycles).astype(float) / self.machine.frequency_ghz

    def tile_compute_ns(self, members: Members, weight_tiles: Numbers | None = None) -> Column:
        """Return the time of compute of one tile of each set, ``[set, kernel]``; infinite without cores enough."""
        if self.rules.utilization > 0:
            return np.asarray(members.astype(float) @ self.flop / (self.rules.utilization * self.machine.peak_gflops))
        cycles = self.cycles(members)
        if self.pmu is not None:
            parts = np.ones(len(members), np.int64) if weight_tiles is None else weight_tiles
            for number in np.flatnonzero(cycles > 0).tolist():
                inside = np.flatnonzero(members[number]).tolist()
                least = self.pmu.least_cycles(inside, int(parts[number]), int(cycles[number]))
                cycles[number] = TOO_FEW if least is None else least
        return self.ns_of(cycles)

    def streams(self, members: Members, weight_tiles: Numbers | None = None) -> tuple[Column, Column]:
        """Return the bytes per tile that stream in and out of each set, with weights in so many tiles."""
        read, written = self.flows.streams(members)
        reads, writes = self.repeats(members, weight_tiles)
        return read * reads, written * writes

    def repeats(self, members: Members, weight_tiles: Numbers | None) -> tuple[Column, Column]:
        """Return how often what streams in is read, and what streams out is written."""
        once = np.ones(len(members))
        if weight_tiles is None or self.rules.reads_once:
            return once, once
        parts: Column = weight_tiles.astype(float)
        return parts, once if self.rules.has_whole_bytes else parts

    def crossing_bytes(self, members: Members, weight_tiles: Numbers | None = None) -> Column:
        """Return the bytes per tile that stream in and out of each set together."""
        reads, writes = self.repeats(members, weight_tiles)
        if np.array_equal(reads, writes):
            return reads * self.flows.crossing(members)
        return np.add(*self.streams(members, weight_tiles))

    def exchange(self, members: Members, tiles: Column) -> tuple[Column, Column]:  # noqa: ARG002
        """Return time and bytes of each set's exchange with other chips; kernels are added one by one."""
        parts = self.network_parts()[0]
        exchanging = np.flatnonzero(parts)
        if not len(exchanging):
            return np.zeros(len(members)), np.zeros(len(members))
        return np.cumsum(members[:, exchanging] * parts[exchanging], axis=1)[:, -1], np.zeros(len(members))

    def network_parts(self) -> tuple[Column, ...]:
        """Return the times of each kernel's exchange, ``[kernel]``, per part that overlaps with the others.

        A configuration's network time is the largest of the sums of the parts over its kernels.
        """
        return (np.array([work.network_ns for work in self.works], float),)

    def tiles_of(self, members: Members) -> tuple[Numbers, Numbers]:
        """Return in how many tiles each set runs, and how often all of them."""
        if not self.inputs.any():
            return np.full(len(members), self.tiles), np.ones(len(members), np.int64)
        inputs = (members * self.inputs).max(axis=1, initial=0)
        return np.where(inputs > 0, 1, self.tiles), np.maximum(1, inputs)

    def steps(
        self,
        members: Members,
        weight_tiles: Numbers | None = None,
        crossing: Column | None = None,
        compute: Column | None = None,
    ) -> StepColumns:
        """Return the figures of sets of kernels as configurations; compute is infinite without cores enough.

        Args:
            members: ``[set, kernel]``.
            weight_tiles: parts in which the weights of each set are loaded; above 1 only for a kernel alone.
            crossing: `crossing_bytes`, if it is known.
            compute: `tile_compute_ns`, if it is known.
        """
        whole_tiles, runs = self.tiles_of(members)
        tiles = whole_tiles.astype(float)
        crossing = self.crossing_bytes(members, weight_tiles) if crossing is None else crossing
        dram_bytes = tiles * crossing + self.held.loaded(members)
        compute = self.tile_compute_ns(members, weight_tiles) if compute is None else compute
        compute_ns = tiles * compute
        memory_ns = dram_bytes / self.machine.dram_gb_per_s
        network_ns, network_bytes = self.exchange(members, tiles)
        time_ns = runs * self.rules.overlap.times_ns(
            compute_ns * ("C" in self.rules.counted),
            memory_ns * ("M" in self.rules.counted),
            network_ns * ("N" in self.rules.counted),
        )
        return StepColumns(compute_ns, memory_ns, network_ns, time_ns, dram_bytes, network_bytes)

    def sram_bytes(self, members: Members, weight_tiles: Numbers | None = None) -> Column:
        """Return the SRAM of sets: two tiles of what crosses, tiles in flight inside, weights, what is added."""
        found: Column = self.flows.kept(members) + self.held.held(members)
        found = found + self.flows.entering(members) + sums_over(members, self.sram_extra_bytes)
        if weight_tiles is None:
            return found
        for row in np.flatnonzero(weight_tiles > 1):
            found[row] = self.sram_alone(int(np.argmax(members[row])), int(weight_tiles[row]))
        return found

    @cached_property
    def _alone(self) -> list[tuple[list[int], list[int], float]]:
        """Of each kernel: what is held in parts, what leaves in tiles, what enters or is added."""
        held: list[list[int]] = [[] for _ in self.works]
        for (first, end), size in zip(self.held.users.places, self.held.size.astype(int).tolist(), strict=True):
            for kernel in dict.fromkeys(self.held.users.kernels[first:end].tolist()):
                if kernel != NOBODY:
                    held[kernel].append(size)
        leaving: list[list[int]] = [[] for _ in self.works]
        flows, readers = self.flows, self.flows.readers.kernels.tolist()
        columns = (flows.source, flows.readers.places, flows.leaves, flows.is_read, flows.written.astype(int))
        for maker, (first, end), leaves, is_read, size in zip(*(list(column) for column in columns), strict=True):
            if maker != NOBODY and (leaves or (is_read and any(reader != maker for reader in readers[first:end]))):
                leaving[maker].append(int(size))
        entering = flows.entering(np.eye(len(self.works), dtype=bool)) + self.sram_extra_bytes
        return list(zip(held, leaving, entering.tolist(), strict=True))

    def sram_alone(self, kernel: int, parts: int) -> float:
        """Return the SRAM of a kernel alone, with its weights, and what it puts out meanwhile, in so many parts."""
        held, leaving, rest = self._alone[kernel]
        if not self.rules.has_whole_bytes:
            return (2 * sum(leaving) + sum(held)) / parts + rest
        return sum(-(-size // parts) for size in held) + 2 * sum(-(-size // parts) for size in leaving) + rest

    def waiting_bytes(self, before: Members, inside: Members) -> Column:
        """Return the bytes of tensors in DRAM while sets run after the kernels of ``before``.

        Args:
            before: kernels that ran earlier, ``[set, kernel]``.
            inside: kernels of the configuration, ``[set, kernel]``.
        """
        tiles, _ = self.tiles_of(inside)
        return self.flows.waiting(before, inside) * tiles * self.micro_batch

    @property
    def most_waiting(self) -> float:
        """Bytes of all tensors: more never wait."""
        return float(self.flows.size.sum()) * self.tiles * self.micro_batch

    @property
    def dram_room(self) -> float:
        """DRAM that is left for waiting tensors beside what is always there; negative if that is too much."""
        return self.machine.dram_bytes - self.always_bytes if self.machine.dram_bytes else inf

    @cached_property
    def growth_limit(self) -> tuple[Column, float]:
        """What each kernel holds whatever it is fused with, and the most that a configuration may hold; 0: no limit."""
        if self.pmu is not None:
            return self.pmu.held_pmus, float(self.pmu.pmus)
        return self.held.alone(self.held.size, len(self.works)), self.sram_capacity

    @cached_property
    def least_parts(self) -> Column:
        """Unavoidable compute, DRAM and network time ``[kernel, 3]``; each adds up over any set of kernels.

        Unavoidable are inputs and outputs, and each weight once; no byte is counted twice.
        """
        alone, counted = np.eye(len(self.works), dtype=bool), self.rules.counted
        tiles, runs = self.tiles_of(alone)
        if self.rules.utilization > 0:
            compute_ns = self.tile_compute_ns(alone)
        else:
            areas = np.array([table.least_area for table in self.tables], float)
            compute_ns = areas / (self.machine.cores * self.machine.frequency_ghz)
        return np.stack(
            [
                tiles * runs * compute_ns * ("C" in counted),
                runs * self._unavoidable_bytes / self.machine.dram_gb_per_s * ("M" in counted),
                runs * self.network_parts()[0] * ("N" in counted),
            ],
            axis=1,
        )

    @cached_property
    def _unavoidable_bytes(self) -> Column:
        flows, found = self.flows, self.held.first(self.held.moved, len(self.works))
        leaving = np.flatnonzero(flows.leaves & (flows.source != NOBODY))
        np.add.at(found, flows.source[leaving], flows.size[leaving])
        entering = np.flatnonzero((flows.source == NOBODY) & flows.is_read)
        np.add.at(found, flows.readers.kernels[flows.readers.first[entering]], flows.size[entering])
        return found

    def least_ns(self) -> float:
        """Return a time that no configurations beat: no core idle, none faster than its slowest kernel."""
        if self.rules.utilization > 0:
            compute_ns = float(self.flop.sum()) / (self.rules.utilization * self.machine.peak_gflops)
        else:
            area = -(-sum(table.least_area for table in self.tables) // self.machine.cores)
            slowest = max((table.cycles[0] for table in self.tables), default=0)
            compute_ns = max(area, slowest) / self.machine.frequency_ghz
        memory_ns = float(self._unavoidable_bytes.sum()) / self.machine.dram_gb_per_s
        return self.rules.overlap.time_ns(compute_ns, memory_ns, sum(self.network_parts()[0].tolist()))
