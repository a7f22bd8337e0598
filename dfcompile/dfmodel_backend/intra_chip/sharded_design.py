"""A sharded and tiled design: figures of sets of its kernels as configurations [ko24, section 4]."""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import assert_never

import numpy as np
import numpy.typing as npt

from dfcompile.dfmodel_backend.columns import Column, Members
from dfcompile.dfmodel_backend.compatibility import RIGHT, Compatibility
from dfcompile.dfmodel_backend.inter_chip.degrees import degrees_of
from dfcompile.dfmodel_backend.inter_chip.micro_batches import micro_batches
from dfcompile.dfmodel_backend.inter_chip.network_time import Exchanged, NetworkTime
from dfcompile.dfmodel_backend.inter_chip.shares import Share, edge_shares, in_micro_batches, shares_of
from dfcompile.dfmodel_backend.intra_chip.cores import CoreTable, core_table
from dfcompile.dfmodel_backend.intra_chip.memory_units.cycles import PmuModel
from dfcompile.dfmodel_backend.intra_chip.memory_units.needs import PmuNeeds
from dfcompile.dfmodel_backend.intra_chip.memory_units.splits import SplitTable
from dfcompile.dfmodel_backend.intra_chip.set_cycles import SetCycles
from dfcompile.dfmodel_backend.machine.machine import Collective
from dfcompile.dfmodel_backend.machine.system import Accelerator, Amount
from dfcompile.dfmodel_backend.workload.chip_workload import KernelWork
from dfcompile.dfmodel_backend.workload.design import Design, Dim, WorkloadKind


@dataclass(frozen=True, slots=True)
class StepColumns:
    """Figures of configurations, per micro-batch and layer, one entry per configuration; times in ns."""

    compute_ns: Column
    memory_ns: Column
    network_ns: Column
    time_ns: Column
    dram_bytes: Column  # moved
    network_bytes: Column


