"""A labelling of least cost: a label for each node of a graph, costs of labels and of pairs of labels along edges."""

from collections.abc import Mapping
from typing import TypeAlias

from msgspec import Struct

from dfcompile.dfmodel_backend.workload.design import Dim

Levels: TypeAlias = tuple[int, ...]  # not negative; the first that differs counts
Labels: TypeAlias = dict[int, Dim]


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
