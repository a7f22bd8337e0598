"""Fusion of kernels into configurations by the solver that was asked for; one for everything that is mapped."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from dfcompile.dfmodel_backend.columns import Column
from dfcompile.dfmodel_backend.fusion.solvers.arc_flow import fuse_by_arc_flow
from dfcompile.dfmodel_backend.fusion.solvers.assignment import fuse_by_assignment
from dfcompile.dfmodel_backend.fusion.solvers.path import Chain, PathCosts, Rank
from dfcompile.dfmodel_backend.fusion.terms import FusionTerms
from dfcompile.dfmodel_backend.kernel_sets.arcs import Arcs, arcs_of, members_of
from dfcompile.dfmodel_backend.kernel_sets.down_sets import DownSets
from dfcompile.dfmodel_backend.kernel_sets.shape import FusionShape
from dfcompile.dfmodel_backend.milp import Outcome
from dfcompile.dfmodel_backend.options import MappingOptions, Overlap, Solver

ROUNDING = 1e-9  # relative: sums in another order

ARC_FLOW = (Solver.CBC, Solver.HIGHS)
ASSIGNMENT = (Solver.ASSIGNMENT_CBC, Solver.ASSIGNMENT_HIGHS)


class SetCosts(Protocol):
    """Costs and limits of sets of kernels on a chip: all that a solver knows of a model."""

    @property
    def shape(self) -> FusionShape:
        """Precedence, and which kernels each configuration may hold."""

    @property
    def overlap(self) -> Overlap:
        """What runs at the same time in a configuration."""

    @property
    def counted(self) -> str:
        """Which of compute, memory and network count: letters of ``CMN``."""

    @property
    def least_parts(self) -> npt.NDArray[np.float64]:
        """Unavoidable compute, DRAM and network time ``[kernel, 3]``; each adds up over any set of kernels."""

    def may_grow(self, kernels: int) -> bool:
        """Return whether sets that hold these kernels may be possible."""

    def set_times(self, sets: tuple[int, ...]) -> Column:
        """Return the time of each set of kernels, infinite if it breaks a limit of cores or SRAM."""

    def arc_times(self, arcs: Arcs) -> Column:
        """Return the time of each arc, infinite if it breaks a limit of cores, SRAM or DRAM."""

    def arc_costs(self, arcs: Arcs) -> PathCosts:
        """Return time and DRAM bytes of each arc."""

    @property
    def tie_ns(self) -> float:
        """Times that differ by no more are the same."""

    @property
    def ns_per_byte(self) -> float:
        """Time of a byte of DRAM traffic."""

    def rank(self, chain: Chain) -> Rank:
        """Return what tells a chain from others that are as fast."""

    def least_chain(self, arcs: Arcs) -> tuple[float, Chain | None]:
        """Return the least time of a chain of all kernels, and the chain, or None if there is none."""

    def terms(self) -> FusionTerms:
        """Return figures kernel by kernel."""


@dataclass(frozen=True, slots=True)
class Fusion:
    """What a solver found.

    Attributes:
        chain: set of kernels of each configuration, 0 where it is empty; None if no chain was found.
        time_ns: of all; infinite without a chain.
        is_optimal: whether it is proved that no other chain is faster; without a chain that there is none.
        solver: that found it.
    """

    chain: Chain | None
    time_ns: float
    is_optimal: bool
    solver: Solver


def lattice_for(shape: FusionShape, solver: Solver, most: int) -> tuple[DownSets, Solver]:
    """Return the down-sets to consider, and the solver: intervals if that was asked for or all of them are too many."""
    lattice = None if solver is Solver.INTERVALS else shape.lattice(most)
    return (lattice, solver) if lattice is not None else (shape.intervals(), Solver.INTERVALS)


def fuse(costs: SetCosts, options: MappingOptions) -> Fusion:
    """Return the fastest chain of configurations, or none if nothing fits SRAM, DRAM and cores.

    If the down-sets are too many, or an integer program meets its time limit without a solution, the chain is the
    best along a few topological orders.

    Raises:
        InternalError: the solver failed.
    """
    shape, solver = costs.shape, options.solver
    if solver in ASSIGNMENT:
        return fuse_listed(costs, None, options)
    lattice, solver = lattice_for(shape, solver, options.max_down_sets)
    arcs = arcs_of(shape, lattice, costs.may_grow)
    return fuse_listed(costs, arcs, options, is_complete=solver is not Solver.INTERVALS)


def fuse_listed(costs: SetCosts, arcs: Arcs | None, options: MappingOptions, *, is_complete: bool = True) -> Fusion:
    """Return the fastest chain of listed configurations.

    Args:
        costs: of sets of kernels.
        arcs: possible configurations; the assignment needs none.
        options: which solver.
        is_complete: whether these are all possible configurations; if not, the shortest path is as good as any.

    Raises:
        InternalError: the solver failed.
    """
    solver = options.solver
    if arcs is None:
        ranking = costs if costs.shape.stages == 1 else None  # of a pipeline the slowest stage counts, not the sum
        chain, outcome = fuse_by_assignment(costs.terms(), costs.shape, costs.overlap, costs.counted, options, ranking)
    elif solver in ARC_FLOW and is_complete:
        figures = costs.arc_costs(arcs)
        usable = _promising(costs, arcs, figures.time)
        chain, outcome = fuse_by_arc_flow(arcs, figures, usable, costs.shape, options, costs)
    else:
        return _shortest(costs, arcs, is_complete=is_complete)
    if outcome is Outcome.NOTHING:
        return _shortest(costs, _intervals(costs), is_complete=False)
    time_ns = np.inf if chain is None else float(costs.set_times(chain).sum())
    return Fusion(chain, time_ns, outcome is not Outcome.FEASIBLE, solver)


def _shortest(costs: SetCosts, arcs: Arcs, *, is_complete: bool) -> Fusion:
    time_ns, chain = costs.least_chain(arcs)
    return Fusion(chain, time_ns, is_complete, Solver.DP if is_complete else Solver.INTERVALS)


def _intervals(costs: SetCosts) -> Arcs:
    return arcs_of(costs.shape, costs.shape.intervals(), costs.may_grow)


def _promising(costs: SetCosts, arcs: Arcs, times: Column) -> npt.NDArray[np.bool_]:
    """Return which arcs may be part of a chain that beats the best one along a few topological orders."""
    finite: npt.NDArray[np.bool_] = np.isfinite(times)
    incumbent = _shortest(costs, _intervals(costs), is_complete=False)
    if incumbent.chain is None:
        return finite
    parts = costs.least_parts
    before = members_of(arcs.down_sets, len(parts)).astype(float) @ parts
    rest = before[-1] - before
    started = costs.overlap.times_ns(before[:, 0], before[:, 1], before[:, 2])
    left = costs.overlap.times_ns(rest[:, 0], rest[:, 1], rest[:, 2])
    least = started[arcs.before] + times + left[arcs.after]
    promising: npt.NDArray[np.bool_] = finite & (least * (1 - ROUNDING) <= incumbent.time_ns)
    return promising