class DesignModel:
    """Constants of every kernel and edge of a design, and the figures of any set of kernels.

    The design has all its degrees; a free micro-batch size counts as 1.
    """

    def __init__(
        self, design: Design, sharding: dict[int, Dim], tiles: int, compatibility: Compatibility = RIGHT
    ) -> None:
        self.sharding = sharding
        self.tiles = tiles
        self.compatibility = compatibility
        degrees = degrees_of(design)
        self.shares = shares_of(design, degrees, sharding, tiles, float(micro_batches(design, degrees)), compatibility)
        self.edges = edge_shares(design, self.shares, compatibility)
        self._source = np.array([edge.source for edge in self.edges], np.intp)
        self._target = np.array([edge.target for edge in self.edges], np.intp)
        self._size = np.array([edge.size_bytes for edge in self.edges], float)
        self._inputs = np.array([share.kernel.num_input for share in self.shares], np.int64)
        self._settle(design)

    def with_groups_of(self, design: Design) -> "DesignModel":
        """Return the model of a language model that differs in pipeline, data parallel groups and micro-batch alone.

        What those do not change is found once for all of them.
        """
        for name in (
            "tile_key",
            "_weight_traffic",
            "tables" if not design.execution.compute_utilization else "tile_key",
            "pmu",
        ):
            getattr(self, name)  # known to every copy from now on
        model = copy(self)
        for name in ("least_parts", "_exchange_rows"):
            model.__dict__.pop(name, None)
        model._settle(design)  # noqa: SLF001 - of this class
        model.shares = in_micro_batches(self.shares, float(model.micro_batches))
        return model

    def _settle(self, design: Design) -> None:
        self.design = design
        self.degrees = degrees_of(design)
        self.micro_batches = micro_batches(design, self.degrees)
        self.network = NetworkTime(design, self.degrees, self.compatibility)
        # DRAM traffic of each kernel whatever it is fused with
        micro_batch = max(1, design.execution.batch.micro_batch)
        self.extra_bytes = self._given_traffic + self._weight_traffic / micro_batch

    @cached_property
    def _given_traffic(self) -> Column:
        return np.array([share.kernel.memory_bytes for share in self.shares], float)

    @cached_property
    def _weight_traffic(self) -> Column:
        return np.array([self._weight_traffic_of(share) for share in self.shares], float)

    def _weight_traffic_of(self, share: Share) -> float:
        """Return DRAM bytes of weights and gradients per micro-batch; a kernel's own traffic includes its weights.

        Weights are read, gradients are read and written.
        """
        kernel = share.kernel
        size = 0.0
        if not self.compatibility.weights_not_read and not kernel.memory_bytes and not kernel.skip_weight:
            size += share.weight_bytes * self.tiles_of_weight(share) / max(1, kernel.num_input)
        is_gradient = kernel.collective is Collective.ALL_REDUCE_PERIODIC
        if is_gradient and not self.compatibility.gradients_not_kept:
            size += 2 * share.output_bytes * self.tiles_of_gradient(share)
        return size

    def tiles_of_weight(self, share: Share) -> int:
        """Return in how many tiles a kernel's weight is cut; a kernel of several inputs runs one tile."""
        return self._parts(share) if share.kernel.tiling.shard in (Dim.M, Dim.K) else 1

    def tiles_of_gradient(self, share: Share) -> int:
        """Return in how many tiles a kernel's output is cut."""
        return self._parts(share) if share.kernel.tiling.shard in (Dim.M, Dim.N) else 1

    def chips_of_output(self, share: Share) -> int:
        """Return on how many chips the shares lie that a change of layout exchanges."""
        is_split = share.sharding.shard in (Dim.M, Dim.N) and self.design.execution.batch.kind is WorkloadKind.LLM
        return self.degrees.tensor if is_split and not self.compatibility.layouts_change_by_share else 1

    def _exchanged_shares(self, share: Share, collective: Collective) -> int:
        match collective:
            case Collective.ALL_REDUCE_PERIODIC:
                return self.tiles_of_gradient(share)
            case Collective.ALL_GATHER | Collective.ALL_TO_ALL:
                return self.chips_of_output(share)
            case Collective.NONE | Collective.ALL_REDUCE | Collective.POINT_TO_POINT | Collective.BROADCAST:
                return 1
        assert_never(collective)

    def _parts(self, share: Share) -> int:
        return 1 if self.compatibility.weights_of_one_tile or share.kernel.num_input else self.tiles

    @cached_property
    def tile_key(self) -> bytes:
        """What tiles of kernels and edges are like: models with the same key agree on all but times of exchange."""
        extents = np.array([(share.rows, share.k, share.n) for share in self.shares], np.int64)
        columns = (extents, self._size, *self.sram_sizes, self.held_bytes)
        return b"".join(column.tobytes() for column in columns)

    @property
    def edge_bytes(self) -> Column:
        """Bytes of a tile of each edge."""
        return self._size

    def crossing_bytes(self, members: Members) -> Column:
        """Return the bytes per tile at the border of each set, ``[set, kernel]``."""
        column: Column = (members[:, self._source] != members[:, self._target]).astype(float) @ self._size
        return column

    def steps(
        self,
        members: Members,
        weight_tiles: npt.NDArray[np.int32 | np.int64] | None = None,
        crossing: Column | None = None,
        compute: Column | None = None,
    ) -> StepColumns:
        """Return the figures of sets of kernels as configurations.

        Args:
            members: ``[set, kernel]``.
            weight_tiles: parts in which the weights of each set are loaded; above 1 only for a kernel alone.
            crossing: `crossing_bytes`, if it is known.
            compute: `tile_compute_ns`, if it is known.

        Raises:
            InfeasibleError: a set has more kernels than the chip has cores.
        """
        execution = self.design.execution
        inputs = (members * self._inputs).max(axis=1, initial=0)
        tiles = np.where(inputs > 0, 1, self.tiles).astype(float)
        inside = members.astype(float)
        parts = np.ones(len(members)) if weight_tiles is None else weight_tiles.astype(float)
        if self.compatibility.streams_read_once:
            parts = np.ones(len(members))
        if self.pmu is not None and self.compatibility.kernels_multiply_traffic:
            parts = parts + np.maximum(members.sum(axis=1) - 1, 0)
        crossing = self.crossing_bytes(members) if crossing is None else crossing
        dram_bytes = tiles * parts * crossing + inside @ self.extra_bytes
        compute = self.tile_compute_ns(members, weight_tiles) if compute is None else compute
        compute_ns = tiles * compute
        memory_ns = dram_bytes / self.design.machine.dram_gb_per_s
        exchanged = self._exchanged(inside, tiles)
        network_ns = self.network.times_ns(exchanged)
        time_ns = np.maximum(1, inputs) * execution.overlap.times_ns(
            compute_ns * ("C" in execution.counted),
            memory_ns * ("M" in execution.counted),
            network_ns * ("N" in execution.counted),
        )
        network_bytes = exchanged.sizes[Collective.ALL_REDUCE_PERIODIC].copy()  # whatever the tiles
        for sizes in (exchanged.sizes, exchanged.sequence_sizes):
            for collective, column in sizes.items():
                if collective is not Collective.ALL_REDUCE_PERIODIC:
                    network_bytes += column * tiles
        return StepColumns(compute_ns, memory_ns, network_ns, time_ns, dram_bytes, network_bytes)

    def sram_bytes(self, members: Members, weight_tiles: npt.NDArray[np.int64] | None = None) -> Column:
        """Return the SRAM of sets: two tiles of what crosses, tiles in flight inside, weights, what the design adds."""
        parts = np.ones(len(members)) if weight_tiles is None else weight_tiles.astype(float)
        starts, ends = members[:, self._source], members[:, self._target]
        size, depth = self.sram_sizes
        own = (starts & ends).astype(float) @ (depth * size) + (starts & ~ends).astype(float) @ (2 * size)
        inside = members.astype(float)
        foreign: Column = (ends & ~starts).astype(float) @ (2 * size)
        return (own + inside @ self.held_bytes) / parts + foreign + inside @ self.sram_extra_bytes

    @property
    def sram_capacity(self) -> float:
        """SRAM of the chip as far as it limits configurations; 0 means unlimited.

        It limits language models alone: other workloads are not cut into tiles, so that whole tensors would count.
        Where memory units are counted they are the limit.
        """
        if self.pmu is not None:
            return 0.0
        return self.design.machine.sram_bytes if self.design.execution.batch.kind is WorkloadKind.LLM else 0.0

    @cached_property
    def pmu(self) -> PmuModel | None:
        """Memory units of the chip, where they are counted."""
        grid = self.design.machine.pmu
        if grid is None:
            return None
        needs = PmuNeeds(self.design, grid, self.shares, self.sram_sizes, self.compatibility)
        known = {work: SplitTable(*work) for work in self._core_works}
        return PmuModel(
            needs, [known[work] for work in self._core_works], self.edges, self.design.machine.cores, grid.pmus
        )

    @property
    def growth_limit(self) -> tuple[Column, float]:
        """What each kernel holds whatever it is fused with, and the most that a configuration may hold; 0: no limit."""
        if self.pmu is not None:
            return self.pmu.held_pmus, float(self.pmu.pmus)
        return self.held_bytes, self.sram_capacity

    @cached_property
    def held_bytes(self) -> Column:
        """Weights that each kernel holds in SRAM."""
        return np.array([0 if share.kernel.skip_weight else share.weight_bytes for share in self.shares], float)

    @cached_property
    def sram_extra_bytes(self) -> Column:
        """SRAM that the design adds to each kernel's configuration."""
        return np.array([share.kernel.sram_extra_bytes for share in self.shares], float)

    @cached_property
    def sram_sizes(self) -> tuple[Column, Column]:
        """Size and depth of each edge; the original takes those of the edge with the number of the weight."""
        numbers = list(range(len(self.edges)))
        if self.compatibility.sram_of_other_edges:
            weighted = [position for position, share in enumerate(self.shares) if share.kernel.has_weight]
            # A weight without such an edge, of more weights than edges, keeps its own.
            rank = dict(zip(weighted, numbers, strict=False))
            numbers = [rank.get(edge.source, number) for number, edge in enumerate(self.edges)]
        depth = np.array([edge.depth for edge in self.edges], float)
        return self._size[numbers], depth[numbers]

    @cached_property
    def least_parts(self) -> npt.NDArray[np.float64]:
        """Unavoidable compute, DRAM and network time ``[kernel, 3]``; each adds up over any set of kernels."""
        counted, machine = self.design.execution.counted, self.design.machine
        tiles = np.where(self._inputs > 0, 1, self.tiles)
        inputs = np.maximum(1, self._inputs)
        alone = np.eye(len(self.shares), dtype=bool)
        if self.design.execution.compute_utilization > 0:
            compute_ns = self.tile_compute_ns(alone)
        else:
            areas = np.array([table.least_area for table in self.tables], float)
            compute_ns = areas / (machine.cores * machine.frequency_ghz)
        network_ns = self.network.times_ns(self._exchanged(alone.astype(float), tiles.astype(float)), tensor_only=True)
        return np.stack(
            [
                tiles * inputs * compute_ns * ("C" in counted),
                inputs * self.extra_bytes / machine.dram_gb_per_s * ("M" in counted),
                inputs * network_ns * ("N" in counted),
            ],
            axis=1,
        )

    def network_parts(self) -> tuple[Column, ...]:
        """Return the times of each kernel's exchange, ``[kernel]``, per part that overlaps with the others.

        A configuration's network time is the largest of the sums of the parts over its kernels.
        """
        tiles = np.where(self._inputs > 0, 1.0, float(self.tiles))
        return self.network.parts_ns(self._exchanged(np.eye(len(self.shares)), tiles))

    def least_ns(self) -> float:
        """Return a time that no configurations beat: no core idle, no tensor between them in DRAM."""
        compute_ns, memory_ns, network_ns = self.least_parts.sum(axis=0)
        return self.design.execution.overlap.time_ns(float(compute_ns), float(memory_ns), float(network_ns))

    @cached_property
    def tables(self) -> tuple[CoreTable, ...]:
        """Pareto table of cores and cycles of each kernel; equal ones are one object."""
        known: dict[tuple[KernelWork, Accelerator], CoreTable] = {}
        different: dict[CoreTable, CoreTable] = {}
        for work in self._core_works:
            if work not in known:
                table = core_table(*work)
                known[work] = different.setdefault(table, table)
        return tuple(known[work] for work in self._core_works)

    @cached_property
    def _core_works(self) -> tuple[tuple[KernelWork, Accelerator], ...]:
        """What cores see of each kernel: those of one shape are the same, whatever they are called."""
        works = []
        for share in self.shares:
            staged = share.kernel.systolic and share.kernel.use_effective_stage
            k, n = (share.n, share.k) if staged else (share.k, share.n)
            works.append((KernelWork("", share.kernel.systolic, share.rows, k, n), self._chip(staged=staged)))
        return tuple(works)

    def _chip(self, *, staged: bool) -> Accelerator:
        machine, zero = self.design.machine, Amount(0.0)
        stages = self.design.execution.effective_stage if staged else machine.stages_per_core
        return Accelerator(
            machine.cores, machine.lanes_per_core, max(1, stages), machine.frequency_ghz, zero, zero, zero
        )  # fmt: skip

    def tile_compute_ns(self, members: Members, weight_tiles: npt.NDArray[np.int32 | np.int64] | None = None) -> Column:
        """Return the time of compute of one tile of each set, ``[set, kernel]``; infinite without cores enough."""
        execution, machine = self.design.execution, self.design.machine
        if execution.compute_utilization > 0:
            flop = np.array([share.flop for share in self.shares], float)
            column: Column = members.astype(float) @ flop / (execution.compute_utilization * machine.peak_gflops)
            return column
        if self.pmu is None:
            return self.core_compute_ns(members)
        parts = [1] * len(members) if weight_tiles is None else weight_tiles.tolist()
        cycles = [
            self._cycles_of_units(self.pmu, np.flatnonzero(row).tolist(), part, found)
            for row, part, found in zip(members, parts, self._set_cycles.of(members), strict=True)
        ]
        return np.array(cycles, float) / machine.frequency_ghz

    def core_compute_ns(self, members: Members) -> Column:
        """Return the same where cores are the only limit, whatever memory units the sets need."""
        cycles = [inf if found is None else float(found) for found in self._set_cycles.of(members)]
        return np.array(cycles, float) / self.design.machine.frequency_ghz

    @cached_property
    def _set_cycles(self) -> SetCycles:
        return SetCycles(self.tables, self.design.machine.cores)

    @staticmethod
    def _cycles_of_units(pmu: PmuModel, inside: Sequence[int], parts: int, cycles: int | None) -> float:
        found = pmu.least_cycles(inside, parts, cycles) if inside and cycles is not None else cycles
        return inf if found is None else float(found)

    def _exchanged(self, inside: npt.NDArray[np.float64], tiles: Column) -> Exchanged:
        sizes, sequence, reductions, gathers = self._exchange_rows
        nothing = np.zeros(len(inside))
        return Exchanged(
            sizes={collective: inside @ row if row.any() else nothing for collective, row in sizes.items()},
            sequence_sizes={collective: inside @ row if row.any() else nothing for collective, row in sequence.items()},
            reductions=inside @ reductions,
            gathers=inside @ gathers,
            tiles=tiles,
        )

    @cached_property
    def _exchange_rows(self) -> tuple[dict[Collective, Column], dict[Collective, Column], Column, Column]:
        """Bytes that each kernel exchanges, with those of the edges that start at it, its all-reduces, its others."""
        count = len(self.shares)
        sizes = {collective: np.zeros(count) for collective in Collective}
        sequence = {collective: np.zeros(count) for collective in (Collective.ALL_REDUCE, Collective.ALL_GATHER)}
        reductions, gathers = np.zeros(count), np.zeros(count)
        items = [(position, item) for position, share in enumerate(self.shares) for item in share.exchange]
        items += [(edge.source, item) for edge in self.edges for item in edge.exchange]
        for position, (collective, size) in items:
            sizes[collective][position] += size * self._exchanged_shares(self.shares[position], collective)
            reductions[position] += collective is Collective.ALL_REDUCE
            gathers[position] += collective in (Collective.ALL_GATHER, Collective.ALL_TO_ALL)
        for position, share in enumerate(self.shares):
            if share.kernel.collective_2 in sequence:
                sequence[share.kernel.collective_2][position] += share.output_bytes
        return sizes, sequence, reductions, gathers
