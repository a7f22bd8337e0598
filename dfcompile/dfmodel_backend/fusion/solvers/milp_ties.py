"""Among the fastest chains of an integer program, the one that every solver reports."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from dfcompile.dfmodel_backend.fusion.solvers.path import Chain, Ranking, is_better
from dfcompile.dfmodel_backend.milp import MilpOptions, Outcome, solve

if TYPE_CHECKING:
    import pulp

# Relative: what is fixed must stay possible, by more than a solver's tolerance, within which CBC's preprocessing takes
# some solutions for impossible. Chains that are worse by less than this are cut off by their exact rank.
SLACK = 1e-5
LARGEST = 1e6  # of an objective: solvers' tolerances are absolute
MOST_SOLVES = 40  # per objective: chains that are slower by less than a solver's tolerance are cut off one by one


class ChainProgram(Struct, frozen=True):
    """A solved program whose first objective is time.

    Attributes:
        problem: of which the values are those of a fastest chain.
        time: as an expression, and what one of it is in ns.
        dram_bytes: as an expression.
        configurations: as an expression.
        chain: of the values of the problem.
        without: returns a constraint that a chain breaks and no other one.
        ranking: of chains, exact.
    """

    problem: pulp.LpProblem
    time: tuple[pulp.LpAffineExpression, float]
    dram_bytes: pulp.LpAffineExpression
    configurations: pulp.LpAffineExpression
    chain: Callable[[], Chain]
    without: Callable[[Chain], pulp.LpConstraint]
    ranking: Ranking


def settle_ties(program: ChainProgram, options: MilpOptions) -> Chain:
    """Return the fastest chain with the fewest DRAM bytes, and of these the one with the fewest configurations.

    The objectives are minimised one after the other with those before them fixed. Solvers only keep what is fixed up to
    a tolerance: each chain is ranked exactly, and cut off if it is worse.

    Raises:
        UserError: the solver is not installed, or ended without an answer.
    """
    best = program.chain()
    for level in (1, 2):
        problem, ranking = program.problem, program.ranking
        time, unit_ns = program.time
        rank = ranking.rank(best)
        problem.addConstraint(time <= (rank[0] + ranking.tie_ns) / unit_ns * (1 + SLACK), f"time_{level}")
        if level > 1:
            problem.addConstraint(program.dram_bytes <= rank[1] * (1 + SLACK) + SLACK, "dram_bytes")
        aim = program.dram_bytes if level == 1 else program.configurations
        largest = max((abs(factor) for factor in aim.values()), default=0.0) or 1.0
        problem.setObjective(aim * (min(largest, LARGEST) / largest))
        for solved in range(MOST_SOLVES):
            if solve(problem, options) not in (Outcome.OPTIMAL, Outcome.FEASIBLE):
                break
            chain = program.chain()
            found = ranking.rank(chain)
            if is_better(found, rank, ranking.tie_ns):
                best, rank = chain, found
                break
            if found[0] <= rank[0] + ranking.tie_ns and found[1:level] <= rank[1:level]:
                break
            problem.addConstraint(program.without(chain), f"without_{level}_{solved}")
    return best
