"""The built-in solvers: shortest paths over all down-sets, or over those of a few orders, and integer programs.

Those are the arc-flow model and the assignment, by CBC and by HiGHS. Arc flow: one unit of flow through the down-sets,
configuration by configuration, solved as a MILP: exact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dfcompile.dfmodel_backend.columns import Column, Mask, members_of
from dfcompile.dfmodel_backend.fusion.fusion_problem import (
    ALONG_ORDERS,
    SHORTEST_PATH,
    Fusion,
    FusionProblem,
    StageProblem,
)
from dfcompile.dfmodel_backend.fusion.fusion_solver import FusionSolver
from dfcompile.dfmodel_backend.fusion.pipelines import StageFlow, fuse_stages, staged
from dfcompile.dfmodel_backend.fusion.solvers.assignment import Assignment
from dfcompile.dfmodel_backend.fusion.solvers.milp_ties import LARGEST, ChainProgram, settle_ties
from dfcompile.dfmodel_backend.fusion.solvers.path import Chain, PathCosts, Ranking
from dfcompile.dfmodel_backend.kernel_sets import FusionShape, PathArcs
from dfcompile.dfmodel_backend.milp import MilpOptions, MilpSolver, Outcome, is_one, solve
from dfcompile.records import replace

if TYPE_CHECKING:
    import pulp

DP = FusionSolver(
    name=SHORTEST_PATH,
    is_exact=True,
    source="own",
    summary="shortest path over down-sets",
    module=__name__,
    run=FusionProblem.shortest_path,
    fuse_stages=lambda problem: fuse_stages(problem.model, problem.arcs(), problem.below_ns),
    lists=True,
)
INTERVALS = replace(
    DP,
    name=ALONG_ORDERS,
    is_exact=False,
    summary="the best cut of good topological orders, with a bound",
    run=FusionProblem.along_orders,
)


Node = tuple[int, int]  # configurations so far, number of the down-set
Flow = dict[tuple[int, int], "pulp.LpVariable"]  # by configuration and arc; arc -1 - state: an empty configuration
Balance = dict[Node, list[tuple["pulp.LpVariable", int]]]


def fuse_by_arc_flow(
    arcs: PathArcs,
    costs: PathCosts,
    usable: Mask,
    shape: FusionShape,
    options: MilpOptions,
    ranking: Ranking,
) -> tuple[Chain | None, Outcome]:
    """Return the fastest chain, if one was found, and how the solve ended; ties are those of `least_chain`.

    One 0/1 variable per configuration and slot that it may take, flow conserved at each down-set after each slot: a
    network's matrix, so that the linear relaxation is integral. Where there is a configuration for each kernel, slots
    need not be told apart.

    Args:
        arcs: possible configurations.
        costs: of each arc, times in ns.
        usable: which arcs to consider.
        shape: how many configurations there are, and which kernels may be in which.
        options: solver and its limits.
        ranking: of chains.

    Raises:
        UserError: the solver is not installed, or ended without an answer.
    """
    import pulp

    scale = float(costs.time[usable].max(initial=0.0)) or 1.0
    problem = pulp.LpProblem("fusion_arc_flow", pulp.LpMinimize)
    found, end = _arcs_of_slots(arcs, usable, shape)
    flow, balance = _flow(problem, found, end)
    start: Node = (0, 0)
    if start not in balance or end not in balance:
        return None, Outcome.INFEASIBLE
    taken = {place: variable for place, variable in flow.items() if place[1] >= 0}
    time = pulp.LpAffineExpression([(variable, costs.time[arc] / scale) for (_, arc), variable in taken.items()])
    problem.setObjective(time * LARGEST)
    for number, (node, around) in enumerate(balance.items()):
        supply = 1 if node == start else -1 if node == end else 0
        problem.addConstraint(pulp.LpAffineExpression(around) == supply, f"balance_{number}")
    outcome = solve(problem, options)
    if outcome not in (Outcome.OPTIMAL, Outcome.FEASIBLE):
        return None, outcome

    def chain() -> Chain:
        return _chain(arcs, taken, shape)

    def without(_: Chain) -> pulp.LpConstraint:
        used = [variable for variable in taken.values() if is_one(variable)]
        return pulp.lpSum(used) <= len(used) - 1

    if outcome is Outcome.FEASIBLE:
        return chain(), outcome
    program = ChainProgram(
        problem,
        time=(time, scale),
        dram_bytes=pulp.LpAffineExpression([(variable, costs.dram_bytes[arc]) for (_, arc), variable in taken.items()]),
        configurations=pulp.LpAffineExpression([(variable, 1) for variable in taken.values()]),
        chain=chain,
        without=without,
        ranking=ranking,
    )
    return settle_ties(program, options), outcome


def _chain(arcs: PathArcs, taken: Flow, shape: FusionShape) -> Chain:
    chosen = sorted(place for place, variable in taken.items() if is_one(variable))
    if shape.is_unlimited:
        return tuple(arcs.mask(arc) for _, arc in chosen)
    chain = [0] * len(shape.allowed)
    for slot, arc in chosen:
        chain[slot] = arcs.mask(arc)
    return tuple(chain)


Found = list[tuple[int, int, Node, Node]]  # configuration, arc, from where to where


def _arcs_of_slots(arcs: PathArcs, usable: Mask, shape: FusionShape) -> tuple[Found, Node]:
    """Return the arcs that can be reached from the start, per configuration where these differ, and the end."""
    numbers = np.flatnonzero(usable).tolist()
    if shape.is_unlimited:
        found = [(0, arc, (0, int(arcs.before[arc])), (0, int(arcs.after[arc]))) for arc in numbers]
        return found, (0, len(arcs.down_sets) - 1)
    found = []
    reached = {0}
    for slot, mask in enumerate(shape.allowed):
        following = dict.fromkeys(sorted(reached))
        found += [(slot, -1 - state, (slot, state), (slot + 1, state)) for state in sorted(reached)]
        for arc in numbers:
            before, after = int(arcs.before[arc]), int(arcs.after[arc])
            if before in reached and arcs.mask(arc) & ~mask == 0:
                found.append((slot, arc, (slot, before), (slot + 1, after)))
                following[after] = None
        reached = set(following)
    return found, (len(shape.allowed), len(arcs.down_sets) - 1)


def _flow(problem: pulp.LpProblem, found: Found, end: Node) -> tuple[Flow, Balance]:
    """Add a variable per arc from which the end can be reached."""
    useful = {end}
    flow: Flow = {}
    balance: Balance = {}
    for slot, arc, before, after in reversed(found):
        if after in useful:
            useful.add(before)
            variable = problem.add_variable(f"arc_{slot}_{len(flow)}", cat="Binary")
            flow[slot, arc] = variable
            balance.setdefault(before, []).append((variable, 1))
            balance.setdefault(after, []).append((variable, -1))
    return flow, balance


ROUNDING = 1e-9  # relative: sums in another order


def _arc_flow(name: str, program: MilpSolver) -> FusionSolver:
    def run(problem: FusionProblem) -> Fusion:
        arcs = problem.listed()
        if arcs is None:
            return problem.along_orders()
        shape, costs = problem.shape, problem.costs_of(arcs)
        usable = _promising(problem, arcs, costs.time)
        slots = 1 if shape.is_unlimited else len(shape.allowed)
        if not problem.may_solve(int(usable.sum()) * slots):
            return problem.instead()
        chain, outcome = fuse_by_arc_flow(arcs, costs, usable, shape, _milp_options(problem, program), problem)
        return _found(problem, chain, outcome, name)

    def fuse_stages(problem: StageProblem) -> Fusion:
        return StageFlow(problem.model, problem.arcs()).solve(_milp_options(problem, program), name)

    summary = "the shortest path over down-sets as an integer program"
    solver = FusionSolver(name, is_exact=True, source="own", summary=summary, module=__name__, run=run, lists=True)
    return replace(solver, fuse_stages=fuse_stages, program=program)


def _assignment(name: str, program: MilpSolver) -> FusionSolver:
    def run(problem: FusionProblem) -> Fusion:
        shape = problem.shape
        if not problem.may_solve(len(shape.predecessors) * len(shape.allowed)):
            return problem.instead()
        chain, outcome = Assignment(problem).finish(_milp_options(problem, program), settles_ties=shape.stages == 1)
        return _found(problem, chain, outcome, name)

    def fuse_stages(problem: StageProblem) -> Fusion:
        chain, outcome = Assignment(problem).finish(_milp_options(problem, program), settles_ties=False)
        found = Fusion(None, np.inf, outcome in (Outcome.OPTIMAL, Outcome.INFEASIBLE), name)
        if chain is None:
            return found
        stages = [slot * problem.shape.stages // len(chain) for slot, kernels in enumerate(chain) if kernels]
        used = tuple(kernels for kernels in chain if kernels)
        return staged(problem.model, used, problem.set_times(used).tolist(), stages, found)

    summary = "kernels to configurations as an integer program"
    solver = FusionSolver(name, is_exact=True, source="own", summary=summary, module=__name__, run=run)
    return replace(solver, fuse_stages=fuse_stages, counts_memory_units=False, program=program)


def _milp_options(problem: FusionProblem, program: MilpSolver) -> MilpOptions:
    return MilpOptions(program, problem.options.time_limit_s, problem.options.max_nodes)


def _found(problem: FusionProblem, chain: Chain | None, outcome: Outcome, name: str) -> Fusion:
    if outcome is Outcome.NOTHING:
        return problem.instead()
    time_ns = np.inf if chain is None else float(problem.set_times(chain).sum())
    return Fusion(chain, time_ns, outcome is not Outcome.FEASIBLE, name)


def _promising(problem: FusionProblem, arcs: PathArcs, times: Column) -> Mask:
    """Return which arcs may be part of a chain that beats the best one along a few topological orders."""
    finite: Mask = np.isfinite(times)
    incumbent = problem.along_orders()
    if incumbent.chain is None:
        return finite
    parts, overlap = problem.model.least_parts, problem.model.rules.overlap
    before = members_of(arcs.down_sets, len(parts)).astype(float) @ parts
    rest = before[-1] - before
    least = overlap.times_ns(*before.T)[arcs.before] + times + overlap.times_ns(*rest.T)[arcs.after]
    return np.asarray(finite & (least * (1 - ROUNDING) <= incumbent.time_ns))


INTEGER_PROGRAMS = (
    _arc_flow("cbc", MilpSolver.CBC),
    _arc_flow("highs", MilpSolver.HIGHS),
    _assignment("assignment-cbc", MilpSolver.CBC),
    _assignment("assignment-highs", MilpSolver.HIGHS),
)
