"""Nodes that no bound can tell apart count as one: equal layers have thousands of tasks, of a few kinds."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.dag import Int32, Int64
from dfcompile.scheduler.bounds.precedence import Direction, directions, handing_on

_MOST_ROUNDS = 12  # so often kinds are split; where they still are, nodes are hardly alike


class Merged(Struct, frozen=True):
    """A graph of kinds of nodes: what holds of one of a kind, and of what it waits for, holds of all of the kind.

    Attributes:
        node: the first node of each kind, shape [kinds].
        count: nodes of each kind, shape [kinds].
        directions: what kinds wait for, forwards and backwards in time.
    """

    node: list[int]
    count: list[int]
    directions: tuple[Direction, Direction]


def merged(dag: CanonicalDag, *columns: Sequence[int]) -> Merged:
    """Return the kinds of nodes: alike in figures, and reading from and read by as many of each kind.

    The coarsest such kinds are found by splitting those that are not, from those of equal figures on.

    Args:
        dag: the graph.
        columns: figures of the nodes, shape [nodes] each.

    Source: partition refinement [paige87], here in rounds over the whole graph.
    """
    kind = _kinds(dag, columns)
    nodes, first = np.arange(dag.nodes_count), np.full(kind.max(initial=-1) + 1, dag.nodes_count)
    np.minimum.at(first, kind, nodes)
    kind_of, node = kind.tolist(), first.tolist()

    def quotient(direction: Direction) -> Direction:
        # Of each node of a kind another one of any kind that follows it comes later, so the last ones are in order.
        last = {kind_of[each]: None for each in reversed(direction.order)}
        awaited = [list({(kind_of[other], a, b): None for other, a, b in direction.awaited[each]}) for each in node]
        return Direction(list(last)[::-1], awaited)

    ahead, back = directions(dag)
    return Merged(node, np.bincount(kind).tolist(), (quotient(ahead), quotient(back)))


def _kinds(dag: CanonicalDag, columns: Sequence[Sequence[int]]) -> Int64:
    """Return the number of the kind of each node, shape [nodes]; each is its own where that takes too many rounds."""
    figures = np.array([dag.is_computational, dag.work, *handing_on(dag), *columns], dtype=np.int64)
    kind = np.unique(figures, axis=1, return_inverse=True)[1].reshape(-1).astype(np.int64)
    kinds = kind.max(initial=-1) + 1
    for _ in range(_MOST_ROUNDS):
        read = _neighbours(dag.in_start, dag.in_edges, dag.edge_source, kind)
        written = _neighbours(dag.out_start, dag.out_edges, dag.edge_target, kind)
        numbers: dict[tuple[int, bytes, bytes], int] = {}
        of_node = (numbers.setdefault(alike, len(numbers)) for alike in zip(kind.tolist(), read, written, strict=True))
        kind = np.fromiter(of_node, dtype=np.int64, count=dag.nodes_count)
        if len(numbers) == kinds:
            return kind
        kinds = len(numbers)
    return np.arange(dag.nodes_count)


def _neighbours(start: Int64, edges: Int32, other: Int32, kind: Int64) -> list[bytes]:
    """Return the kinds of the nodes at the other ends of each node's edges, in ascending order."""
    kinds = kind[other[edges]]
    of_node = np.repeat(np.arange(len(start) - 1), np.diff(start))
    ordered = kinds[np.lexsort((kinds, of_node))]
    return [ordered[begin:end].tobytes() for begin, end in pairwise(start.tolist())]
