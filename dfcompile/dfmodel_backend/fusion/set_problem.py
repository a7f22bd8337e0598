"""Sets of kernels of a model with costs and limits, as solvers of fusion ask for them."""

import math
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from dfcompile.dfmodel_backend.columns import Column, members_of
from dfcompile.dfmodel_backend.design_options import MOST_DOWN_SETS
from dfcompile.dfmodel_backend.fusion.fusion_problem import Fusion, FusionProblem
from dfcompile.dfmodel_backend.fusion.pair_arcs import PairArcs
from dfcompile.dfmodel_backend.fusion.solvers.memory_unit_path import least_chain_of_pmus
from dfcompile.dfmodel_backend.fusion.solvers.path import TIE, Chain, PathArcs, PathCosts, Rank, least_chain
from dfcompile.dfmodel_backend.fusion.solvers.shortest_path import along_orders
from dfcompile.dfmodel_backend.fusion.terms import FlowReader, FlowTerms, FusionTerms, HeldTerms, TiledWeights
from dfcompile.dfmodel_backend.intra_chip.flow_columns import NOBODY
from dfcompile.dfmodel_backend.intra_chip.set_model import SetModel
from dfcompile.dfmodel_backend.intra_chip.set_times import arc_figures, arc_times, set_figures, set_times, tiles_alone
from dfcompile.dfmodel_backend.kernel_sets.arcs import Arcs, arcs_of, arcs_of_chain
from dfcompile.dfmodel_backend.kernel_sets.shape import FusionShape
from dfcompile.dfmodel_backend.options import MappingOptions, Overlap

ROUNDING = 1e-9  # relative: sums in another order
HALF_A_BYTE = 0.5  # of whole bytes: keeps a tight fit clear of the tolerances of integer programs


class Lists(Protocol):
    """Lists the possible configurations of a model."""

    def listed(self, problem: "SetProblem") -> PathArcs | None:
        """Return all of them, or None if they are too many."""

    def listed_along_orders(self, problem: "SetProblem") -> PathArcs:
        """Return those along a few topological orders."""


class ListsOfOne(Struct, frozen=True):
    """Lists those of one model, if there are no more than so many down-sets."""

    max_down_sets: int

    def listed(self, problem: "SetProblem") -> Arcs | None:
        """Return all possible configurations, or None if they are too many."""
        lattice = problem.shape.lattice(self.max_down_sets)
        return None if lattice is None else arcs_of(problem.shape, lattice, problem.may_grow)

    def listed_along_orders(self, problem: "SetProblem") -> Arcs:
        """Return the possible configurations along a few topological orders."""
        return arcs_of(problem.shape, problem.shape.intervals(), problem.may_grow)


class SetProblem(Struct, frozen=True, dict=True):
    """Sets of a model's kernels, as bit masks, with costs and limits: a `FusionProblem`.

    Attributes:
        model: of the chip.
        options: limits of the work.
        lists: of possible configurations.
        hand_over: what takes the place of an integer program that is too large or stopped without a solution.
    """

    model: SetModel
    options: MappingOptions = field(default_factory=MappingOptions)
    lists: Lists = ListsOfOne(MOST_DOWN_SETS)
    hand_over: Callable[[FusionProblem], Fusion] = along_orders

    @property
    def shape(self) -> FusionShape:
        """Precedence, pins, passes and stages."""
        return self.model.shape

    @property
    def overlap(self) -> Overlap:
        """What runs at the same time in a configuration."""
        return self.model.rules.overlap

    @property
    def counted(self) -> str:
        """Which of compute, memory and network count: letters of ``CMN``."""
        return self.model.rules.counted

    @property
    def least_parts(self) -> npt.NDArray[np.float64]:
        """Unavoidable compute, DRAM and network time ``[kernel, 3]``."""
        return self.model.least_parts

    @property
    def ns_per_byte(self) -> float:
        """Time of a byte of DRAM traffic."""
        return 1 / self.model.machine.dram_gb_per_s

    def may_solve(self, variables: int) -> bool:
        """Return whether an integer program of so many variables may be solved."""
        return variables <= self.options.max_variables

    def listed(self) -> PathArcs | None:
        """Return all possible configurations, or None if they are too many."""
        return self.lists.listed(self)

    def listed_along_orders(self) -> PathArcs:
        """Return the possible configurations along a few topological orders."""
        return self.lists.listed_along_orders(self)

    def instead(self) -> Fusion:
        """Return what takes the place of an integer program."""
        return self.hand_over(self)

    @property
    def _count(self) -> int:
        return len(self.model.works)

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
        return set_times(self.model, members_of(sets, self._count))

    def chain_times(self, chain: Chain) -> Column:
        """Return the time of each set of a chain, infinite if it breaks a limit of cores, SRAM or DRAM."""
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
        """Return time and DRAM bytes of each arc; infinite time if it breaks a limit."""
        if isinstance(arcs, PairArcs):
            return PathCosts(arcs.time_ns, arcs.dram_bytes, self.tie_ns)
        assert isinstance(arcs, Arcs)
        return PathCosts(*arc_figures(self.model, arcs), self.tie_ns)

    @cached_property
    def tie_ns(self) -> float:
        """Times that differ by no more are the same."""
        alone = set_times(self.model, np.eye(self._count, dtype=bool))
        return TIE * float(alone[np.isfinite(alone)].sum())

    def rank(self, chain: Chain) -> Rank:
        """Return what tells a chain from others that are as fast."""
        sets = tuple(kernels for kernels in chain if kernels)
        times, dram_bytes = set_figures(self.model, members_of(sets, self._count))
        return float(times.sum()), float(dram_bytes.sum()), len(sets)

    def terms(self) -> FusionTerms:
        """Return figures kernel by kernel, of a chip without memory units."""
        model, rules, machine = self.model, self.model.rules, self.model.machine
        inputs = model.inputs.tolist()
        kept, peak = model.stage_bytes, rules.utilization * machine.peak_gflops
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
            dram_bytes=math.inf
            if model.dram_room >= kept.sum() + model.most_waiting
            else self._with_slack(model.dram_room),
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
            saved = model.sram_alone(kernel, 1) - model.sram_alone(kernel, tiles)
            yield TiledWeights(kernel, saved, float(added[0]))
