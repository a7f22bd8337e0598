"""The built-in solvers without a program: the shortest path over all down-sets, or over those of a few orders."""

from dfcompile.dfmodel_backend.fusion.fusion_problem import Fusion, FusionProblem
from dfcompile.dfmodel_backend.fusion.fusion_solver import FusionSolver
from dfcompile.dfmodel_backend.fusion.pipelines.partition import fuse_stages
from dfcompile.dfmodel_backend.fusion.pipelines.stage_problem import StageProblem, Stages
from dfcompile.dfmodel_backend.milp import Outcome


def shortest_path(problem: FusionProblem) -> Fusion:
    """Return the best chain of all; of too many configurations the best along a few orders."""
    arcs = problem.listed()
    if arcs is None:
        return along_orders(problem)
    time_ns, chain = problem.least_chain(arcs)
    return Fusion(chain, time_ns, is_optimal=True, solver=DP.name)


def along_orders(problem: FusionProblem) -> Fusion:
    """Return the best chain along a few topological orders."""
    time_ns, chain = problem.least_chain(problem.listed_along_orders())
    return Fusion(chain, time_ns, is_optimal=False, solver=INTERVALS.name)


def _stages(problem: StageProblem) -> Stages:
    return Stages(fuse_stages(problem.model, problem.arcs(), problem.below_ns), Outcome.OPTIMAL)


DP = FusionSolver(
    name="dp",
    is_exact=True,
    source="own",
    summary="shortest path over down-sets",
    module=__name__,
    run=shortest_path,
    fuse_stages=_stages,
    lists=True,
)
INTERVALS = FusionSolver(
    name="intervals",
    is_exact=False,
    source="own",
    summary="the best cut of good topological orders, with a bound",
    module=__name__,
    run=along_orders,
    fuse_stages=_stages,
    lists=True,
)
