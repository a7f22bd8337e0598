"""A labelling of least cost as integer programs, one per level: exact, for graphs that are too wide to eliminate."""

from dfcompile.dfmodel_backend.milp import MilpOptions, Outcome, is_one, solve
from dfcompile.dfmodel_backend.sharding.elimination import Labelling, Labels
from dfcompile.errors import InfeasibleError, UserError

# Of a level that later ones keep, in units of its largest cost: above the tolerances of solvers (1e-6), or what they
# found for one level is impossible for the next. What is worse by less is cut off by its exact cost.
SLACK = 1e-5
LARGEST = 1e6  # of an objective: gaps of solvers are absolute
MOST_CUTS = 40  # per level


def label_by_integer_programs(problem: Labelling, options: MilpOptions) -> Labels:
    """Return the labels of least cost; of several the one that the solver finds.

    A pair of labels of an edge is a share whose sums are the labels of its ends, which is whole where these are.

    Raises:
        InfeasibleError: there is none, as the solver says.
        UserError: the solver is not installed, met its limits, or contradicts itself.
    """
    return _Programs(problem, options).solve()


class _Programs:
    def __init__(self, problem: Labelling, options: MilpOptions) -> None:
        import pulp

        self._pulp = pulp
        self._labelling = problem
        self._options = options
        self._program = pulp.LpProblem("sharding", pulp.LpMinimize)
        self._label = {
            (node, label): self._program.add_variable(f"split_{node}_{label.name}", cat="Binary")
            for node, labels in problem.labels.items()
            for label in labels
        }
        for node, labels in problem.labels.items():
            self._program += pulp.lpSum(self._label[node, label] for label in labels) == 1
        self._costs = [(self._label[one], cost) for one, cost in problem.alone.items() if one in self._label]
        for first, second in problem.between:
            self._add_pair(first, second)

    def _add_pair(self, first: int, second: int) -> None:
        labels, costs = self._labelling.labels, self._labelling.between[first, second]
        pairs = {
            (one, other): self._program.add_variable(f"pair_{first}_{second}_{one.name}_{other.name}", 0, 1)
            for one in labels[first]
            for other in labels[second]
        }
        for one in labels[first]:
            self._program += self._pulp.lpSum(pairs[one, other] for other in labels[second]) == self._label[first, one]
        for other in labels[second]:
            self._program += self._pulp.lpSum(pairs[one, other] for one in labels[first]) == self._label[second, other]
        self._costs += [(pairs[labelled], cost) for labelled, cost in costs.items() if labelled in pairs]

    def solve(self) -> Labels:
        found = {node: labels[0] for node, labels in self._labelling.labels.items()}
        for level in range(self._labelling.levels):
            found = self._settle(level, found)
        return found

    def _settle(self, level: int, best: Labels) -> Labels:
        """Return the labels of least cost on a level among those of least cost on all before it; keep the level."""
        terms = [(variable, cost[level]) for variable, cost in self._costs if cost[level]]
        if not terms:
            return best
        largest = max(factor for _, factor in terms)
        level_cost = self._pulp.LpAffineExpression([(variable, factor / largest) for variable, factor in terms])
        self._program.setObjective(level_cost * LARGEST)
        kept = self._labelling.cost(best)[:level]
        for cut in range(MOST_CUTS):
            self._require_optimum(solve(self._program, self._options), level, is_first=cut == 0 and not level)
            found = self._chosen()
            cost = self._labelling.cost(found)
            if level == 0 or cost[:level] <= kept:
                self._program += level_cost <= cost[level] / largest + SLACK
                is_better = level == 0 or cost[: level + 1] <= self._labelling.cost(best)[: level + 1]
                return found if is_better else best
            taken = [self._label[one] for one in found.items()]
            self._program += self._pulp.lpSum(taken) <= len(taken) - 1
        raise self._contradiction(level)

    def _chosen(self) -> Labels:
        return {
            node: next(label for label in labels if len(labels) == 1 or is_one(self._label[node, label]))
            for node, labels in self._labelling.labels.items()
        }

    def _require_optimum(self, outcome: Outcome, level: int, *, is_first: bool) -> None:
        name = self._options.solver.value
        match outcome:
            case Outcome.OPTIMAL:
                return
            case Outcome.INFEASIBLE if is_first:
                raise InfeasibleError(f"sharding: solver {name!r} proves that no shardings go together (other pins)")
            case Outcome.INFEASIBLE:
                raise self._contradiction(level)
            case Outcome.FEASIBLE | Outcome.NOTHING:
                limit = f" or {self._options.time_limit_s:g} s" if self._options.time_limit_s else ""
                raise UserError(
                    f"sharding: solver {name!r} proves no optimum within {self._options.max_nodes} nodes{limit} "
                    "(pins of shardings make it easier)"
                )

    def _contradiction(self, level: int) -> UserError:
        return UserError(
            f"sharding: solver {self._options.solver.value!r} contradicts what it found, at aim {level + 1} of "
            f"{self._labelling.levels}: numerical trouble (another --solver, or pins of shardings)"
        )
