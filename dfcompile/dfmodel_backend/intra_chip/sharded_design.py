"""A sharded and tiled design: constants of its kernels and connections on one chip [ko24, section 4]."""

from functools import cached_property
from typing import assert_never

import numpy as np
from msgspec import Struct

from dfcompile.dfmodel_backend.columns import Column, Members, Numbers
from dfcompile.dfmodel_backend.compatibility import RIGHT, Compatibility
from dfcompile.dfmodel_backend.inter_chip.degrees import Exchanged, ExchangeNs, NetworkTime, degrees_of, micro_batches
from dfcompile.dfmodel_backend.inter_chip.shares import Share, edge_shares, in_micro_batches, shares_of
from dfcompile.dfmodel_backend.intra_chip.flow_columns import FlowColumns, HeldColumns, Users
from dfcompile.dfmodel_backend.intra_chip.memory_units import PmuModel
from dfcompile.dfmodel_backend.intra_chip.set_model import Rules, SetModel
from dfcompile.dfmodel_backend.kernel_sets import FusionShape, shape_of
from dfcompile.dfmodel_backend.machine.system import Collective, Machine
from dfcompile.dfmodel_backend.workload.design import Design, Dim, Execution, WorkloadKind
from dfcompile.records import replace

OPTIMIZER_BYTES = 12  # per parameter: 32-bit copy, momentum and variance of Adam [rajbhandari20, section 3]

# What `like` has in common with a model: all but what pipelines, groups and micro-batches change.
_COMMON = ("edges", "edge_bytes", "sram_sizes", "flows", "tile_key", "pmu", "_given_traffic", "_weight_traffic")


class DramNeed(Struct, frozen=True):
    """Bytes of DRAM of one chip; what waits between configurations comes on top."""

    weights: float
    gradients: float
    optimizer: float
    activations: float  # of micro-batches in flight and of other layers
    tables: float

    @property
    def total(self) -> float:
        """All of it."""
        return self.weights + self.gradients + self.optimizer + self.activations + self.tables


