"""A dataflow graph on a chip as sets of kernels with costs and limits."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dfcompile.dfmodel_backend.columns import Column
from dfcompile.dfmodel_backend.fusion.graphs.bounds import lower_bound_ns, unavoidable_bytes
from dfcompile.dfmodel_backend.fusion.solvers.path import TIE, Chain, Rank
from dfcompile.dfmodel_backend.fusion.terms import FlowReader, FlowTerms, FusionTerms, HeldTerms, TiledWeights
from dfcompile.dfmodel_backend.intra_chip.configuration import FINEST, ConfigurationModel
from dfcompile.dfmodel_backend.kernel_sets.shape import FusionShape
from dfcompile.dfmodel_backend.options import Overlap
from dfcompile.dfmodel_backend.workload.chip_workload import NO_SOURCE, Flow


@dataclass(frozen=True)
class GraphSets:
    """A tensor is written once and read once by each configuration, whatever its fan-out; tiles are the finest."""

    model: ConfigurationModel

    @cached_property
    def shape(self) -> FusionShape:
        """Precedence; every configuration may hold every kernel."""
        work = self.model.workload
        slots = self.model.options.max_configurations or len(work.kernels)
        return FusionShape(
            predecessors=work.predecessors,
            allowed=(work.every_kernel,) * slots,
            most_kernels=self.model.system.accelerator.cores,
        )

    @property
    def overlap(self) -> Overlap:
        """Of the options."""
        return self.model.options.overlap

    @property
    def counted(self) -> str:
        """All of compute, memory and network."""
        return "CMN"

    @cached_property
    def least_parts(self) -> npt.NDArray[np.float64]:
        """Unavoidable compute, DRAM and network time ``[kernel, 3]``."""
        chip, work = self.model.system.accelerator, self.model.workload
        compute_ns = self._compute_ns
        if compute_ns is None:
            areas = [table.least_area for table in self.model.tables]
            compute_ns = np.array(areas, float) / (chip.cores * chip.frequency_ghz)
        memory_ns = np.array(unavoidable_bytes(self.model), float) / self.model.system.dram_gb_per_s
        network_ns = np.array([kernel.network_ns for kernel in work.kernels], float)
        return np.stack([compute_ns, memory_ns, network_ns], axis=1)

    @property
    def _compute_ns(self) -> Column | None:
        utilization = self.model.options.compute_utilization
        if utilization <= 0:
            return None
        flop = np.array([kernel.flop for kernel in self.model.workload.kernels], float)
        return flop / (utilization * self.model.system.accelerator.peak_gflops)

    @cached_property
    def _figures(self) -> dict[int, tuple[float, float]]:
        return {0: (0.0, 0.0)}

    def _figures_of(self, kernels: int) -> tuple[float, float]:
        """Return time and DRAM bytes of a set of kernels, infinite if it breaks a limit of cores or SRAM."""
        if kernels not in self._figures:
            self._figures[kernels] = self.model.time_and_bytes(kernels) or (math.inf, math.inf)
        return self._figures[kernels]

    def set_times(self, sets: tuple[int, ...]) -> Column:
        """Return the time of each set of kernels, infinite if it breaks a limit of cores or SRAM."""
        return np.array([self._figures_of(kernels)[0] for kernels in sets], float)

    @cached_property
    def tie_ns(self) -> float:
        """Times that differ by no more are the same."""
        alone = self.set_times(tuple(1 << kernel for kernel in range(len(self.model.workload.kernels))))
        return TIE * float(alone[np.isfinite(alone)].sum())

    @property
    def ns_per_byte(self) -> float:
        """Time of a byte of DRAM traffic."""
        return 1 / self.model.system.dram_gb_per_s

    def rank(self, chain: Chain) -> Rank:
        """Return what tells a chain from others that are as fast."""
        figures = [self._figures_of(kernels) for kernels in chain if kernels]
        return sum(time_ns for time_ns, _ in figures), sum(dram_bytes for _, dram_bytes in figures), len(figures)

    def terms(self) -> FusionTerms:
        """Return figures kernel by kernel."""
        model, work = self.model, self.model.workload
        chip, gb_per_s = model.system.accelerator, model.system.dram_gb_per_s
        compute_ns = self._compute_ns
        weights = sum(weight.size_bytes for weight in work.weights)
        # Sizes are whole bytes: half a byte of slack keeps a tight fit clear of the solvers' tolerances.
        room = math.floor(model.system.dram_capacity_bytes) + 0.5 - weights
        return FusionTerms(
            least_ns=lower_bound_ns(model),
            cores=chip.cores,
            compute_ns=compute_ns,
            tables=model.tables if compute_ns is None else (),
            cycle_ns=np.full(len(work.kernels), 1 / chip.frequency_ghz),
            network_ns=(np.array([kernel.network_ns for kernel in work.kernels], float),),
            flows=tuple(_flow_terms(flow, gb_per_s) for flow in work.flows),
            held=tuple(
                HeldTerms(weight.kernels, weight.size_bytes / gb_per_s, float(weight.size_bytes))
                for weight in work.weights
                if weight.kernels
            ),
            tiled=tuple(self._tiled()),
            sram_bytes=math.floor(chip.sram_bytes) + 0.5 if chip.sram_bytes else math.inf,
            dram_bytes=math.inf if model.dram_always_fits else room,
            kept_bytes=np.zeros(len(work.kernels)),
            waiting=(1,) * len(work.kernels),
            repeats=(1,) * len(work.kernels),
            apart=0,
            most_ns=0.0,
        )

    def _tiled(self) -> Iterator[TiledWeights]:
        model = self.model
        for k in range(len(model.workload.kernels)):
            kernels, members = 1 << k, (k,)
            tiles = model.fitting_weight_tiles(kernels, members)
            if tiles is None or tiles == 1:
                continue
            saved = model.sram_bytes(kernels, members, FINEST, 1) - math.floor(model.system.accelerator.sram_bytes)
            traffic = model.traffic(kernels, members)
            added = traffic.total_bytes(tiles) - traffic.total_bytes(1)
            yield TiledWeights(k, float(saved), added / model.system.dram_gb_per_s)


def _flow_terms(flow: Flow, gb_per_s: float) -> FlowTerms:
    inside = flow.source != NO_SOURCE
    return FlowTerms(
        source=flow.source,
        readers=tuple(
            FlowReader(
                kernel=reading.kernel,
                border_bytes=2.0 * -(-flow.size_bytes // reading.cuts),
                inside_bytes=reading.buffer_depth * float(-(-flow.size_bytes // min(reading.cuts, flow.cuts)))
                if inside
                else 0.0,
            )
            for reading in flow.readings
        ),
        leaves=flow.leaves,
        read_ns=flow.size_bytes / gb_per_s,
        write_ns=flow.size_bytes / gb_per_s,
        written_bytes=2.0 * -(-flow.size_bytes // flow.cuts),
        live_bytes=float(flow.size_bytes),
    )
