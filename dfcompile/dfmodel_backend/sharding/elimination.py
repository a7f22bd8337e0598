"""A labelling of least cost by eliminating one node after the other [dechter99]: exact, fast on narrow graphs."""

from collections.abc import Mapping, Sequence
from math import prod
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from dfcompile.dfmodel_backend.workload.design import Dim

Levels: TypeAlias = tuple[int, ...]  # not negative; the first that differs counts
Labels: TypeAlias = dict[int, Dim]
Array = npt.NDArray[np.int64]  # or of Python's integers, where those are too small

MOST_ENTRIES = 2**20  # of a table


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
        for (first, second), costs in self.between.items():
            found.append(costs.get((labels[first], labels[second]), self.nothing))
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
