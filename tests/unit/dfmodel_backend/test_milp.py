"""How solves of integer programs end: no solution, no time and no answer are different things."""

import pulp
import pytest

from dfcompile.dfmodel_backend.milp import MilpOptions, MilpSolver, Outcome, solve
from dfcompile.errors import UserError


def parity(variables: int) -> pulp.LpProblem:
    """Return a program that is feasible with parts of variables alone: twice their sum is odd."""
    problem = pulp.LpProblem("parity", pulp.LpMinimize)
    terms = [problem.add_variable(f"x{number}", cat="Binary") for number in range(variables)]
    problem.setObjective(pulp.lpSum(terms))
    problem += pulp.lpSum(2 * term for term in terms) == variables + (variables + 1) % 2
    return problem


@pytest.mark.parametrize("solver", MilpSolver)
@pytest.mark.parametrize("variables", [1, 2, 5])
def test_no_integer_solution_is_proved(solver: MilpSolver, variables: int) -> None:
    """CBC calls it "Integer infeasible", which was taken for an end of its nodes."""
    assert solve(parity(variables), MilpOptions(solver)) is Outcome.INFEASIBLE


@pytest.mark.parametrize("solver", MilpSolver)
def test_no_solution_of_the_relaxation_is_proved(solver: MilpSolver) -> None:
    problem = pulp.LpProblem("empty", pulp.LpMinimize)
    variable = problem.add_variable("x", 0, 1)
    problem.setObjective(variable)
    problem += variable >= 2

    assert solve(problem, MilpOptions(solver)) is Outcome.INFEASIBLE


@pytest.mark.parametrize("solver", MilpSolver)
def test_a_limit_of_nodes_proves_nothing(solver: MilpSolver) -> None:
    assert solve(parity(61), MilpOptions(solver, max_nodes=1)) in (Outcome.NOTHING, Outcome.INFEASIBLE)


@pytest.mark.parametrize("solver", MilpSolver)
def test_an_end_without_an_answer_is_told(solver: MilpSolver) -> None:
    problem = pulp.LpProblem("unbounded", pulp.LpMinimize)
    variable = problem.add_variable("x")
    problem.setObjective(variable)
    problem += variable <= 3

    with pytest.raises(UserError, match=f"solver '{solver.value}': ended without an answer, status .*numerical"):
        solve(problem, MilpOptions(solver))
