"""Fusion of kernels into configurations by the solver that was asked for.

Of a design, arcs between down-sets are listed once for many tile counts. Of a graph they are columns: pairs of
down-sets with their times and DRAM bytes, millions at a time.
"""

import math
import sys
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from dfcompile.dfmodel_backend.columns import CELLS, Column, Members, Numbers, members_of, sums_over
from dfcompile.dfmodel_backend.fusion.fusion_problem import Fusion, FusionProblem, StageProblem, configs_of
from dfcompile.dfmodel_backend.fusion.fusion_solver import FusionSolver, find_solver
from dfcompile.dfmodel_backend.fusion.pipelines import fuse_stages, least_stage_ns
from dfcompile.dfmodel_backend.fusion.solvers.built_in import INTERVALS
from dfcompile.dfmodel_backend.fusion.solvers.path import PathCosts
from dfcompile.dfmodel_backend.intra_chip.cores import least_cycles
from dfcompile.dfmodel_backend.intra_chip.flow_columns import PairBytes
from dfcompile.dfmodel_backend.intra_chip.graph_model import GraphModel
from dfcompile.dfmodel_backend.intra_chip.set_times import arc_times
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel
from dfcompile.dfmodel_backend.kernel_sets import Arcs, DownSets, PathArcs, arcs_of, arcs_within, shape_of, single_arcs
from dfcompile.dfmodel_backend.options import DesignOptions, MappingOptions
from dfcompile.dfmodel_backend.workload.design import Design
from dfcompile.plugins import is_own
from dfcompile.records import replace

PAIRS = 500_000  # of down-sets at a time
ROWS = 256  # of smaller down-sets at a time: of those near to each other the larger ones are the same
LARGEST_KEY = 2**62


class PairArcs(PathArcs, frozen=True, eq=False):
    """Possible configurations with what they take.

    Attributes:
        time_ns: per arc.
        dram_bytes: moved, per arc.
    """

    time_ns: Column
    dram_bytes: Column


class _Block(Struct, frozen=True, eq=False):
    """Pairs of smaller down-sets from ``first`` to ``last`` with others before ``end``; counted from the first."""

    first: int
    last: int
    end: int
    before: npt.NDArray[np.int32]
    after: npt.NDArray[np.int32]