class DesignModel(SetModel):
    """Constants of every kernel and edge of a design, and the figures of any set of kernels.

    The design has all its degrees; a free micro-batch size counts as 1. A connection is a tensor with one reader.
    """

    def __init__(
        self,
        design: Design,
        sharding: dict[int, Dim],
        tiles: int,
        compatibility: Compatibility = RIGHT,
        like: "DesignModel | None" = None,
    ) -> None:
        """Shard and tile a design.

        Args:
            design: with all its degrees.
            sharding: of each kernel, by its number.
            tiles: in which a micro-batch is cut.
            compatibility: which flaws of the original count.
            like: the model of a language model, of the same sharding and tiles, that differs in pipeline, data parallel
                groups and micro-batch alone: what those do not change is its.
        """
        self.design, self.sharding, self.tiles, self.compatibility = design, sharding, tiles, compatibility
        self.degrees = degrees_of(design)
        self.micro_batches = micro_batches(design, self.degrees)
        self.micro_batch = max(1, design.execution.batch.micro_batch)
        self.network = NetworkTime(design, self.degrees, compatibility)
        count, execution = float(self.micro_batches), design.execution
        if like is None:
            self.shares = shares_of(design, self.degrees, sharding, tiles, count, compatibility)
            self.edges = edge_shares(design, self.shares, compatibility)
            self.edge_bytes = np.fromiter((edge.size_bytes for edge in self.edges), float)
            self.sram_sizes = self._sram_sizes()
            self.flows = FlowColumns.of_connections(design.ends, self.edge_bytes, *self.sram_sizes)
            self._given_traffic = np.fromiter((share.kernel.memory_bytes for share in self.shares), float)
            self._weight_traffic = np.fromiter((self._weight_traffic_of(share) for share in self.shares), float)
        else:
            self.shares = in_micro_batches(like.shares, count)
            common = _COMMON if execution.compute_utilization else (*_COMMON, "tables")
            vars(self).update({name: getattr(like, name) for name in common})
        rules = Rules(
            execution.overlap,
            execution.counted,
            execution.compute_utilization,
            has_whole_bytes=False,
            reads_once=compatibility.streams_read_once,
        )
        size = np.fromiter((0 if share.kernel.skip_weight else share.weight_bytes for share in self.shares), float)
        # DRAM traffic of each kernel whatever it is fused with
        moved = self._given_traffic + self._weight_traffic / self.micro_batch
        held = HeldColumns(Users.of([(kernel,) for kernel in range(len(size))]), moved, size)
        super().__init__(design.machine, tuple(share.work for share in self.shares), self.flows, held, rules)
        self.inputs = np.array([share.kernel.num_input for share in self.shares], np.int64)
        self.sram_extra_bytes = np.fromiter((share.kernel.sram_extra_bytes for share in self.shares), float)

    def on(self, machine: Machine | None = None, execution: Execution | None = None) -> "DesignModel":
        """Return the model of the same sharding and tiles on another machine, or executed in another way."""
        design = replace(
            self.design, machine=machine or self.design.machine, execution=execution or self.design.execution
        )  # fmt: skip
        return DesignModel(design, self.sharding, self.tiles, self.compatibility)

    def _weight_traffic_of(self, share: Share) -> float:
        """Return DRAM bytes of weights and gradients per micro-batch; a kernel's own traffic includes its weights.

        Weights are read, gradients are read and written.
        """
        kernel = share.kernel
        size = 0.0
        if not self.compatibility.weights_not_read and not kernel.memory_bytes and not kernel.skip_weight:
            size += share.weight_bytes * self.tiles_of_weight(share) / max(1, kernel.num_input)
        if kernel.collective is Collective.ALL_REDUCE_PERIODIC and not self.compatibility.gradients_not_kept:
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
        extents = np.array([(work.rows, work.k, work.n) for work in self.works], np.int64)
        return b"".join(column.tobytes() for column in (extents, self.flows.size, *self.sram_sizes, self.held.size))

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
        return PmuModel(self.design, grid, self.shares, self.edges, self.sram_sizes, self.compatibility)

    def _sram_sizes(self) -> tuple[Column, Column]:
        """Return size and depth of each edge; the original takes those of the edge with the number of the weight."""
        numbers = list(range(len(self.edges)))
        if self.compatibility.sram_of_other_edges:
            weighted = [position for position, share in enumerate(self.shares) if share.kernel.has_weight]
            # A weight without such an edge, of more weights than edges, keeps its own.
            rank = dict(zip(weighted, numbers, strict=False))
            numbers = [rank.get(edge.source, number) for number, edge in enumerate(self.edges)]
        return self.edge_bytes[numbers], np.fromiter((edge.depth for edge in self.edges), float)[numbers]

    @cached_property
    def shape(self) -> FusionShape:
        """Precedence, pins, passes and stages."""
        shape = shape_of(self.design)
        return replace(shape, stages=self.degrees.pipeline) if self.design.is_pipelined else shape

    @cached_property
    def always_bytes(self) -> float:
        """What is in DRAM all the time; stages of a pipeline have each their own."""
        return 0.0 if self.design.is_pipelined else dram_need(self).total

    @cached_property
    def stage_bytes(self) -> Column:
        """What each kernel keeps in the DRAM of its stage of a pipeline; nothing if all stages run the same graph."""
        return np.asarray(self.kept_bytes.sum(axis=0) * self.design.is_pipelined)

    @cached_property
    def kept_bytes(self) -> Column:
        """What each kernel keeps in DRAM: weights, gradients, optimizer states, activations; ``[part, kernel]``."""
        design, compatibility, per_stage = self.design, self.compatibility, layers_per_stage(self)
        kept = np.zeros((4, len(self.shares)))
        weights, gradients, optimizer, activations = kept
        weights += per_stage * np.array([share.kernel.dram_extra_bytes for share in self.shares])
        if _holds_problem_alone(self):
            return kept
        of_weights = np.array([share.weight_bytes * self.tiles_of_weight(share) for share in self.shares], float)
        forward = of_weights * [not share.kernel.backward for share in self.shares]
        trains = any(kernel.backward for kernel in design.kernels)
        weights += per_stage * (forward if trains and not compatibility.backward_weights_counted_again else of_weights)
        if trains and not compatibility.gradients_not_kept:
            gradients += [
                per_stage * share.output_bytes * self.tiles_of_gradient(share)
                if share.kernel.collective is Collective.ALL_REDUCE_PERIODIC
                else 0.0
                for share in self.shares
            ]
        if trains and not compatibility.optimizer_states_ignored:
            optimizer += per_stage * forward / design.execution.word_bytes * OPTIMIZER_BYTES
        if trains and not compatibility.in_flight_activations_ignored:
            in_flight = min(float(self.micro_batches), self.degrees.pipeline)
            others = per_stage * in_flight - 1  # one layer of one micro-batch is what waits between configurations
            # What each kernel of the forward pass leaves for the backward pass; a tensor counts once.
            saved = np.zeros(len(self.shares))
            for edge in self.edges:
                source, target = self.shares[edge.source].kernel, self.shares[edge.target].kernel
                if target.backward and not source.backward:
                    saved[edge.source] = max(saved[edge.source], edge.size_bytes)
            activations += max(0.0, others) * self.micro_batch * (self.tiles * saved)
        return kept

    @cached_property
    def most_weight_tiles(self) -> tuple[int, ...]:
        """How often the weights of each kernel alone may be cut: down to one row of its output."""
        return tuple(max(1, share.work.rows) if share.weight_bytes else 1 for share in self.shares)

    @property
    def _unavoidable_bytes(self) -> Column:
        return self.held.moved

    def repeats(self, members: Members, weight_tiles: Numbers | None) -> tuple[Column, Column]:
        """Return how often what streams in is read, and what streams out is written: once per kernel, as a flaw."""
        reads, writes = super().repeats(members, weight_tiles)
        if self.pmu is None or not self.compatibility.kernels_multiply_traffic:
            return reads, writes
        more = np.maximum(members.sum(axis=1) - 1, 0)
        return reads + more, writes + more

    def exchange(self, members: Members, tiles: Column) -> tuple[Column, Column]:
        """Return time and bytes of each set's exchange with other chips."""
        inside = members.astype(float)
        times = [inside @ part.per_tile * tiles + inside @ part.once for part in self._exchange_ns]
        of_tile, once = self._exchanged_bytes
        longest: Column = np.maximum.reduce(times)
        return longest, inside @ of_tile * tiles + inside @ once

    @cached_property
    def _exchange_ns(self) -> tuple[ExchangeNs, ...]:
        return self.network.parts(self._exchanged)

    @cached_property
    def _exchanged_bytes(self) -> tuple[Column, Column]:
        """Bytes that each kernel exchanges for a tile, and whatever the number of tiles."""
        found = self._exchanged
        sizes = {one: size * self._has_others(one) for one, size in found.sizes.items()}
        once = sizes.pop(Collective.ALL_REDUCE_PERIODIC)
        of_tile: Column = np.sum(list(sizes.values()), axis=0)
        if self.degrees.sequence > 1 or self.compatibility.lone_chip_communicates:
            of_tile = of_tile + sum(found.sequence_sizes.values())
        return of_tile, once

    def _has_others(self, collective: Collective) -> bool:
        """Return whether a chip has others to exchange with: in its group of a language model, else in its copy."""
        if self.compatibility.lone_chip_communicates:
            return True
        if self.design.execution.batch.kind is WorkloadKind.LLM:
            is_periodic = collective is Collective.ALL_REDUCE_PERIODIC
            return (self.degrees.data if is_periodic else self.degrees.tensor) > 1
        return self.design.machine.chips > self.design.execution.batch.copies

    def waiting_bytes(self, before: Members, inside: Members) -> Column:
        """Return the bytes of a micro-batch's tensors in DRAM while sets run after the kernels of ``before``."""
        return np.zeros(len(before)) if _holds_problem_alone(self) else super().waiting_bytes(before, inside)

    def network_parts(self) -> tuple[Column, ...]:
        """Return the times of each kernel's exchange, ``[kernel]``, per part that overlaps with the others."""
        tiles = np.where(self.inputs > 0, 1.0, float(self.tiles))
        return tuple(part.per_tile * tiles + part.once for part in self._exchange_ns)

    def sends_ns(self, down_sets: Members) -> Column:
        """Return the time in which a stage that ends with each down-set, ``[set, kernel]``, hands on what is read."""
        link = self.degrees.pipeline_link
        if link is None or not self.edges:
            return np.zeros(len(down_sets))
        made, read = down_sets[:, self.flows.source], down_sets[:, self.flows.readers.kernels]
        cut: Column = (made & ~read).astype(float) @ self.edge_bytes
        return self.tiles * cut / link.gb_per_s

    def least_ns(self) -> float:
        """Return a time that no configurations beat: no core idle, no tensor between them in DRAM."""
        compute_ns, memory_ns, network_ns = self.least_parts.sum(axis=0)
        return self.design.execution.overlap.time_ns(float(compute_ns), float(memory_ns), float(network_ns))

    @cached_property
    def _exchanged(self) -> Exchanged:
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
        return Exchanged(sizes, sequence, reductions, gathers)


