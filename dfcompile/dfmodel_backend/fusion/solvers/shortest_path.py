"""The built-in solvers without a program: the shortest path over all down-sets, or over those of a few orders."""

from dfcompile.dfmodel_backend.fusion import fusion_problem
from dfcompile.dfmodel_backend.fusion.fusion_problem import FusionProblem
from dfcompile.dfmodel_backend.fusion.fusion_solver import FusionSolver
from dfcompile.dfmodel_backend.fusion.pipelines import fuse_stages
from dfcompile.records import replace

DP = FusionSolver(
    name=fusion_problem.SHORTEST_PATH,
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
    name=fusion_problem.ALONG_ORDERS,
    is_exact=False,
    summary="the best cut of good topological orders, with a bound",
    run=FusionProblem.along_orders,
)