def pair_arcs(
    model: GraphModel, down_sets: tuple[int, ...], most: int, budget: int, alone: tuple[Column, Column]
) -> PairArcs | None:
    """Return all possible configurations between down-sets, or None if there are more pairs than the budget.

    Args:
        model: costs and limits of the chip.
        down_sets: smaller ones first.
        most: kernels of a configuration.
        budget: pairs of which one holds the other.
        alone: time and DRAM bytes of each kernel alone: only then weights may come in several tiles.
    """
    pairs = _ordered(down_sets, len(model.works), most, budget)
    if pairs is None:
        return None
    members, blocks = pairs
    tables = PairBytes(model.flows, model.held, is_dram_free=model.dram_room >= model.most_waiting)
    fitting = zip(*(_fitting(model, tables, members, block) for block in blocks), strict=True)
    before, after, dram_bytes = map(np.concatenate, fitting)
    order = np.lexsort((before, after))
    before, after, dram_bytes = before[order], after[order], dram_bytes[order]
    exchanged = sums_over(members, model.network_parts()[0])
    network_ns = np.maximum(exchanged[after] - exchanged[before], 0.0)
    compute_ns = _compute_ns(model, members, before, after)
    time_ns = model.rules.overlap.times_ns(compute_ns, dram_bytes / model.machine.dram_gb_per_s, network_ns)
    times, moved = alone
    sizes = members.sum(axis=1)
    single = np.flatnonzero(sizes[after] - sizes[before] == 1)
    at_a_time = max(1, min(PAIRS, CELLS // max(1, members.shape[1])))
    for start in range(0, len(single), at_a_time):
        part = single[start : start + at_a_time]
        kernels = np.argmax(members[after[part]] & ~members[before[part]], axis=1)
        time_ns[part], dram_bytes[part] = times[kernels], moved[kernels]
    possible = np.isfinite(time_ns)
    return PairArcs(down_sets, before[possible], after[possible], time_ns[possible], dram_bytes[possible])


@lru_cache(maxsize=2)  # of one graph whatever its kernels cost, as where shardings are compared: a quarter of the time
def _ordered(down_sets: tuple[int, ...], kernels: int, most: int, budget: int) -> tuple[Members, list[_Block]] | None:
    """Return the pairs of which the second holds the first and up to ``most`` kernels more; None above the budget."""
    members = members_of(down_sets, kernels)
    members.setflags(write=False)
    sizes = members.sum(axis=1)
    blocks: list[_Block] = []
    first = 0
    while first < len(members):
        reach = int(np.searchsorted(sizes, sizes[first] + most, side="right")) - first
        last = min(len(members), first + max(1, min(ROWS, PAIRS // max(1, reach))))
        end = int(np.searchsorted(sizes, sizes[last - 1] + most, side="right"))
        smaller, larger = members[first:last], members[first:end]
        changing = np.flatnonzero(larger.any(axis=0) & ~smaller.all(axis=0))
        part = smaller[:, changing].astype(np.float32)
        shared = part @ larger[:, changing].astype(np.float32).T
        more = sizes[None, first:end] - sizes[first:last, None]
        before, after = np.nonzero((shared == part.sum(axis=1)[:, None]) & (more > 0) & (more <= most))
        budget -= len(before)
        if budget < 0:
            return None
        blocks.append(_Block(first, last, end, before.astype(np.int32), after.astype(np.int32)))
        first = last
    return members, blocks


def _fitting(model: GraphModel, tables: PairBytes, members: Members, block: _Block) -> tuple[Numbers, Numbers, Column]:
    """Return the pairs of a block that fit SRAM and DRAM, and what they move; a kernel alone counts as fitting."""
    first, before, after = block.first, block.before, block.after
    figures = tables.figures(members[first : block.last], members[first : block.end])
    traffic, sram, *alive = (figure[before, after] for figure in figures)
    sizes = members[first : block.end].sum(axis=1)
    fits = (sizes[after] - sizes[before] == 1) | (sram <= (model.sram_capacity or np.inf))
    for live in alive:
        fits &= live <= model.dram_room
    return first + before[fits].astype(np.int64), first + after[fits].astype(np.int64), traffic[fits]


def _compute_ns(model: GraphModel, members: Members, before: Numbers, after: Numbers) -> Column:
    chip = model.machine
    if model.rules.utilization > 0:
        flop = sums_over(members, model.flop)
        return np.asarray((flop[after] - flop[before]) / (model.rules.utilization * chip.peak_gflops))
    found_tables, numbers = model.different_tables
    which = (numbers[:, None] == np.arange(len(found_tables))).astype(np.float32)
    counts = np.rint(sums_over(members, which)).astype(np.int64)
    first, inverse = _different(counts, before, after)
    counts = counts.astype(np.min_scalar_type(-1 - len(numbers)))
    compute_ns = np.empty(len(first))
    at_a_time = max(1, min(PAIRS, CELLS // max(1, counts.shape[1])))
    for start in range(0, len(first), at_a_time):
        part = first[start : start + at_a_time]
        wanted = counts[after[part]]
        wanted -= counts[before[part]]
        compute_ns[start : start + at_a_time] = model.ns_of(least_cycles(found_tables, wanted, chip.cores))
    return np.asarray(compute_ns[inverse])


def _different(counts: Numbers, before: Numbers, after: Numbers) -> tuple[Numbers, Numbers]:
    """Return one arc of each multiset of equal kernels, and which of them every arc is like."""
    radix = [int(count) + 1 for count in counts[-1]] if len(counts) else []
    place, places = 1, []
    for size in radix:
        places.append(place)
        place *= size
    if place > LARGEST_KEY:
        everything = np.arange(len(before))
        return everything, everything
    keys = counts @ np.array(places, np.int64)
    _, first, inverse = np.unique(keys[after] - keys[before], return_index=True, return_inverse=True)
    return first, inverse


class GraphProblem(FusionProblem, frozen=True):
    """Kernels of a graph: configurations are listed with their times as columns, fast where there are many of them."""

    model: GraphModel

    @cached_property
    def _listed(self) -> PairArcs | None:
        lattice = self.shape.lattice(self.options.max_down_sets)
        if lattice is None:
            return None
        return pair_arcs(self.model, tuple(lattice), self.shape.most_kernels, self.options.max_arcs, self.alone)

    def listed(self) -> PairArcs | None:
        """Return all possible configurations, or None if they are too many."""
        return self._listed

    def listed_along_orders(self) -> PairArcs:
        """Return the configurations along a few topological orders, shorter ones where those are too many."""
        lattice, most, budget = tuple(self.shape.intervals()), self.shape.most_kernels, self.options.max_arcs
        arcs = pair_arcs(self.model, lattice, most, budget, self.alone)
        while arcs is None:
            most = max(1, min(most, len(self.model.works)) // 2)
            arcs = pair_arcs(self.model, lattice, most, budget if most > 1 else len(lattice) ** 2, self.alone)
        return arcs

    def costs_of(self, arcs: PathArcs) -> PathCosts:
        """Return time and DRAM bytes of listed configurations."""
        assert isinstance(arcs, PairArcs)
        return PathCosts(arcs.time_ns, arcs.dram_bytes, self.tie_ns)

    def instead(self) -> Fusion:
        """Return what takes the place of an integer program that is too large or stopped without a solution."""
        return self.shortest_path()


class Fused(Struct, frozen=True):
    """An assignment of kernels, by id, to configurations, and its time."""

    configs: dict[int, int]
    time_ns: float
    stages: tuple[int, ...] = ()  # pipeline stage of each configuration; empty if each stage runs the whole graph


class DesignFusion:
    """Fuses models of one design: the graph is the same, weights change with the degrees."""

    def __init__(self, design: Design, options: DesignOptions) -> None:
        self._design = design
        self._options = options
        self._known: dict[tuple[float, ...], Arcs] = {}  # by the weights of all kernels
        self._fitting: dict[bytes, bool] = {}  # by what tiles are like
        self._pipelined = design.is_pipelined
        self._solver = find_solver(options.solver)
        self.is_exact = True
        self.is_complete = True
        self._lattice: DownSets | None = None
        self._singles: Arcs | None = None
        if design.is_kernel_by_kernel and not self._pipelined:
            self._singles = single_arcs(len(design.kernels))
            return
        if self._pipelined:
            self._solver.require_stages()
        if self._solver.lists:
            self._list_down_sets()
            self.is_exact = self.is_complete

    @property
    def solver(self) -> str:
        """Name of the solver, or of the one that it handed over to."""
        return self._active.name

    @property
    def _active(self) -> FusionSolver:
        """The solver, or intervals if it lists all possible configurations and these are too many."""
        return self._solver if self.is_complete or not self._solver.lists else INTERVALS

    def _list_down_sets(self) -> None:
        shape = shape_of(self._design)
        if self._solver is INTERVALS:
            self._lattice, self.is_complete = shape.intervals(), False
        else:
            self._lattice, self.is_complete = shape.considered(self._options.max_down_sets)

    def fuse(self, model: DesignModel, below_ns: float = math.inf) -> Fused | None:
        """Return the fastest assignment, or None if nothing fits SRAM, DRAM and cores.

        A pipeline whose slowest stage takes more than ``below_ns`` is of no interest: None, too.
        """
        if self._singles is not None:  # in the order of their numbers whatever the edges say [ko24]
            chain, times = self._singles.sets, arc_times(model, self._singles)
            return Fused(configs_of(model, chain), float(times.sum())) if np.isfinite(times).all() else None
        limits = MappingOptions(solver=self.solver, max_variables=sys.maxsize)
        problem = _DesignProblem(model=model, options=limits, below_ns=below_ns, fusion=self)
        if self._solver.lists:
            self.arcs(problem)  # which may change what is complete
        found = self._active.solve_stages(problem) if self._pipelined else self._active.solve(problem)
        self.is_exact = self.is_exact and found.is_optimal
        if self._pipelined and found.chain is None and not found.is_optimal:
            found = fuse_stages(model, problem.listed_along_orders(), below_ns)
        return None if found.chain is None else Fused(configs_of(model, found.chain), found.time_ns, found.stages)

    def require_search(self) -> None:
        """Check that what was not found is not there, as far as ours can tell.

        Raises:
            InfeasibleError: a plug-in found nothing, and proved nothing.
        """
        if not self.is_exact and not is_own(self._active.module):
            raise self._active.found_nothing()

    def may_fit(self, model: DesignModel) -> bool:
        """Return whether configurations may fit SRAM and cores, whatever the DRAM; if not, fewer tiles do not either.

        Every tile of a tensor and of a weight is at most as large where there are more of them.
        """
        if self._singles is not None or self._pipelined or model.pmu is not None:
            return True
        if model.tile_key not in self._fitting:
            problem = FusionProblem(model.on(replace(model.design.machine, dram_bytes=0.0)))
            arcs = self.arcs(problem)
            is_known = self.is_complete or self._solver.lists
            self._fitting[model.tile_key] = not is_known or problem.least_chain(arcs)[1] is not None
        return self._fitting[model.tile_key]

    def is_known_not_to_fit(self, model: DesignModel) -> bool:
        """Return whether it was found before that nothing fits, with other pipelines, groups or micro-batches."""
        return not self._fitting.get(model.tile_key, True)

    def least_ns(self, model: DesignModel) -> float:
        """Return a time that no assignment beats: of the slowest stage, if stages of a pipeline share a graph."""
        if not self._pipelined:
            return model.least_ns()
        if self._lattice is None or not self.is_exact:
            return model.least_ns() / model.degrees.pipeline
        return least_stage_ns(model, members_of(tuple(self._lattice), len(model.shares)))

    def arcs(self, problem: FusionProblem) -> Arcs:
        """Return all possible configurations or, if they are too many, those along a few topological orders."""
        held = tuple(problem.model.growth_limit[0].tolist())
        if held not in self._known:
            if self._lattice is None:
                self._list_down_sets()
            assert self._lattice is not None
            arcs = arcs_within(problem.shape, self._lattice, problem.may_grow, self._options.max_arcs)
            if arcs is None:
                self._lattice, self.is_complete = problem.shape.intervals(), False
                self.is_exact = self.is_exact and not self._solver.lists
                arcs = arcs_of(problem.shape, self._lattice, problem.may_grow)
            self._known[held] = arcs
        return self._known[held]


class _DesignProblem(StageProblem, frozen=True, kw_only=True):
    """Kernels of a design, whose possible configurations are listed once for many models."""

    fusion: DesignFusion

    def listed(self) -> Arcs | None:
        """Return all possible configurations, or None if they are too many."""
        arcs = self.fusion.arcs(self)
        return arcs if self.fusion.is_complete else None

    def listed_along_orders(self) -> Arcs:
        """Return the possible configurations along a few topological orders."""
        if not self.fusion.is_complete:
            return self.fusion.arcs(self)
        return arcs_of(self.shape, self.shape.intervals(), self.may_grow)
