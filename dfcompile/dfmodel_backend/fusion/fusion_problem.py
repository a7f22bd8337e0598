"""What a solver of fusion is given, sets of kernels of a model with costs and limits, and what it returns.

Programs that do not list sets get a chip's figures kernel by kernel, as numbers. Those of pipelines get the
kernels of all layers, to be parted into stages.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import numpy as np
from msgspec import Struct, field

from dfcompile.dfmodel_backend.columns import Column, members_of
from dfcompile.dfmodel_backend.fusion.solvers.path import TIE, Chain, PathCosts, Rank, least_chain, least_chain_of_pmus
from dfcompile.dfmodel_backend.intra_chip.cores import CoreTable
from dfcompile.dfmodel_backend.intra_chip.flow_columns import NOBODY
from dfcompile.dfmodel_backend.intra_chip.set_model import SetModel
from dfcompile.dfmodel_backend.intra_chip.set_times import arc_figures, arc_times, set_figures, set_times, tiles_alone
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel
from dfcompile.dfmodel_backend.kernel_sets import Arcs, FusionShape, PathArcs, arcs_of, arcs_of_chain, kernels_of
from dfcompile.dfmodel_backend.milp import Outcome
from dfcompile.dfmodel_backend.options import MappingOptions


class FlowReader(Struct, frozen=True):
    """A kernel that reads a tensor, and the SRAM that it takes for it.

    Attributes:
        kernel: its number.
        border_bytes: where the tensor comes from DRAM; of several readers the largest counts.
        inside_bytes: where the tensor is made in the same configuration; of several readers the largest counts.
    """

    kernel: int
    border_bytes: float
    inside_bytes: float


class FlowTerms(Struct, frozen=True):
    """A tensor that streams between kernels, or between kernels and DRAM.

    Attributes:
        source: number of the kernel that makes it, or `NOBODY`.
        readers: of it.
        leaves: whether it is written to DRAM in any case.
        read_ns: time in which a configuration reads it.
        write_ns: time in which it is written.
        written_bytes: of SRAM, where it is written to DRAM.
        live_bytes: of DRAM while it waits.
        sent_ns: time in which a stage of a pipeline sends it on.
    """

    source: int
    readers: tuple[FlowReader, ...]
    leaves: bool
    read_ns: float
    write_ns: float
    written_bytes: float
    live_bytes: float
    sent_ns: float = 0.0


class HeldTerms(Struct, frozen=True):
    """A tensor that is loaded and then held by each configuration with one of its kernels."""

    kernels: tuple[int, ...]
    memory_ns: float
    sram_bytes: float


class TiledWeights(Struct, frozen=True):
    """A kernel that fits SRAM only alone, with its weights in tiles."""

    kernel: int
    saved_sram_bytes: float
    added_memory_ns: float


class FusionTerms(Struct, frozen=True):
    """Figures of kernels, and limits.

    Attributes:
        least_ns: a time that no chain beats: the unit of time.
        cores: of the chip.
        compute_ns: of each kernel, where times of kernels add up; else None: cores are split among kernels.
        tables: of cores and cycles, per kernel; empty where times add up.
        cycle_ns: time of one cycle, per kernel.
        network_ns: of each kernel, one column for each part that overlaps with the others.
        flows: tensors that stream.
        held: tensors that are held.
        tiled: kernels that need their weights in tiles.
        sram_bytes: what configurations may take; infinite if that is not limited.
        dram_bytes: what a stage may take; infinite if that is not limited.
        kept_bytes: of each kernel, in the DRAM of its stage all the time.
        waiting: of each kernel: how many times `FlowTerms.live_bytes` wait while it runs.
        repeats: of each kernel: how often its configuration runs, that of the most being it.
        apart: kernels that share configurations only with each other; 0 or all: none.
        most_ns: a time that no configuration takes once, where some run more often.
    """

    least_ns: float
    cores: int
    compute_ns: Column | None
    tables: tuple[CoreTable, ...]
    cycle_ns: Column
    network_ns: tuple[Column, ...]
    flows: tuple[FlowTerms, ...]
    held: tuple[HeldTerms, ...]
    tiled: tuple[TiledWeights, ...]
    sram_bytes: float
    dram_bytes: float
    kept_bytes: Column
    waiting: tuple[int, ...]
    repeats: tuple[int, ...]
    apart: int
    most_ns: float


SHORTEST_PATH, ALONG_ORDERS = "dp", "intervals"  # solvers that others hand over to
ROUNDING = 1e-9  # relative: sums in another order
HALF_A_BYTE = 0.5  # of whole bytes: keeps a tight fit clear of the tolerances of integer programs


class Fusion(Struct, frozen=True):
    """What a solver found.

    Attributes:
        chain: set of kernels of each configuration, 0 where it is empty; None if no chain was found.
        time_ns: of all; infinite without a chain.
        is_optimal: whether it is proved that no other chain is faster; without a chain that there is none.
        solver: name of the one that found it: another one's if a solver handed over to it.
    """

    chain: Chain | None
    time_ns: float
    is_optimal: bool
    solver: str


class FusionProblem(Struct, frozen=True, dict=True):
    """Kernels to fuse into configurations, with costs and limits of their sets: all that a solver knows of a model.

    Kernels are numbered from 0; a set of them is a bit mask: ``0b101`` holds kernels 0 and 2. A chain is the sets of
    the configurations in order of execution. Together they hold every kernel once, and each kernel runs no earlier
    than its predecessors.

    Attributes:
        model: of the chip.
        options: limits of the work: of time, of nodes, of listed configurations.
    """

    model: SetModel
    options: MappingOptions = field(default_factory=MappingOptions)

    @property
    def shape(self) -> FusionShape:
        """Precedence, and which kernels each configuration may hold: pins, passes, stages."""
        return self.model.shape

    def may_solve(self, variables: int) -> bool:
        """Return whether an integer program of so many variables may be solved."""
        return variables <= self.options.max_variables

    def listed(self) -> PathArcs | None:
        """Return all possible configurations, or None if they are too many."""
        lattice = self.shape.lattice(self.options.max_down_sets)
        return None if lattice is None else arcs_of(self.shape, lattice, self.may_grow)

    def listed_along_orders(self) -> PathArcs:
        """Return the possible configurations along a few topological orders."""
        return arcs_of(self.shape, self.shape.intervals(), self.may_grow)

    def shortest_path(self) -> Fusion:
        """Return the best chain of all; of too many configurations the best along a few orders."""
        arcs = self.listed()
        if arcs is None:
            return self.along_orders()
        time_ns, chain = self.least_chain(arcs)
        return Fusion(chain, time_ns, is_optimal=True, solver=SHORTEST_PATH)

    def along_orders(self) -> Fusion:
        """Return the best chain along a few topological orders."""
        time_ns, chain = self.least_chain(self.listed_along_orders())
        return Fusion(chain, time_ns, is_optimal=False, solver=ALONG_ORDERS)

    def instead(self) -> Fusion:
        """Return what takes the place of an integer program that is too large or stopped without a solution."""
        return self.along_orders()

    @property
    def _count(self) -> int:
        return len(self.model.works)

    @cached_property
    def _sums(self) -> dict[int, int]:
        """What sets of kernels hold, as far as it was asked for: at first of kernels alone."""
        return {0: 0, **{1 << kernel: round(size) for kernel, size in enumerate(self.model.growth_limit[0])}}

    def may_grow(self, kernels: int) -> bool:
        """Return whether a larger set may be possible: what several kernels hold is all there, weights are whole."""
        capacity = self.model.growth_limit[1]
        return not capacity or self._sum(kernels) <= capacity

    def _sum(self, kernels: int) -> int:
        if kernels not in self._sums:
            lowest = kernels & -kernels
            self._sums[kernels] = self._sum(kernels ^ lowest) + self._sums[lowest]
        return self._sums[kernels]

    def set_times(self, sets: tuple[int, ...]) -> Column:
        """Return the time in ns of each set of kernels, infinite if it breaks a limit of cores or SRAM."""
        return set_times(self.model, members_of(sets, self._count))

    def chain_times(self, chain: Chain) -> Column:
        """Return the time in ns of each set of a chain, infinite if it breaks a limit of cores, SRAM or DRAM.

        Sets of no kernel take no time.
        """
        times = np.zeros(len(chain))
        used = [number for number, kernels in enumerate(chain) if kernels]
        times[used] = arc_times(self.model, arcs_of_chain(chain, self._count))
        return times

    def least_chain(self, arcs: PathArcs) -> tuple[float, Chain | None]:
        """Return the least time of a chain of listed configurations, and the chain, or None if there is none."""
        if self.model.pmu is not None and isinstance(arcs, Arcs):
            return least_chain_of_pmus(self.model, arcs, self.shape)
        return least_chain(arcs, self.costs_of(arcs), self.shape)

    def costs_of(self, arcs: PathArcs) -> PathCosts:
        """Return time and DRAM bytes of listed configurations; infinite time if one is not possible after all."""
        assert isinstance(arcs, Arcs)
        return PathCosts(*arc_figures(self.model, arcs), self.tie_ns)

    @cached_property
    def tie_ns(self) -> float:
        """Times that differ by no more are the same."""
        alone = set_times(self.model, np.eye(self._count, dtype=bool))
        return TIE * float(alone[np.isfinite(alone)].sum())

    def rank(self, chain: Chain) -> Rank:
        """Return what tells a chain from others that are as fast: time in ns, DRAM bytes, configurations."""
        sets = tuple(kernels for kernels in chain if kernels)
        times, dram_bytes = set_figures(self.model, members_of(sets, self._count))
        return float(times.sum()), float(dram_bytes.sum()), len(sets)

    def terms(self) -> FusionTerms:
        """Return figures kernel by kernel of a chip without memory units, for programs that do not list sets."""
        model, rules, machine = self.model, self.model.rules, self.model.machine
        inputs = model.inputs.tolist()
        kept, peak = model.stage_bytes, rules.utilization * machine.peak_gflops
        is_roomy = model.dram_room >= kept.sum() + model.most_waiting
        return FusionTerms(
            least_ns=model.least_ns(),
            cores=machine.cores,
            compute_ns=self._tiles * model.flop / peak if peak else None,
            tables=() if peak else model.tables,
            cycle_ns=self._tiles / machine.frequency_ghz,
            network_ns=model.network_parts(),
            flows=tuple(self._flows()),
            held=tuple(self._held_terms()),
            tiled=tuple(self._tiled()) if model.sram_capacity else (),
            sram_bytes=self._with_slack(model.sram_capacity) if model.sram_capacity else math.inf,
            dram_bytes=math.inf if is_roomy else self._with_slack(model.dram_room),
            kept_bytes=kept,
            waiting=tuple(self._tiles.astype(int).tolist()),
            repeats=tuple(max(1, count) for count in inputs),
            apart=sum(1 << k for k, count in enumerate(inputs) if count),
            most_ns=self._most_ns() if max(inputs, default=0) > 1 else 0.0,
        )

    def _with_slack(self, size: float) -> float:
        return math.floor(size) + HALF_A_BYTE if self.model.rules.has_whole_bytes else size * (1 + ROUNDING)

    @cached_property
    def _tiles(self) -> Column:
        """Tiles of the configurations of each kernel: those with several inputs are not tiled."""
        tiles, _ = self.model.tiles_of(np.eye(self._count, dtype=bool))
        return tiles.astype(float)

    def _most_ns(self) -> float:
        """Return a time that no configuration takes once, whatever is in it and however its weights are tiled."""
        rows = np.array([max(1, work.rows) for work in self.model.works], np.int64)
        steps = self.model.steps(np.eye(self._count, dtype=bool), rows)
        compute_ns = steps.compute_ns.sum() * self.model.machine.cores
        return float(compute_ns + steps.memory_ns.sum() + sum(part.sum() for part in self.model.network_parts()))

    def _flows(self) -> Iterator[FlowTerms]:
        model, flows = self.model, self.model.flows
        gb_per_s, link = model.machine.dram_gb_per_s, model.pipeline_link
        for number, (source, (first, end)) in enumerate(zip(flows.source.tolist(), flows.readers.places, strict=True)):
            size, kernels = float(flows.size[number]), flows.readers.kernels[first:end].tolist()
            is_read = kernels != [NOBODY]
            yield FlowTerms(
                source=source,
                readers=tuple(
                    FlowReader(kernel, float(flows.border[first + place]), float(flows.inside[first + place]))
                    for place, kernel in enumerate(kernels)
                    if is_read
                ),
                leaves=bool(flows.leaves[number]),
                read_ns=(float(self._tiles[kernels[0]]) if is_read else 1.0) * size / gb_per_s,
                write_ns=(float(self._tiles[source]) if source != NOBODY else 1.0) * size / gb_per_s,
                written_bytes=2 * float(flows.written[number]),
                live_bytes=model.micro_batch * size,
                sent_ns=model.tiles * size / link.gb_per_s if link else 0.0,
            )

    def _held_terms(self) -> Iterator[HeldTerms]:
        model, users = self.model, self.model.held.users
        added = dict(enumerate(model.sram_extra_bytes.tolist()))
        for (first, end), moved, size in zip(
            users.places, model.held.moved.tolist(), model.held.size.tolist(), strict=True
        ):
            kernels = tuple(users.kernels[first:end].tolist())
            extra = added.pop(kernels[0], 0.0) if len(kernels) == 1 else 0.0
            yield HeldTerms(kernels, moved / model.machine.dram_gb_per_s, size + extra)
        yield from (HeldTerms((kernel,), 0.0, extra) for kernel, extra in added.items() if extra)

    def _tiled(self) -> Iterator[TiledWeights]:
        model = self.model
        for kernel in range(self._count):
            tiles = tiles_alone(model, kernel)
            if tiles is None or tiles == 1:
                continue
            row, parts = np.arange(self._count)[None, :] == kernel, np.array([tiles], np.int64)
            added = model.steps(row, parts).memory_ns - model.steps(row).memory_ns
            yield TiledWeights(kernel, model.sram_alone(kernel, 1) - model.sram_alone(kernel, tiles), float(added[0]))


class Fused(Struct, frozen=True):
    """An assignment of kernels, by id, to configurations, and its time."""

    configs: dict[int, int]
    time_ns: float
    stages: tuple[int, ...] = ()  # pipeline stage of each configuration; empty if each stage runs the whole graph


def configs_of(model: DesignModel, chain: Sequence[int]) -> dict[int, int]:
    """Return the configuration of each kernel, by id."""
    return {
        model.shares[position].kernel.id: slot for slot, added in enumerate(chain) for position in kernels_of(added)
    }


class StageProblem(Struct, frozen=True):
    """The kernels of all layers, to be parted into stages and fused in each.

    Attributes:
        model: costs and limits.
        problem: the same of sets of kernels.
        below_ns: a slowest stage of more is of no interest.
        time_limit_s: of an integer program; 0: none.
        arcs: gives all possible configurations or, if they are too many, some of them.
    """

    model: DesignModel
    problem: FusionProblem
    below_ns: float
    time_limit_s: float
    arcs: Callable[[], Arcs]


class Stages(Struct, frozen=True):
    """What was found: the stages or, with their outcome, none."""

    fused: Fused | None
    outcome: Outcome
