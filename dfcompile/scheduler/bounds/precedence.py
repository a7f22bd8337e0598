"""Precedence: from when nodes can start and end, given those they wait for, forwards and backwards in time."""

from itertools import pairwise
from typing import TypeAlias

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag import CanonicalDag, topological_order
from dfcompile.canonical_dag.dag import Bool, Int32, Int64

NO_STREAM = -1  # in place of cycles from start to start: the edge passes through memory

Times: TypeAlias = tuple[list[int], list[int]]  # starts and ends, shape [nodes] each


class Direction(Struct, frozen=True):
    """The nodes of a graph in one direction of time; backwards, nodes wait for those that read from them.

    Attributes:
        order: the nodes, each after those it waits for.
        awaited: of each node, triples of a node that it waits for and the least cycles from start to start and from end
            to end. Through memory the former is ``NO_STREAM``: the node starts when the other one has ended.
    """

    order: list[int]
    awaited: list[list[tuple[int, int, int]]]


def released(
    awaited: list[tuple[int, int, int]], start: list[int], end: list[int], known: tuple[int, int] = (0, 0)
) -> tuple[int, int]:
    """Return the earliest start and end of a node that the nodes it waits for allow; its own work is not counted.

    Args:
        awaited: the nodes that it waits for, as in `Direction`.
        start: of each node, shape [nodes].
        end: of each node, shape [nodes].
        known: lower bounds of its start and end that are known from elsewhere.
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
    """Return earliest starts and ends of all nodes in one direction of time, with any number of processing elements.

    Args:
        direction: what nodes wait for.
        task: which nodes need a processing element, shape [nodes].
        work: cycles of each node, shape [nodes].
        known: lower bounds of starts and ends that are known from elsewhere; 0 by default.
    """
    start, end = ([0] * len(task), [0] * len(task)) if known is None else (known[0][:], known[1][:])
    for node in direction.order:
        begin, least = released(direction.awaited[node], start, end, (start[node], end[node]))
        start[node] = begin
        end[node] = max(begin + work[node], least) if task[node] else begin
    return start, end


def directions(dag: CanonicalDag) -> tuple[Direction, Direction]:
    """Return what nodes wait for, forwards and backwards in time, if all streams that may."""
    return direction(dag), direction(dag, backwards=True)


def direction(
    dag: CanonicalDag, streamed: Bool | None = None, forward: Int64 | int = 0, *, backwards: bool = False
) -> Direction:
    """Return what nodes wait for in one direction of time.

    A task starts when the first element of each producer can arrive. A producer writes its last element at its end;
    then the task still writes the ``ceil(O / I)`` elements that depend on it, in one cycle at least. An input through
    memory can be read when its producer has ended.

    Args:
        dag: the graph.
        streamed: which edges stream; by default all between two tasks, shape [edges].
        forward: cycles that an element takes from one task to the next, of all edges or of each, shape [edges].
        backwards: whether nodes wait for those that read from them.
    """
    order = topological_order(dag).tolist()
    until_first, after_last = stream_delays(dag)
    first, last = until_first[dag.edge_source] + forward, after_last[dag.edge_target] + forward
    is_stream = dag.between_tasks if streamed is None else streamed
    if backwards:
        back = _rows(dag.out_start, dag.out_edges, dag.edge_target, np.where(is_stream, last, NO_STREAM), first)
        return Direction(order[::-1], back)
    ahead = _rows(dag.in_start, dag.in_edges, dag.edge_source, np.where(is_stream, first, NO_STREAM), last)
    return Direction(order, ahead)


def _rows(start: Int64, edges: Int32, other: Int32, to_start: Int64, to_end: Int64) -> list[list[tuple[int, int, int]]]:
    """Return the triples of `Direction`; ``edges`` lists the edges of all nodes, those of a node begin at its start."""
    triples = list(zip(*(column[edges].tolist() for column in (other, to_start, to_end)), strict=True))
    return [triples[begin:end] for begin, end in pairwise(start.tolist())]


def stream_delays(dag: CanonicalDag) -> tuple[Int64, Int64]:
    """Return the cycles of each task until it writes its first element, and from its last read on, shape [nodes] each.

    Before its first write it reads ``ceil(I / O)`` elements; after its last read it writes ``ceil(O / I)``.
    """
    until_first = np.maximum(-(-dag.volume_in // np.maximum(dag.volume_out, 1)), 1)
    return until_first, np.maximum(-(-dag.volume_out // np.maximum(dag.volume_in, 1)), 1)