def dram_need(model: DesignModel, positions: list[int] | None = None) -> DramNeed:
    """Return what the kernels of one pipeline stage keep in DRAM all the time; all kernels unless given."""
    batch = model.design.execution.batch
    kept = model.kept_bytes if positions is None else model.kept_bytes[:, positions]
    weights, gradients, optimizer, activations = kept.sum(axis=1).tolist()
    tables = batch.table_bytes / (model.design.machine.chips // batch.copies)
    return DramNeed(weights, gradients, optimizer, activations, tables)


def never_fits_dram(whole: DesignModel) -> bool:
    """Return whether, cut into any number of tiles, what is always in DRAM is too much.

    ``whole`` is the design in one tile: tiles only add; but where of weights and gradients one tile counts.
    """
    design = whole.design
    if not design.machine.dram_bytes or design.execution.batch.layers_in_graph > 1:
        return False
    has_inputs = any(share.kernel.num_input for share in whole.shares)
    for share in whole.shares if whole.compatibility.weights_of_one_tile or has_inputs else ():
        tiled, collective = share.kernel.tiling.shard, share.kernel.collective
        if share.weight_bytes and tiled in (Dim.M, Dim.K):
            return False
        if collective is Collective.ALL_REDUCE_PERIODIC and tiled in (Dim.M, Dim.N):
            return False
    return dram_need(whole).total > design.machine.dram_bytes


def _holds_problem_alone(model: DesignModel) -> bool:
    kind = model.design.execution.batch.kind
    return model.compatibility.other_tensors_ignored and kind in (WorkloadKind.HPL, WorkloadKind.FFT)


def layers_per_stage(model: DesignModel) -> int:
    """Return how often the graph runs on one chip per micro-batch; a graph of all layers is spread over stages."""
    batch = model.design.execution.batch
    if batch.kind is not WorkloadKind.LLM or batch.layers_in_graph > 1:
        return 1
    return -(-batch.layers // model.degrees.pipeline)
