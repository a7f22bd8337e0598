"""Runs: how families of nodes and edges become one line each in a file."""

from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from dfcompile.canonical_dag.dag import NO_KERNEL, NO_MEMBER, Bool, CanonicalDag, Int64, NodeKind
from dfcompile.canonical_dag.forms.reference import Listing, Reference

_LISTED = 1000  # edges of a list: a line that an editor still shows
_FEWEST_RUNS = 16  # of a list
_SHORT_RUN = 4  # edges, in the mean: then a list is shorter


class NodeRun(NamedTuple):
    """Successive members of one scope; or a scope without nodes (``count`` 0)."""

    kind: NodeKind | None  # None: of tasks of several kinds
    nodes: Reference
    kernel: str | None
    origin: str


class EdgeRun(NamedTuple):
    """Successive edges: of one volume from one node to a range, from a range to one node, or in parallel; or a list."""

    source: Reference | Listing
    target: Reference | Listing
    volume: int | Int64  # of a list a column where volumes differ
    distinct: int | None  # where it is not the volume
    element_bytes: int
    order: str


def node_runs(dag: CanonicalDag) -> Iterator[NodeRun]:
    """Return the nodes in order; a scope that no node has yet comes before every scope of a higher number.

    Where kinds of a scope's tasks change often, one run has all of them.
    """
    declared = 0
    scope, member = dag.node_scope, dag.node_member
    joined = (scope[1:] == scope[:-1]) & (member[1:] == member[:-1] + 1) & (member[:-1] != NO_MEMBER)
    firsts = np.flatnonzero(np.concatenate([[dag.nodes_count > 0], ~(joined & (dag.kind[1:] == dag.kind[:-1]))]))
    joined &= dag.is_computational[1:] & dag.is_computational[:-1]
    for begin, end, is_mixed in _stretches(firsts, joined, dag.nodes_count):
        inside = firsts[np.searchsorted(firsts, begin) : np.searchsorted(firsts, end)].tolist()
        for first, stop in pairwise([begin, end] if is_mixed else [*inside, end]):
            number = int(scope[first])
            for empty in range(declared, number):
                yield scope_run(dag, empty)
            declared = max(declared, number + 1)
            kind = None if is_mixed else NodeKind(dag.kind[first])
            yield _node_run(dag, number, kind, int(member[first]), stop - first)
    for empty in range(declared, len(dag.scopes)):
        yield scope_run(dag, empty)


def scope_run(dag: CanonicalDag, number: int) -> NodeRun:
    """Return a scope without nodes."""
    return _node_run(dag, number, None, NO_MEMBER, 0)


def _node_run(dag: CanonicalDag, number: int, kind: NodeKind | None, first: int, count: int) -> NodeRun:
    scope = dag.scopes[number]
    kernel = None if scope.kernel == NO_KERNEL else dag.kernels[scope.kernel].name
    return NodeRun(kind, Reference(scope.name, first, count), kernel, scope.origin)


def edge_runs(dag: CanonicalDag) -> Iterator[EdgeRun]:
    """Return the edges in order, as few runs as a greedy sweep finds; where runs are short, lists."""
    source, target = dag.edge_source, dag.edge_target
    step_source = np.diff(dag.node_member[source])
    step_target = np.diff(dag.node_member[target])
    alike = (np.diff(dag.node_scope[source]) == 0) & (np.diff(dag.node_scope[target]) == 0)
    alike &= (np.diff(dag.edge_order) == 0) & (np.diff(dag.edge_element_bytes) == 0)
    whole = dag.edge_distinct == dag.edge_volume
    listable = alike & whole[1:] & whole[:-1]
    for ends in (source, target):
        is_member = dag.node_member[ends] != NO_MEMBER
        listable &= is_member[1:] & is_member[:-1]
    alike &= (np.diff(dag.edge_volume) == 0) & (np.diff(dag.edge_distinct) == 0)
    # 1: one node to a range; 2: a range to one node; 3: in parallel; 0: none of these.
    steps = [(step_source == first) & (step_target == second) for first, second in ((0, 1), (1, 0), (1, 1))]
    firsts = _edge_firsts(np.where(alike, np.select(steps, [1, 2, 3], 0), 0).tolist(), dag.edges_count)
    for begin, end, is_list in _stretches(np.array(firsts, dtype=np.int64), listable, dag.edges_count):
        if is_list:
            for first in range(begin, end, _LISTED):
                yield _edge_list(dag, first, min(first + _LISTED, end))
        else:
            yield from _edge_runs(dag, firsts[bisect_left(firsts, begin) : bisect_left(firsts, end)], end)


def _stretches(firsts: Int64, listable: Bool, count: int) -> Iterator[tuple[int, int, bool]]:
    """Yield stretches of edges, and whether they are a list: where so many runs are so short."""
    breaks = np.flatnonzero(~listable) + 1
    # A run never goes on over such a break, but for nodes that no list can have: those stay runs.
    bounds = np.concatenate([[0], breaks, [count]])
    runs = np.diff(np.searchsorted(firsts, bounds))
    short = (runs >= _FEWEST_RUNS) & (np.diff(bounds) < _SHORT_RUN * runs)
    done = 0
    for place in np.flatnonzero(short).tolist():
        begin, end = int(bounds[place]), int(bounds[place + 1])
        if done < begin:
            yield done, begin, False
        yield begin, end, True
        done = end
    if done < count:
        yield done, count, False


def _edge_list(dag: CanonicalDag, first: int, end: int) -> EdgeRun:
    here = slice(first, end)
    source, target = (
        Listing(dag.scopes[dag.node_scope[nodes[0]]].name, dag.node_member[nodes])
        for nodes in (dag.edge_source[here], dag.edge_target[here])
    )
    volume = dag.edge_volume[here]
    is_even = bool((volume == volume[0]).all())
    order = dag.orders[dag.edge_order[first]]
    element_bytes = int(dag.edge_element_bytes[first])
    return EdgeRun(source, target, int(volume[0]) if is_even else volume, None, element_bytes, order)


def _edge_runs(dag: CanonicalDag, firsts: list[int], end: int) -> Iterator[EdgeRun]:
    """Return runs by the numbers of their first edges."""
    # Plain lists: reading single elements of arrays would take most of the time.
    begins, lasts = np.array(firsts, dtype=np.int64), np.array([*firsts[1:], end], dtype=np.int64) - 1
    names = [scope.name for scope in dag.scopes]
    columns: list[list[int]] = []
    for nodes in (dag.edge_source, dag.edge_target):
        member = dag.node_member[nodes[begins]]
        columns += [dag.node_scope[nodes[begins]].tolist(), member.tolist()]
        columns.append((1 + dag.node_member[nodes[lasts]] - member).tolist())
    for column in (dag.edge_volume, dag.edge_distinct, dag.edge_element_bytes, dag.edge_order):
        columns.append(column[begins].tolist())
    for scope, member, size, other, its_member, its_size, volume, distinct, width, order in zip(*columns, strict=True):
        ends = Reference(names[scope], member, size), Reference(names[other], its_member, its_size)
        yield EdgeRun(*ends, volume, None if distinct == volume else distinct, width, dag.orders[order])


def _edge_firsts(directions: list[int], count: int) -> list[int]:
    """Cut where two successive edges do not go in the direction of the piece; the first two edges decide it."""
    firsts = [0] if count else []
    first = current = 0
    for edge, direction in enumerate(directions, start=1):
        if direction != 0 and (direction == current or edge == first + 1):
            current = direction
            continue
        firsts.append(edge)
        first, current = edge, 0
    return firsts
