"""The built-in solvers: shortest paths over all down-sets, or over those of a few orders, and integer programs.

Those are arc flows, by CBC and by HiGHS.
"""

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
from dfcompile.dfmodel_backend.fusion.pipelines import fuse_stages
from dfcompile.dfmodel_backend.fusion.solvers.arc_flow import fuse_by_arc_flow, stages_by_arc_flow
from dfcompile.dfmodel_backend.kernel_sets import PathArcs
from dfcompile.dfmodel_backend.milp import MilpOptions, MilpSolver, Outcome
from dfcompile.records import replace

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


ROUNDING = 1e-9  # relative: sums in another order


def _arc_flow(name: str, program: MilpSolver) -> FusionSolver:
    def options_of(problem: FusionProblem) -> MilpOptions:
        return MilpOptions(program, problem.options.max_nodes)

    def run(problem: FusionProblem) -> Fusion:
        arcs = problem.listed()
        if arcs is None:
            return problem.along_orders()
        shape, costs = problem.shape, problem.costs_of(arcs)
        usable = _promising(problem, arcs, costs.time)
        slots = 1 if shape.is_unlimited else len(shape.allowed)
        if not problem.may_solve(int(usable.sum()) * slots):
            return problem.instead()
        chain, outcome = fuse_by_arc_flow(arcs, costs, usable, shape, options_of(problem), problem)
        if outcome is Outcome.NOTHING:
            return problem.instead()
        time_ns = np.inf if chain is None else float(problem.set_times(chain).sum())
        return Fusion(chain, time_ns, outcome is not Outcome.FEASIBLE, name)

    def fuse_stages(problem: StageProblem) -> Fusion:
        return stages_by_arc_flow(problem.model, problem.arcs(), options_of(problem), name)

    summary = "the shortest path over down-sets as an integer program"
    return FusionSolver(
        name,
        is_exact=True,
        source="own",
        summary=summary,
        module=__name__,
        run=run,
        fuse_stages=fuse_stages,
        lists=True,
    )


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


INTEGER_PROGRAMS = (_arc_flow("cbc", MilpSolver.CBC), _arc_flow("highs", MilpSolver.HIGHS))
