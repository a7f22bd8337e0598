"""The one place that calls MILP solvers, through PuLP."""

from __future__ import annotations

from enum import Enum, StrEnum, unique
from typing import TYPE_CHECKING, assert_never

from msgspec import Struct

from dfcompile.errors import UserError
from dfcompile.host.private_folder import ending_with_us, private_folder

if TYPE_CHECKING:
    import pulp

FEASIBLE_IN_HIGHS = 2  # kSolutionStatusFeasible
LIMITS_OF_HIGHS = ("kTimeLimit", "kIterationLimit", "kSolutionLimit", "kInterrupt")


@unique
class Outcome(Enum):
    """How a solve ended."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"  # the node limit was reached, with a solution
    INFEASIBLE = "infeasible"
    NOTHING = "nothing"  # the node limit was reached, without a solution


@unique
class MilpSolver(StrEnum):
    """Solvers of mixed-integer linear programs (MILPs)."""

    CBC = "cbc"
    HIGHS = "highs"


class MilpOptions(Struct, frozen=True):
    """Which solver to use, and when it stops.

    Attributes:
        solver: by name.
        max_nodes: of the search tree; then the best solution counts, with its gap. There is no time limit.
    """

    solver: MilpSolver = MilpSolver.CBC
    max_nodes: int = 20_000


def solve(problem: pulp.LpProblem, options: MilpOptions) -> Outcome:
    """Solve a problem in place, on one thread so that the result is always the same.

    Raises:
        UserError: the solver is not installed, or ended without an answer.
    """
    import pulp

    solver = _solver(options)
    if not solver.available():
        raise UserError(f"solver {options.solver.value!r}: not installed (pip install 'dfcompile[highs]')")
    try:
        with private_folder() as folder, ending_with_us():
            solver.tmpDir = str(folder)  # CBC reads and writes files
            problem.solve(solver)
    except KeyError:
        # PuLP does not know HiGHS's status for the node limit; it has copied the values before it looks the status up.
        has_values = problem.solverModel.getInfo().primal_solution_status == FEASIBLE_IN_HIGHS
        return Outcome.FEASIBLE if has_values else Outcome.NOTHING
    outcomes = {
        pulp.LpSolutionOptimal: Outcome.OPTIMAL,
        pulp.LpSolutionIntegerFeasible: Outcome.FEASIBLE,
        pulp.LpSolutionInfeasible: Outcome.INFEASIBLE,
        pulp.LpSolutionNoSolutionFound: Outcome.NOTHING,
    }
    outcome = outcomes.get(problem.sol_status)
    if problem.status == pulp.LpStatusInfeasible:  # PuLP calls CBC's "Integer infeasible" no solution found
        outcome = Outcome.INFEASIBLE
    met_a_limit = problem.status == pulp.LpStatusNotSolved and (
        options.solver is not MilpSolver.HIGHS or problem.solverModel.getModelStatus().name in LIMITS_OF_HIGHS
    )
    if outcome is None or (outcome is Outcome.NOTHING and not met_a_limit):
        raise UserError(
            f"solver {options.solver.value!r}: ended without an answer, status {pulp.LpStatus[problem.status]!r}: "
            "numerical trouble (--solver dp has none)"
        )
    return outcome


def _solver(options: MilpOptions) -> pulp.LpSolver:
    import pulp

    match options.solver:
        case MilpSolver.HIGHS:
            # A process may set the thread count of HiGHS only once, so it is 1 everywhere.
            return pulp.HiGHS(msg=False, threads=1, gapRel=0.0, mip_max_nodes=options.max_nodes)
        case MilpSolver.CBC:
            # The CBC that comes with PuLP, whatever else is on the path: one version, one result. Without the argument
            # ``threads`` there is one; with it, even 1, CBC starts workers, which once in some hundred runs wait 10 s
            # before they end.
            path = pulp.PULP_CBC_CMD.pulp_cbc_path
            return pulp.COIN_CMD(path=path, msg=False, gapRel=0.0, maxNodes=options.max_nodes)
    assert_never(options.solver)


def is_one(variable: pulp.LpVariable) -> bool:
    """Return whether a 0/1 variable of a solved problem is 1."""
    return (variable.value() or 0.0) > 0.5
