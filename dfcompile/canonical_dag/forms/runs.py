"""Runs: how families of nodes and edges become one line each in a file."""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from dfcompile.canonical_dag.dag import NO_KERNEL, NO_MEMBER, Bool, CanonicalDag, Int64
from dfcompile.canonical_dag.forms.reference import Reference
from dfcompile.canonical_dag.kinds import NodeKind


class NodeRun(NamedTuple):
    """Successive members of one scope, of one kind; or a scope without nodes (``count`` 0)."""

    kind: NodeKind
    nodes: Reference
    kernel: str | None
    origin: str


class EdgeRun(NamedTuple):
    """Successive edges of one volume: from one node to a range, from a range to one node, or in parallel."""

    source: Reference
    target: Reference
    volume: int
    distinct: int
    element_bytes: int
    order: str


def node_runs(dag: CanonicalDag) -> Iterator[NodeRun]:
    """Return the nodes in order; a scope that no node has yet comes before every scope of a higher number."""
    declared = 0
    scope, member = dag.node_scope, dag.node_member
    follows = (scope[1:] == scope[:-1]) & (dag.kind[1:] == dag.kind[:-1]) & (member[1:] == member[:-1] + 1)
    follows &= member[:-1] != NO_MEMBER
    for first, end in _pieces(follows, dag.nodes_count):
        number = int(scope[first])
        for empty in range(declared, number):
            yield _node_run(dag, empty, NodeKind.SOURCE, NO_MEMBER, 0)
        declared = max(declared, number + 1)
        yield _node_run(dag, number, NodeKind(dag.kind[first]), int(member[first]), end - first)
    for empty in range(declared, len(dag.scopes)):
        yield _node_run(dag, empty, NodeKind.SOURCE, NO_MEMBER, 0)


def _node_run(dag: CanonicalDag, number: int, kind: NodeKind, first: int, count: int) -> NodeRun:
    scope = dag.scopes[number]
    kernel = None if scope.kernel == NO_KERNEL else dag.kernels[scope.kernel].name
    return NodeRun(kind, Reference(scope.name, first, count), kernel, scope.origin)


def edge_runs(dag: CanonicalDag) -> Iterator[EdgeRun]:
    """Return the edges in order, as few runs as a greedy sweep finds."""
    source, target = dag.edge_source, dag.edge_target
    step_source = np.diff(dag.node_member[source])
    step_target = np.diff(dag.node_member[target])
    alike = (np.diff(dag.node_scope[source]) == 0) & (np.diff(dag.node_scope[target]) == 0)
    alike &= (np.diff(dag.edge_volume) == 0) & (np.diff(dag.edge_order) == 0)
    alike &= (np.diff(dag.edge_element_bytes) == 0) & (np.diff(dag.edge_distinct) == 0)
    pieces = _edge_pieces(np.where(alike, _direction(step_source, step_target), 0).tolist(), dag.edges_count)
    # Plain lists: reading single elements of arrays would take most of the time.
    names = [scope.name for scope in dag.scopes]
    nodes = [
        (names[scope], member) for scope, member in zip(dag.node_scope.tolist(), dag.node_member.tolist(), strict=True)
    ]
    sources, targets = source.tolist(), target.tolist()
    volumes, sizes, orders = dag.edge_volume.tolist(), dag.edge_element_bytes.tolist(), dag.edge_order.tolist()
    distinct = dag.edge_distinct.tolist()
    for first, end in pieces:
        yield EdgeRun(
            _span(nodes[sources[first]], nodes[sources[end - 1]]),
            _span(nodes[targets[first]], nodes[targets[end - 1]]),
            volumes[first],
            distinct[first],
            sizes[first],
            dag.orders[orders[first]],
        )


def _direction(source: Int64, target: Int64) -> Int64:
    """1: one node to a range; 2: a range to one node; 3: in parallel; 0: none of these."""
    conditions = [(source == 0) & (target == 1), (source == 1) & (target == 0), (source == 1) & (target == 1)]
    return np.select(conditions, [1, 2, 3], 0).astype(np.int64)


def _pieces(follows: Bool, count: int) -> Iterator[tuple[int, int]]:
    if count:
        breaks = [0, *(np.flatnonzero(~follows) + 1).tolist(), count]
        yield from pairwise(breaks)


def _edge_pieces(directions: list[int], count: int) -> Iterator[tuple[int, int]]:
    """Cut where two successive edges do not go in the direction of the piece; the first two edges decide it."""
    first = 0
    current = 0
    for edge, direction in enumerate(directions, start=1):
        if direction != 0 and (direction == current or edge == first + 1):
            current = direction
            continue
        yield first, edge
        first, current = edge, 0
    if count:
        yield first, count


def _span(first: tuple[str, int], last: tuple[str, int]) -> Reference:
    scope, member = first
    return Reference(scope, member, 1 + last[1] - member)
