"""The built-in solvers with integer programs: the arc-flow model and the assignment, by CBC and by HiGHS."""

import numpy as np
import numpy.typing as npt

from dfcompile.dfmodel_backend.columns import Column, members_of
from dfcompile.dfmodel_backend.fusion.fusion_problem import Fusion, FusionProblem, StageProblem, Stages
from dfcompile.dfmodel_backend.fusion.fusion_solver import FusionSolver
from dfcompile.dfmodel_backend.fusion.pipelines.partition import fuse_stages_by_arc_flow, staged
from dfcompile.dfmodel_backend.fusion.solvers.arc_flow import fuse_by_arc_flow
from dfcompile.dfmodel_backend.fusion.solvers.assignment import fuse_by_assignment
from dfcompile.dfmodel_backend.fusion.solvers.path import Chain
from dfcompile.dfmodel_backend.kernel_sets import PathArcs
from dfcompile.dfmodel_backend.milp import MilpOptions, MilpSolver, Outcome
from dfcompile.records import replace

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

    def fuse_stages(problem: StageProblem) -> Stages:
        options = MilpOptions(program, problem.time_limit_s)
        return Stages(*fuse_stages_by_arc_flow(problem.model, problem.arcs(), options))

    summary = "the shortest path over down-sets as an integer program"
    solver = FusionSolver(name, is_exact=True, source="own", summary=summary, module=__name__, run=run, lists=True)
    return replace(solver, fuse_stages=fuse_stages, program=program)


def _assignment(name: str, program: MilpSolver) -> FusionSolver:
    def run(problem: FusionProblem) -> Fusion:
        shape = problem.shape
        if not problem.may_solve(len(shape.predecessors) * len(shape.allowed)):
            return problem.instead()
        chain, outcome = fuse_by_assignment(problem, _milp_options(problem, program), settles_ties=shape.stages == 1)
        return _found(problem, chain, outcome, name)

    def fuse_stages(problem: StageProblem) -> Stages:
        sets, options = problem.problem, MilpOptions(program, problem.time_limit_s)
        chain, outcome = fuse_by_assignment(sets, options, settles_ties=False)
        if chain is None:
            return Stages(None, outcome)
        used = [slot for slot, kernels in enumerate(chain) if kernels]
        times, stages = sets.set_times(chain).tolist(), [slot * sets.shape.stages // len(chain) for slot in used]
        return Stages(staged(problem.model, [chain[k] for k in used], [times[k] for k in used], stages), outcome)

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


def _promising(problem: FusionProblem, arcs: PathArcs, times: Column) -> npt.NDArray[np.bool_]:
    """Return which arcs may be part of a chain that beats the best one along a few topological orders."""
    finite: npt.NDArray[np.bool_] = np.isfinite(times)
    incumbent = problem.along_orders()
    if incumbent.chain is None:
        return finite
    parts, overlap = problem.model.least_parts, problem.model.rules.overlap
    before = members_of(arcs.down_sets, len(parts)).astype(float) @ parts
    rest = before[-1] - before
    least = overlap.times_ns(*before.T)[arcs.before] + times + overlap.times_ns(*rest.T)[arcs.after]
    promising: npt.NDArray[np.bool_] = finite & (least * (1 - ROUNDING) <= incumbent.time_ns)
    return promising


INTEGER_PROGRAMS = (
    _arc_flow("cbc", MilpSolver.CBC),
    _arc_flow("highs", MilpSolver.HIGHS),
    _assignment("assignment-cbc", MilpSolver.CBC),
    _assignment("assignment-highs", MilpSolver.HIGHS),
)
