"""What nodes wait for, in both directions of time."""

from itertools import pairwise
from typing import TypeAlias

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag import CanonicalDag, topological_order
from dfcompile.canonical_dag.dag import Bool, Int32, Int64

NO_STREAM = -1

Times: TypeAlias = tuple[list[int], list[int]]  # starts and ends, shape [nodes] each


class Direction(Struct, frozen=True):
    """A direction of time.

    Attributes:
        order: the nodes, each after those it waits for.
        awaited: of each node the nodes it waits for, with cycles from start to start, and from end to end. For memory
            the former is ``NO_STREAM``: the node starts when the other one has ended.
    """

    order: list[int]
    awaited: list[list[tuple[int, int, int]]]


def released(
    awaited: list[tuple[int, int, int]], start: list[int], end: list[int], known: tuple[int, int] = (0, 0)
) -> tuple[int, int]:
    """Return before when a node can neither start nor end.

    Args:
        awaited: the nodes that it waits for, as `Direction` has them.
        start: of each node, shape [nodes].
        end: of each node, shape [nodes].
        known: before when it does not start, and does not end.
    """
    begin, least = known
    for other, to_start, to_end in awaited:
        if to_start == NO_STREAM:
            if end[other] > begin:
                begin = end[other]
            continue
        if start[other] + to_start > begin:
            begin = start[other] + to_start
        if end[other] + to_end > least:
            least = end[other] + to_end
    return begin, least


def earliest(direction: Direction, task: list[bool], work: list[int], known: Times | None = None) -> Times:
    """Return earliest starts and ends of all nodes in one direction of time, if there are elements enough.

    Args:
        direction: what nodes wait for.
        task: which nodes need an element, shape [nodes].
        work: of each node, shape [nodes].
        known: before when nodes do not start, and do not end; nothing without.
    """
    start, end = ([0] * len(task), [0] * len(task)) if known is None else (known[0][:], known[1][:])
    for node in direction.order:
        begin, least = released(direction.awaited[node], start, end, (start[node], end[node]))
        start[node] = begin
        end[node] = max(begin + work[node], least) if task[node] else begin
    return start, end


def directions(
    dag: CanonicalDag, streamed: Bool | None = None, forward: Int64 | int = 0
) -> tuple[Direction, Direction]:
    """Return what nodes wait for, forwards and backwards in time.

    A task begins when the first element of a producer can be there. A producer's last element leaves it at its end;
    after that the task has yet to write what this element allows, ``ceil(O / I)`` of its own, and takes a cycle at
    least. Past memory it begins when the producer has ended.

    Args:
        dag: the graph.
        streamed: which edges stream; by default all between two tasks, shape [edges].
        forward: cycles that an element takes from one task to the next, of all edges or of each, shape [edges].
    """
    order = topological_order(dag).tolist()
    awaited, written = handing_on(dag)
    first, last = awaited[dag.edge_source] + forward, written[dag.edge_target] + forward
    is_stream = dag.between_tasks if streamed is None else streamed
    ahead = _rows(dag.in_start, dag.in_edges, dag.edge_source, np.where(is_stream, first, NO_STREAM), last)
    back = _rows(dag.out_start, dag.out_edges, dag.edge_target, np.where(is_stream, last, NO_STREAM), first)
    return Direction(order, ahead), Direction(order[::-1], back)


def _rows(start: Int64, edges: Int32, other: Int32, to_start: Int64, to_end: Int64) -> list[list[tuple[int, int, int]]]:
    """Return three figures of each edge, by the nodes whose edges they are."""
    figures = list(zip(*(column[edges].tolist() for column in (other, to_start, to_end)), strict=True))
    return [figures[begin:end] for begin, end in pairwise(start.tolist())]


def handing_on(dag: CanonicalDag) -> tuple[Int64, Int64]:
    """Return the cycles of each task until its first element, and after the last one that it takes, shape [nodes] each.

    Before its first element it takes ``ceil(I / O)`` of its own; after the last one it takes it writes ``ceil(O / I)``.
    """
    awaited = np.maximum(-(-dag.volume_in // np.maximum(dag.volume_out, 1)), 1)
    return awaited, np.maximum(-(-dag.volume_out // np.maximum(dag.volume_in, 1)), 1)
