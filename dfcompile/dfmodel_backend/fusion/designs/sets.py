"""A sharded and tiled design as sets of kernels with costs and limits."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dfcompile.dfmodel_backend.columns import Column
from dfcompile.dfmodel_backend.fusion.designs.shape import shape_of
from dfcompile.dfmodel_backend.fusion.solvers.memory_unit_path import least_chain_of_pmus
from dfcompile.dfmodel_backend.fusion.solvers.path import TIE, Chain, PathCosts, Rank, least_chain
from dfcompile.dfmodel_backend.fusion.terms import FlowReader, FlowTerms, FusionTerms, HeldTerms, TiledWeights
from dfcompile.dfmodel_backend.intra_chip.configuration_times import (
    arc_figures,
    arc_times,
    dram_room,
    most_waiting,
    set_figures,
    set_times,
)
from dfcompile.dfmodel_backend.intra_chip.dram import kept_bytes
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel
from dfcompile.dfmodel_backend.intra_chip.weight_tiling import fewest_weight_tiles
from dfcompile.dfmodel_backend.kernel_sets.arcs import Arcs, members_of
from dfcompile.dfmodel_backend.kernel_sets.shape import FusionShape
from dfcompile.dfmodel_backend.options import Overlap

ROUNDING = 1e-9  # relative: sums in another order


@dataclass(frozen=True)
class DesignSets:
    """Each connection of a design is a tensor of its own, written and read whatever others its producer has [ko24]."""

    model: DesignModel

    @cached_property
    def shape(self) -> FusionShape:
        """Precedence, pins, passes and stages."""
        stages = self.model.degrees.pipeline if self._is_pipelined else 1
        return replace(shape_of(self.model.design), stages=stages)

    @property
    def _is_pipelined(self) -> bool:
        return self.model.design.execution.batch.layers_in_graph > 1

    @property
    def overlap(self) -> Overlap:
        """Of the design's execution."""
        return self.model.design.execution.overlap

    @property
    def counted(self) -> str:
        """Of the design's execution."""
        return self.model.design.execution.counted

    @property
    def least_parts(self) -> npt.NDArray[np.float64]:
        """Unavoidable compute, DRAM and network time ``[kernel, 3]``."""
        return self.model.least_parts

    @cached_property
    def _held(self) -> dict[int, int]:
        return {1 << position: round(size) for position, size in enumerate(self.model.growth_limit[0])}

    @cached_property
    def _sums(self) -> dict[int, int]:
        return {0: 0}

    def may_grow(self, kernels: int) -> bool:
        """Return whether a larger set may be possible: what several kernels hold is all there, weights are whole."""
        capacity = self.model.growth_limit[1]
        return not capacity or self._sum(kernels) <= capacity

    def _sum(self, kernels: int) -> int:
        if kernels not in self._sums:
            lowest = kernels & -kernels
            self._sums[kernels] = self._sum(kernels ^ lowest) + self._held[lowest]
        return self._sums[kernels]

    def set_times(self, sets: tuple[int, ...]) -> Column:
        """Return the time of each set of kernels, infinite if it breaks a limit of cores or SRAM."""
        return set_times(self.model, members_of(sets, len(self.model.shares)))

    def arc_times(self, arcs: Arcs) -> Column:
        """Return the time of each arc, infinite if it breaks a limit of cores, SRAM or DRAM."""
        return arc_times(self.model, arcs)

    def least_chain(self, arcs: Arcs) -> tuple[float, Chain | None]:
        """Return the least time of a chain of all kernels, and the chain, or None if there is none."""
        if self.model.pmu is not None:
            return least_chain_of_pmus(self.model, arcs, self.shape)
        return least_chain(arcs, self.arc_costs(arcs), self.shape)

    def arc_costs(self, arcs: Arcs) -> PathCosts:
        """Return time and DRAM bytes of each arc."""
        return PathCosts(*arc_figures(self.model, arcs), self.tie_ns)

    @cached_property
    def tie_ns(self) -> float:
        """Times that differ by no more are the same."""
        alone = set_times(self.model, np.eye(len(self.model.shares), dtype=bool))
        return TIE * float(alone[np.isfinite(alone)].sum())

    @property
    def ns_per_byte(self) -> float:
        """Time of a byte of DRAM traffic."""
        return 1 / self.model.design.machine.dram_gb_per_s

    def rank(self, chain: Chain) -> Rank:
        """Return what tells a chain from others that are as fast."""
        sets = tuple(kernels for kernels in chain if kernels)
        times, dram_bytes = set_figures(self.model, members_of(sets, len(self.model.shares)))
        return float(times.sum()), float(dram_bytes.sum()), len(sets)

    def terms(self) -> FusionTerms:
        """Return figures kernel by kernel, of a design without memory units."""
        model, machine = self.model, self.model.design.machine
        utilization = model.design.execution.compute_utilization
        flop = np.array([share.flop for share in model.shares], float)
        tiles = np.array(self._tiles, float)
        inputs = [share.kernel.num_input for share in model.shares]
        kept = kept_bytes(model) if self._is_pipelined else np.zeros(len(model.shares))
        room = dram_room(model)
        is_enough = room >= kept.sum() + most_waiting(model)
        return FusionTerms(
            least_ns=model.least_ns(),
            cores=machine.cores,
            compute_ns=tiles * flop / (utilization * machine.peak_gflops) if utilization > 0 else None,
            tables=model.tables if utilization <= 0 else (),
            cycle_ns=tiles / machine.frequency_ghz,
            network_ns=model.network_parts(),
            flows=self._flows(),
            held=tuple(
                HeldTerms((k,), float(model.extra_bytes[k]) / machine.dram_gb_per_s, float(size))
                for k, size in enumerate(model.held_bytes + model.sram_extra_bytes)
            ),
            tiled=tuple(self._tiled()),
            sram_bytes=model.sram_capacity * (1 + ROUNDING) if model.sram_capacity else np.inf,
            dram_bytes=np.inf if is_enough else room * (1 + ROUNDING),
            kept_bytes=kept,
            waiting=self._tiles,
            repeats=tuple(max(1, count) for count in inputs),
            apart=sum(1 << k for k, count in enumerate(inputs) if count),
            most_ns=self._most_ns() if max(inputs, default=0) > 1 else 0.0,
        )

    @cached_property
    def _tiles(self) -> tuple[int, ...]:
        """Tiles of the configurations of each kernel: those with several inputs are not tiled."""
        return tuple(1 if share.kernel.num_input else self.model.tiles for share in self.model.shares)

    def _most_ns(self) -> float:
        """Return a time that no configuration takes once, whatever is in it and however its weights are tiled."""
        model = self.model
        alone = np.eye(len(model.shares), dtype=bool)
        steps = model.steps(alone, np.array([max(1, share.rows) for share in model.shares], np.int64))
        compute_ns = steps.compute_ns.sum() * model.design.machine.cores
        return float(compute_ns + steps.memory_ns.sum() + sum(part.sum() for part in model.network_parts()))

    def _flows(self) -> tuple[FlowTerms, ...]:
        model = self.model
        gb_per_s, link = model.design.machine.dram_gb_per_s, model.degrees.pipeline_link
        micro_batch = max(1, model.design.execution.batch.micro_batch)
        return tuple(
            FlowTerms(
                source=edge.source,
                readers=(FlowReader(edge.target, 2.0 * size, depth * size),),
                leaves=False,
                read_ns=self._tiles[edge.target] * edge.size_bytes / gb_per_s,
                write_ns=self._tiles[edge.source] * edge.size_bytes / gb_per_s,
                written_bytes=2.0 * size,
                live_bytes=float(micro_batch * edge.size_bytes),
                sent_ns=model.tiles * edge.size_bytes / link.gb_per_s if link else 0.0,
            )
            for edge, size, depth in zip(model.edges, *(column.tolist() for column in model.sram_sizes), strict=True)
        )

    def _tiled(self) -> list[TiledWeights]:
        model = self.model
        found = []
        for k in range(len(model.shares)) if model.sram_capacity else ():
            row = np.arange(len(model.shares)) == k
            tiles = fewest_weight_tiles(model, row)
            if tiles is None or tiles == 1:
                continue
            parts = np.array([tiles], np.int64)
            saved = model.sram_bytes(row[None, :]) - model.sram_bytes(row[None, :], parts)
            added = model.steps(row[None, :], parts).memory_ns - model.steps(row[None, :]).memory_ns
            found.append(TiledWeights(k, float(saved[0]), float(added[0])))
        return found
