"""Depth first: tasks in the order in which one processing element finishes one result after the other.

Where others take what comes next, as soon as they can, little more is in memory at a time than one element needs: what
tasks hold that come too early, of which there are at most P for each step of the longest chain [blelloch99].
"""

import numpy as np

from dfcompile.canonical_dag.dag import CanonicalDag, Int32


def depth_first(dag: CanonicalDag) -> tuple[Int32, list[int]]:
    """Return the nodes depth first, and where those begin that are placed apart, and the end.

    A node comes behind all that it needs, and these are looked for only when it is looked at. Together are tasks of one
    scope that take as long and do not read from one another.
    """
    order = _order(dag)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    latest = np.full(len(order), -1, dtype=np.int64)  # place of the last node that each one reads from
    np.maximum.at(latest, place[dag.edge_target], place[dag.edge_source])
    scope, work = dag.node_scope[order], dag.work[order]
    follows = (scope[1:] == scope[:-1]) & (work[1:] == work[:-1]) & (work[1:] > 0)
    begins = [0]
    for at, (is_next, before) in enumerate(zip(follows.tolist(), latest[1:].tolist(), strict=True), start=1):
        if not is_next or before >= begins[-1]:
            begins.append(at)
    return order, [*begins, len(order)]


def _order(dag: CanonicalDag) -> Int32:
    sources, first = dag.edge_source[dag.in_edges].tolist(), dag.in_start.tolist()
    left, is_found = first[:-1], [False] * dag.nodes_count  # the next input edge of each node to look at
    order: list[int] = []
    for sink in np.flatnonzero(np.diff(dag.out_start) == 0).tolist():
        stack = [sink]
        while stack:
            node = stack[-1]
            at, end = left[node], first[node + 1]
            while at < end and is_found[sources[at]]:
                at += 1
            left[node] = at
            if at < end:
                is_found[sources[at]] = True
                stack.append(sources[at])
            else:
                order.append(stack.pop())
    return np.array(order, dtype=np.int32)
