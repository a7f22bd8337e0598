"""Labellings of least cost: exact, by eliminating one node after the other [dechter99], or by integer programs.

Elimination is fast on narrow graphs; integer programs, one per level of cost, are for those that are too wide for it.
"""

from collections.abc import Mapping, Sequence
from math import prod
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from dfcompile.dfmodel_backend.milp import MilpOptions, Outcome, is_one, solve
from dfcompile.dfmodel_backend.workload.design import Dim
from dfcompile.errors import InfeasibleError, UserError

Levels: TypeAlias = tuple[int, ...]  # not negative; the first that differs counts
Labels: TypeAlias = dict[int, Dim]
Array = npt.NDArray[np.int64]  # or of Python's integers, where those are too small

MOST_ENTRIES = 2**20  # of a table
# Of a level that later ones keep, in units of its largest cost: above the tolerances of solvers (1e-6), or what they
# found for one level is impossible for the next. What is worse by less is cut off by its exact cost.
SLACK = 1e-5
LARGEST = 1e6  # of an objective: gaps of solvers are absolute
MOST_CUTS = 40  # per level


class Labelling(Struct, frozen=True):
    """What labels cost; costs are exact, so that every solver finds the same.

    Attributes:
        labels: that each node may have, at least one.
        alone: costs of a node's label; what is not listed costs nothing.
        between: costs of the labels of two nodes, of all edges between them.
        levels: of a cost.
    """

    labels: Mapping[int, tuple[Dim, ...]]
    alone: Mapping[tuple[int, Dim], Levels]
    between: Mapping[tuple[int, int], Mapping[tuple[Dim, Dim], Levels]]
    levels: int

    @property
    def nothing(self) -> Levels:
        """A cost of nothing."""
        return (0,) * self.levels

    def cost(self, labels: Mapping[int, Dim]) -> Levels:
        """Return what a labelling costs."""
        found = [self.alone.get(node, self.nothing) for node in labels.items()]
        found += [costs.get((labels[one], labels[two]), self.nothing) for (one, two), costs in self.between.items()]
        return tuple(map(sum, zip(self.nothing, *found, strict=True)))


class _Factor(Struct, frozen=True):
    """What the labels of some nodes cost; an axis each."""

    nodes: tuple[int, ...]
    costs: Array

    def over(self, nodes: tuple[int, ...]) -> Array:
        """Return the costs with an axis for each of more nodes."""
        order = sorted(range(len(self.nodes)), key=lambda axis: nodes.index(self.nodes[axis]))
        shape = {self.nodes[axis]: self.costs.shape[axis] for axis in order}
        return self.costs.transpose(order).reshape([shape.get(node, 1) for node in nodes])


def least_labels(problem: Labelling, options: MilpOptions) -> Labels:
    """Return the labels of least cost, by elimination or, if the graph is too wide, by integer programs.

    Raises:
        InfeasibleError: as `label_by_integer_programs`.
        UserError: as `label_by_integer_programs`.
    """
    found = label_by_elimination(problem)
    return label_by_integer_programs(problem, options) if found is None else found


def label_by_elimination(problem: Labelling) -> Labels | None:
    """Return the labels of least cost, or None if the graph is too wide: a table would have too many entries.

    Among equal costs the labels that are listed first are taken, of the node that is eliminated last before others.
    """
    factors = _factors(problem)
    open_nodes = [node for node, labels in problem.labels.items() if len(labels) > 1]
    decisions: list[tuple[int, tuple[int, ...], Array]] = []
    while open_nodes:
        around = {node: _neighbours(node, factors) for node in open_nodes}
        sizes = {node: prod(len(problem.labels[one]) for one in (node, *around[node])) for node in open_nodes}
        node = min(open_nodes, key=lambda one: sizes[one])
        if sizes[node] > MOST_ENTRIES:
            return None
        nodes = (*around[node], node)
        joined = sum((one.over(nodes) for one in factors if node in one.nodes), start=np.zeros((1,) * len(nodes), int))
        joined = np.broadcast_to(joined, [len(problem.labels[one]) for one in nodes])
        decisions.append((node, around[node], joined.argmin(axis=-1)))
        factors = [one for one in factors if node not in one.nodes]
        if around[node]:
            factors.append(_Factor(around[node], joined.min(axis=-1)))
        open_nodes.remove(node)
    chosen = dict.fromkeys(problem.labels, 0)
    for node, nodes, best in reversed(decisions):
        chosen[node] = int(best[tuple(chosen[one] for one in nodes)])
    return {node: labels[chosen[node]] for node, labels in problem.labels.items()}


def _neighbours(node: int, factors: Sequence[_Factor]) -> tuple[int, ...]:
    found = dict.fromkeys(one for factor in factors if node in factor.nodes for one in factor.nodes)
    return tuple(one for one in found if one != node)


def _factors(problem: Labelling) -> list[_Factor]:
    """Return a factor per node and pair of nodes that have a choice; what has none is part of what it is beside."""
    units, kind = _packing(problem)

    def number(cost: Levels) -> int:
        return sum(unit * level for unit, level in zip(units, cost, strict=True))

    alone: dict[int, Array] = {
        node: np.array([number(problem.alone.get((node, label), problem.nothing)) for label in labels], kind)
        for node, labels in problem.labels.items()
    }
    pairs = []
    for (first, second), costs in problem.between.items():
        rows, columns = problem.labels[first], problem.labels[second]
        table: Array = np.array(
            [[number(costs.get((row, column), problem.nothing)) for column in columns] for row in rows], kind
        )
        if len(rows) == 1:
            alone[second] = alone[second] + table[0]
        elif len(columns) == 1:
            alone[first] = alone[first] + table[:, 0]
        else:
            pairs.append(_Factor((first, second), table))
    return [_Factor((node,), costs) for node, costs in alone.items() if len(costs) > 1] + pairs


def _packing(problem: Labelling) -> tuple[Levels, type]:
    """Return the units of the levels of a cost in one number, which adds up and compares as they do, and its type."""
    costs = [*problem.alone.values(), *(cost for pairs in problem.between.values() for cost in pairs.values())]
    most = [1 + sum(cost[level] for cost in costs) for level in range(problem.levels)]
    units = [1]
    for size in reversed(most[1:]):
        units.append(units[-1] * size)
    return tuple(reversed(units)), np.int64 if units[-1] * most[0] < 2**62 else np.object_


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
            found = {
                node: next(label for label in labels if len(labels) == 1 or is_one(self._label[node, label]))
                for node, labels in self._labelling.labels.items()
            }
            cost = self._labelling.cost(found)
            if level == 0 or cost[:level] <= kept:
                self._program += level_cost <= cost[level] / largest + SLACK
                is_better = level == 0 or cost[: level + 1] <= self._labelling.cost(best)[: level + 1]
                return found if is_better else best
            taken = [self._label[one] for one in found.items()]
            self._program += self._pulp.lpSum(taken) <= len(taken) - 1
        raise self._contradiction(level)

    def _require_optimum(self, outcome: Outcome, level: int, *, is_first: bool) -> None:
        name = self._options.solver.value
        if outcome is Outcome.OPTIMAL:
            return
        if outcome is Outcome.INFEASIBLE and is_first:
            raise InfeasibleError(f"sharding: solver {name!r} proves that no shardings go together (other pins)")
        if outcome is Outcome.INFEASIBLE:
            raise self._contradiction(level)
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
