"""Fusion of a graph's kernels into configurations by the solver that was asked for, within its budget."""

import numpy as np
import numpy.typing as npt

from dfcompile.dfmodel_backend.fusion.fuse import ARC_FLOW, ASSIGNMENT, ROUNDING, Fusion, lattice_for
from dfcompile.dfmodel_backend.fusion.graphs.arcs import GraphArcs, graph_arcs
from dfcompile.dfmodel_backend.fusion.graphs.sets import GraphSets
from dfcompile.dfmodel_backend.fusion.solvers.arc_flow import fuse_by_arc_flow
from dfcompile.dfmodel_backend.fusion.solvers.assignment import fuse_by_assignment
from dfcompile.dfmodel_backend.fusion.solvers.path import Chain, PathCosts, least_chain
from dfcompile.dfmodel_backend.kernel_sets.arcs import members_of
from dfcompile.dfmodel_backend.milp import Outcome
from dfcompile.dfmodel_backend.options import MappingOptions, Solver


def fuse_graph(sets: GraphSets, options: MappingOptions) -> Fusion:
    """Return the fastest chain of configurations, or none if nothing fits SRAM, DRAM and cores.

    Of equally fast ones it is that with the fewest DRAM bytes, then with the fewest configurations. Budgets count work,
    never time. If the down-sets or pairs of them are too many, the chain is the best along a few topological orders; if
    an integer program is too large, or stops at its limit of nodes or time without a solution, the shortest path is
    taken instead.

    Raises:
        InternalError: the solver failed.
    """
    shape, solver = sets.shape, options.solver
    if solver in ASSIGNMENT and len(shape.predecessors) * len(shape.allowed) <= options.max_variables:
        chain, outcome = fuse_by_assignment(sets.terms(), shape, sets.overlap, sets.counted, options, sets)
        if outcome is not Outcome.NOTHING:
            return _found(sets, chain, outcome, solver)
    lattice, solver = lattice_for(shape, solver, options.max_down_sets)
    if solver is not Solver.INTERVALS:
        arcs = graph_arcs(sets.model, tuple(lattice), shape.most_kernels, options.max_arcs)
        if arcs is not None:
            return _along(sets, arcs, options)
    return _along_orders(sets, options)


def _along(sets: GraphSets, arcs: GraphArcs, options: MappingOptions) -> Fusion:
    """Return the best chain of all that there are."""
    solver = options.solver
    if solver in ARC_FLOW:
        usable = _promising(sets, arcs, options)
        slots = 1 if sets.shape.is_unlimited else len(sets.shape.allowed)
        if int(usable.sum()) * slots <= options.max_variables:
            costs = PathCosts(arcs.time_ns, arcs.dram_bytes)
            chain, outcome = fuse_by_arc_flow(arcs, costs, usable, sets.shape, options, sets)
            if outcome is not Outcome.NOTHING:
                return _found(sets, chain, outcome, solver)
    time_ns, chain = _shortest(sets, arcs)
    return Fusion(chain, time_ns, is_optimal=True, solver=Solver.DP)


def _along_orders(sets: GraphSets, options: MappingOptions) -> Fusion:
    """Return the best chain along a few topological orders, of shorter configurations where those are too many."""
    time_ns, chain = _shortest(sets, _order_arcs(sets, options.max_arcs))
    return Fusion(chain, time_ns, is_optimal=False, solver=Solver.INTERVALS)


def _order_arcs(sets: GraphSets, budget: int) -> GraphArcs:
    lattice = tuple(sets.shape.intervals())
    most = sets.shape.most_kernels
    arcs = graph_arcs(sets.model, lattice, most, budget)
    while arcs is None:
        most = max(1, min(most, len(sets.shape.predecessors)) // 2)
        arcs = graph_arcs(sets.model, lattice, most, budget if most > 1 else len(lattice) ** 2)
    return arcs


def _shortest(sets: GraphSets, arcs: GraphArcs) -> tuple[float, Chain | None]:
    return least_chain(arcs, PathCosts(arcs.time_ns, arcs.dram_bytes, sets.tie_ns), sets.shape)


def _found(sets: GraphSets, chain: Chain | None, outcome: Outcome, solver: Solver) -> Fusion:
    time_ns = np.inf if chain is None else float(sets.set_times(chain).sum())
    return Fusion(chain, time_ns, outcome is not Outcome.FEASIBLE, solver)


def _promising(sets: GraphSets, arcs: GraphArcs, options: MappingOptions) -> npt.NDArray[np.bool_]:
    """Return which arcs may be part of a chain that beats the best one along a few topological orders."""
    incumbent_ns, chain = _shortest(sets, _order_arcs(sets, options.max_arcs))
    if chain is None:
        return np.ones(len(arcs.before), bool)
    parts = sets.least_parts
    before = members_of(arcs.down_sets, len(parts)).astype(float) @ parts
    rest = before[-1] - before
    started = sets.overlap.times_ns(before[:, 0], before[:, 1], before[:, 2])
    left = sets.overlap.times_ns(rest[:, 0], rest[:, 1], rest[:, 2])
    least = started[arcs.before] + arcs.time_ns + left[arcs.after]
    return np.asarray(least * (1 - ROUNDING) <= incumbent_ns)
