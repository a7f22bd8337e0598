"""Splits a DAG into runs of nodes and edges, each of which becomes one line of a file."""

from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from dfcompile.canonical_dag.dag import NO_KERNEL, NO_MEMBER, Bool, CanonicalDag, Int64, NodeKind
from dfcompile.canonical_dag.forms.reference import Listing, Reference

_LONGEST_LIST = 1000  # edges, so that an editor still shows the line
_FEWEST_RUNS = 16  # that a list replaces
_SHORT_RUN = 4  # edges: if runs are shorter on average, a list takes less room


class NodeRun(NamedTuple):
    """Successive members of one scope; none of them to mention the scope alone."""

    kind: NodeKind | None  # None: the tasks are of several kinds
    nodes: Reference
    kernel: str | None
    origin: str


class EdgeRun(NamedTuple):
    """Successive edges: of one volume from a node to a range, a range to a node, or range to range; or any, listed."""

    source: Reference | Listing
    target: Reference | Listing
    volume: int | Int64  # an array where the volumes of a list differ
    distinct: int | None  # distinct elements; None: all are
    element_bytes: int
    order: str


def node_runs(dag: CanonicalDag) -> Iterator[NodeRun]:
    """Yield the nodes in order, as runs; where kinds of a scope's tasks change often, one run has all of them.

    A reader numbers scopes as they appear, so each is mentioned, if need be without nodes, before any of higher number.
    """
    next_scope = 0
    scope, member = dag.node_scope, dag.node_member
    continues = (scope[1:] == scope[:-1]) & (member[1:] == member[:-1] + 1) & (member[:-1] != NO_MEMBER)
    firsts = np.flatnonzero(np.concatenate([[dag.nodes_count > 0], ~(continues & (dag.kind[1:] == dag.kind[:-1]))]))
    mixable = continues & dag.is_computational[1:] & dag.is_computational[:-1]
    for begin, end, is_mixed in _stretches(firsts, mixable, dag.nodes_count):
        inside = firsts[np.searchsorted(firsts, begin) : np.searchsorted(firsts, end)].tolist()
        for first, stop in pairwise([begin, end] if is_mixed else [*inside, end]):
            number = int(scope[first])
            for skipped in range(next_scope, number):
                yield _empty_run(dag, skipped)
            next_scope = max(next_scope, number + 1)
            kind = None if is_mixed else NodeKind(dag.kind[first])
            yield _node_run(dag, number, kind, int(member[first]), stop - first)
    for skipped in range(next_scope, len(dag.scopes)):
        yield _empty_run(dag, skipped)


def _empty_run(dag: CanonicalDag, number: int) -> NodeRun:
    """Return the run that mentions a scope without nodes."""
    return _node_run(dag, number, None, NO_MEMBER, 0)


def _node_run(dag: CanonicalDag, number: int, kind: NodeKind | None, first: int, count: int) -> NodeRun:
    scope = dag.scopes[number]
    kernel = None if scope.kernel == NO_KERNEL else dag.kernels[scope.kernel].name
    return NodeRun(kind, Reference(scope.name, first, count), kernel, scope.origin)


def edge_runs(dag: CanonicalDag) -> Iterator[EdgeRun]:
    """Yield the edges in order: runs, each as long as possible from its first edge on; lists where many are short."""
    source, target = dag.edge_source, dag.edge_target
    step_source = np.diff(dag.node_member[source])
    step_target = np.diff(dag.node_member[target])
    same_fields = (np.diff(dag.node_scope[source]) == 0) & (np.diff(dag.node_scope[target]) == 0)
    same_fields &= (np.diff(dag.edge_order) == 0) & (np.diff(dag.edge_element_bytes) == 0)
    all_distinct = dag.edge_distinct == dag.edge_volume
    listable = same_fields & all_distinct[1:] & all_distinct[:-1]
    for ends in (source, target):
        is_member = dag.node_member[ends] != NO_MEMBER
        listable &= is_member[1:] & is_member[:-1]
    same_fields &= (np.diff(dag.edge_volume) == 0) & (np.diff(dag.edge_distinct) == 0)
    # Direction from one edge to the next: 1 one node to a range, 2 a range to one node, 3 in parallel, 0 none of these.
    steps = [(step_source == first) & (step_target == second) for first, second in ((0, 1), (1, 0), (1, 1))]
    firsts = _edge_firsts(np.where(same_fields, np.select(steps, [1, 2, 3], 0), 0).tolist(), dag.edges_count)
    for begin, end, is_list in _stretches(np.array(firsts, dtype=np.int64), listable, dag.edges_count):
        if is_list:
            for first in range(begin, end, _LONGEST_LIST):
                yield _edge_list(dag, first, min(first + _LONGEST_LIST, end))
        else:
            yield from _edge_runs(dag, firsts[bisect_left(firsts, begin) : bisect_left(firsts, end)], end)


def _stretches(firsts: Int64, listable: Bool, count: int) -> Iterator[tuple[int, int, bool]]:
    """Split edges, or nodes, into stretches; yield begin, end, and whether many short runs there become one list."""
    breaks = np.flatnonzero(~listable) + 1
    # Runs end at breaks. If one does not, no list may have its edges, each of which is a stretch: too short for a list.
    bounds = np.concatenate([[0], breaks, [count]])
    runs = np.diff(np.searchsorted(firsts, bounds))
    short = (runs >= _FEWEST_RUNS) & (np.diff(bounds) < _SHORT_RUN * runs)
    done = 0
    for number in np.flatnonzero(short).tolist():
        begin, end = int(bounds[number]), int(bounds[number + 1])
        if done < begin:
            yield done, begin, False
        yield begin, end, True
        done = end
    if done < count:
        yield done, count, False


def _edge_list(dag: CanonicalDag, first: int, end: int) -> EdgeRun:
    edges = slice(first, end)
    source, target = (
        Listing(dag.scopes[dag.node_scope[nodes[0]]].name, dag.node_member[nodes])
        for nodes in (dag.edge_source[edges], dag.edge_target[edges])
    )
    volume = dag.edge_volume[edges]
    is_equal = bool((volume == volume[0]).all())
    order = dag.orders[dag.edge_order[first]]
    element_bytes = int(dag.edge_element_bytes[first])
    return EdgeRun(source, target, int(volume[0]) if is_equal else volume, None, element_bytes, order)


def _edge_runs(dag: CanonicalDag, firsts: list[int], end: int) -> Iterator[EdgeRun]:
    """Yield the runs that begin at ``firsts``, the last of which stops before ``end``."""
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
    rows = zip(*columns, strict=True)
    for source, first, size, target, target_first, target_size, volume, distinct, width, order in rows:
        ends = Reference(names[source], first, size), Reference(names[target], target_first, target_size)
        yield EdgeRun(*ends, volume, None if distinct == volume else distinct, width, dag.orders[order])


def _edge_firsts(directions: list[int], count: int) -> list[int]:
    """Return where runs begin: at edges that do not go on in the direction which a run's first two edges decide."""
    firsts = [0] if count else []
    first = run_direction = 0
    for edge, direction in enumerate(directions, start=1):
        if direction != 0 and (direction == run_direction or edge == first + 1):
            run_direction = direction
            continue
        firsts.append(edge)
        first, run_direction = edge, 0
    return firsts
