"""Cuts a replay into what can be simulated one after another: which nodes together, and in which order."""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from dfcompile.canonical_dag import CanonicalDag, topological_order
from dfcompile.canonical_dag.analysis import connected, order_from_sources
from dfcompile.canonical_dag.dag import Int64
from dfcompile.distinct import numbered
from dfcompile.errors import ReplayTooLargeError
from dfcompile.scheduler.simulation.access_sequence import ONE_CYCLE, Rows
from dfcompile.scheduler.simulation.replay import NEVER, NO_NODE, Replay, check_replay, previous_on_element
from dfcompile.scheduler.simulation.stretch import StreamingUnit
from dfcompile.scheduler.timing import streamed_components

Ends = npt.NDArray[np.integer]


def strong_components(count: int, source: Ends, target: Ends) -> Int64:
    """Return the number of each node's strongly connected component, shape [count].

    Components are numbered as Tarjan's algorithm on the reversed edges closes them: those that others wait for first.
    """
    if bool((source < target).all()):
        # Nodes are visited in turn, each when all that it waits for have been closed.
        return np.arange(count, dtype=np.int64)
    by_target = np.argsort(target, kind="stable")
    start = np.searchsorted(target[by_target], np.arange(count + 1))
    return np.array(_closed(source[by_target].tolist(), start.tolist()), dtype=np.int64)


def _closed(before: list[int], start: list[int]) -> list[int]:
    """Return in which turn Tarjan's algorithm, without recursion, closes the component of each node.

    Args:
        before: what each node waits for, node after node.
        start: of each node in ``before``, and its length.
    """
    count = len(start) - 1
    turn = [0] * (count + 1)
    visit = [0] * (count + 1)  # number of the visit, from 1; of a closed node a number above all
    lowest = [*[0] * count, -1]
    is_closed = count + 2
    visits = closed = 0
    open_nodes: list[int] = []
    # Above all nodes is one that waits for each of them in turn; it is never closed.
    node, waits = count, iter(range(count))
    path: list[tuple[int, Iterator[int]]] = [(node, waits)]
    while path:
        for other in waits:
            seen = visit[other]
            if not seen:
                path.append((node, waits))
                node, waits = other, iter(before[start[other] : start[other + 1]])
                visits += 1
                visit[node] = lowest[node] = visits
                open_nodes.append(node)
                break
            if seen < lowest[node]:
                lowest[node] = seen
        else:
            low = lowest[node]
            if low == visit[node]:
                low = member = is_closed
                while member != node:
                    member = open_nodes.pop()
                    turn[member], visit[member] = closed, is_closed
                closed += 1
            node, waits = path.pop()
            if low < lowest[node]:
                lowest[node] = low
    return turn[:count]


def in_turn(nodes: list[int], links: list[tuple[int, int]]) -> list[int]:
    """Return nodes so that each comes after those linked to it, as far as possible; those on circles come last."""
    followers: dict[int, list[int]] = {node: [] for node in nodes}
    missing = dict.fromkeys(nodes, 0)
    for before, after in links:
        followers[before].append(after)
        missing[after] += 1
    ordered = [node for node in nodes if not missing[node]]
    for node in ordered:  # grows while it is read
        for follower in followers[node]:
            missing[follower] -= 1
            if not missing[follower]:
                ordered.append(follower)
    return ordered + [node for node in nodes if missing[node] > 0]


def ends_come_in_turn(unit: StreamingUnit) -> bool:
    """Whether no task can wait, through others, for an end that waits for the task itself.

    Tasks joined by FIFOs that can be full wait for one another both ways. If between such groups all waits for ends and
    for elements lead one way, none of them is part of a circle of waits. Else there may be circles in which no time
    passes: access times would be found for what never takes place.
    """
    if not any(unit.waits):
        return True
    count = len(unit.nodes)
    streams = np.array([unit.source, unit.target], dtype=np.int64)
    ends = np.array([(other, node) for node, others in enumerate(unit.waits) for other in others], dtype=np.int64).T
    is_bounded = np.zeros(len(unit.edges), dtype=np.bool_)
    is_bounded[unit.bounded] = True
    group = connected(count, *streams[:, is_bounded])
    before, after = group[streams[:, ~is_bounded]]
    apart = before != after
    links = np.concatenate([group[ends], [before[apart], after[apart]]], axis=1)
    return len(order_from_sources(count, *links)) == count


_MOST_ELEMENTS = 2**33  # in a unit that is replayed part by part: some minutes
_MOST_AT_ONCE = 2**27  # in the memory: about 4 GB

Alone: TypeAlias = tuple[int, ...]  # nodes that do not stream: each works from the last end that it waits for


class Plan(Struct, frozen=True):
    """All nodes in an order in which each waits only for nodes before it, or for such of its own unit.

    Nodes from ``len(work) - barriers`` on are barriers between spatial blocks: they take no time.

    Attributes:
        work: cycles that each node runs if it never waits.
        waits: for each node those of other units that must have ended before it starts. A node waits for the blocks
            before its own by the barrier alone.
        sequence: units of tasks that stream together, and between them nodes that are a unit each.
    """

    work: tuple[int, ...]
    waits: tuple[tuple[int, ...], ...]
    sequence: tuple[StreamingUnit | Alone, ...]

    @property
    def units(self) -> list[StreamingUnit]:
        """The units of several tasks."""
        return [part for part in self.sequence if isinstance(part, StreamingUnit)]


def plan_replay(dag: CanonicalDag, replay: Replay) -> Plan:
    """Find the units of a replay, their inner and outer waits.

    Raises:
        VerificationError: the replay does not fit the graph.
    """
    check_replay(dag, replay)
    waiting, awaited, count = waits_of(dag, replay)
    # The unit of each node, shape [count]: nodes wait only for units of lower numbers and for their own
    lowest = np.arange(count, dtype=np.int64)
    lowest[: dag.nodes_count] = streamed_components(dag, replay.streamed)
    components, component = numbered(lowest)
    before, after = component[awaited], component[waiting]
    between = before != after
    before, after = before[between], after[between]
    turn = _turn_by_blocks(dag, replay, component)
    if not bool((turn[before] < turn[after]).all()):  # streams join blocks, or components wait for one another
        turn = strong_components(len(components), before, after)
    unit: Int64 = turn[component]
    inside = unit[waiting] == unit[awaited]
    inner: dict[int, list[int]] = {}
    for node, other in zip(waiting[inside].tolist(), awaited[inside].tolist(), strict=True):
        inner.setdefault(node, []).append(other)
    outside = ~inside
    if replay.barrier:  # the one between their blocks implies waits of one node for another
        both = np.flatnonzero((waiting < dag.nodes_count) & (awaited < dag.nodes_count))
        outside[both] &= replay.block[awaited[both]] >= replay.block[waiting[both]]
    work = (*replay.hardware.cycles(dag).tolist(), *[0] * (count - dag.nodes_count))
    return Plan(work, _rows(waiting[outside], awaited[outside], count), tuple(_sequence(dag, replay, unit, inner)))


def last_end(end: list[int], waits: tuple[int, ...], earliest: int = 0) -> int:
    """Return when the last of some nodes has ended, from which on a node that waits for them may run, or ``NEVER``.

    Args:
        end: of each node, shape [nodes].
        waits: those nodes.
        earliest: cycle before which it does not run either.
    """
    if not waits:
        return earliest
    ends = [end[node] for node in waits]
    return NEVER if NEVER in ends else max([earliest, *ends])


def check_sizes(dag: CanonicalDag, plan: Plan) -> None:
    """Check that each unit can be cut into stretches that fit in memory.

    Raises:
        ReplayTooLargeError: naming a node of the one that cannot.
    """
    for unit in filter(is_too_large, plan.units):
        elements, most = _round_elements(unit)
        around = f"around node {dag.node_name(unit.nodes[0])!r}"
        if elements > most:
            raise ReplayTooLargeError(
                f"simulation of {dag.name!r}: {elements} elements before the traffic {around} can repeat, "
                f"expected at most {most} (its volumes have only {unit.rounds} as common divisor)"
            )
        raise ReplayTooLargeError(
            f"simulation of {dag.name!r}: {unit.held} places in the fifos {around}, "
            f"expected at most {_MOST_AT_ONCE} (smaller fifos, or such as hold whole streams)"
        )


def is_too_large(unit: StreamingUnit) -> bool:
    """Return whether a unit cannot be cut into stretches that fit in memory."""
    elements, most = _round_elements(unit)
    return elements > most or unit.held > _MOST_AT_ONCE


def _round_elements(unit: StreamingUnit) -> tuple[int, int]:
    """Return the elements of a unit before its traffic can repeat, and how many fit."""
    return sum(unit.volume) // unit.rounds, _MOST_AT_ONCE if any(unit.waits) else _MOST_ELEMENTS


def waits_of(dag: CanonicalDag, replay: Replay) -> tuple[Int64, Int64, int]:
    """Return who waits for the end of whom, and the number of nodes with barriers."""
    memory = np.flatnonzero(~replay.streamed)
    previous = previous_on_element(dag, replay)
    follows = np.flatnonzero(previous != NO_NODE)
    waiting = [dag.edge_target[memory].astype(np.int64), follows]
    awaited = [dag.edge_source[memory].astype(np.int64), previous[follows].astype(np.int64)]
    count = dag.nodes_count
    if replay.barrier and count:
        # Barrier b lies before block b: it waits for the barrier before it and the nodes of the block before it.
        blocks = int(replay.block.max()) + 1
        nodes = np.arange(dag.nodes_count, dtype=np.int64)
        barriers = count + np.arange(blocks + 1, dtype=np.int64)
        waiting += [nodes, barriers[replay.block + 1], barriers[1:]]
        awaited += [barriers[replay.block], nodes, barriers[:-1]]
        count += blocks + 1
    return np.concatenate(waiting), np.concatenate(awaited), count


def _turn_by_blocks(dag: CanonicalDag, replay: Replay, component: Int64) -> Int64:
    """Return the components' numbers if they come block after block, a barrier before each, shape [components]."""
    nodes, count = dag.nodes_count, len(component)
    turn = 2 * np.arange(-nodes, count - nodes, dtype=np.int64)  # barrier b before block b
    turn[:nodes] = 2 * replay.block.astype(np.int64) + 1
    last = np.full(int(component.max(initial=-1)) + 1, -1, dtype=np.int64)
    np.maximum.at(last, component, turn)
    found = np.empty(len(last), dtype=np.int64)
    found[np.argsort(last, kind="stable")] = np.arange(len(last))
    return found


def _rows(row: Int64, values: Int64, count: int) -> tuple[tuple[int, ...], ...]:
    """Return the values of each row, in the order given."""
    by_row = np.argsort(row, kind="stable")
    starts = np.searchsorted(row[by_row], np.arange(count + 1)).tolist()
    sorted_values = tuple(values[by_row].tolist())
    return tuple(sorted_values[start:end] for start, end in pairwise(starts))


def _sequence(
    dag: CanonicalDag, replay: Replay, unit: Int64, inner_waits: Mapping[int, list[int]]
) -> Iterator[StreamingUnit | Alone]:
    """Yield the units of several nodes, and between them those of one node."""
    order = np.arange(len(unit), dtype=np.int64)
    order[: dag.nodes_count] = topological_order(dag)
    order = order[np.argsort(unit[order], kind="stable")]
    streamed = np.flatnonzero(replay.streamed)
    unit_of_edge = unit[dag.edge_source[streamed]]
    edges = streamed[np.argsort(unit_of_edge, kind="stable")]
    size = np.bincount(unit)
    shared = np.flatnonzero(size > 1)
    ends = np.cumsum(size)[shared]
    edge_ends = np.cumsum(np.bincount(unit_of_edge, minlength=len(size)))[shared]
    read_at, write_at = replay.hardware.turns(dag, backwards=replay.is_reversed)
    ends_of_edges = dag.edge_source[edges], dag.edge_target[edges]
    forward = replay.hardware.forward(dag, backwards=replay.is_reversed)
    columns = (edges, *ends_of_edges, replay.fifo_capacity[edges], read_at[edges], write_at[edges], forward[edges])
    nodes, of_edges = tuple(order.tolist()), [column.tolist() for column in columns]
    # Reads and writes of all nodes, barriers included, shape [count] each: a source is as fast as what it writes, a
    # sink as what it reads; what has no work accesses nothing. Then the cycles of their rows, and of their pipelines:
    # filled before their accesses, backwards in time, or drained after them.
    both = np.zeros((6, len(unit)), dtype=np.int64)
    volumes = np.stack([dag.volume_in, dag.volume_out])
    both[2:4, : dag.nodes_count] = replay.hardware.rows(dag)
    both[4 if replay.is_reversed else 5, : dag.nodes_count] = replay.hardware.pipeline(dag)
    both[:2, : dag.nodes_count] = np.where(dag.work > 0, np.where(volumes > 0, volumes, volumes[::-1]), 0)
    accesses = both.tolist()
    done = first_edge = 0
    for end, first, last_edge in zip(ends.tolist(), (ends - size[shared]).tolist(), edge_ends.tolist(), strict=True):
        if done < first:
            yield nodes[done:first]
        own = [column[first_edge:last_edge] for column in of_edges]
        yield _unit(nodes[first:end], own, accesses, inner_waits, replay.hardware.hop_cycles)
        done, first_edge = end, last_edge
    if done < len(nodes):
        yield nodes[done:]


def _unit(
    members: Alone,
    edges: list[list[int]],
    accesses: list[list[int]],
    inner_waits: Mapping[int, list[int]],
    hop_cycles: int,
) -> StreamingUnit:
    """Return a unit whose nodes come after those they wait for, as far as possible.

    Args:
        members: in topological order and barriers last.
        edges: between them: numbers, sources, targets, capacities, turns to be read and written, and cycles forward.
        accesses: reads and writes of all nodes, cycles of their rows, and of their pipelines.
        inner_waits: of each node those of its unit that must have ended before it starts.
        hop_cycles: of the FIFOs.
    """
    numbers, sources, targets, *of_edges = edges
    nodes = list(members)
    waits = [(other, node) for node in nodes for other in inner_waits.get(node, ())]
    if waits:
        nodes = in_turn(nodes, [*zip(sources, targets, strict=True), *waits])
    place = {node: number for number, node in enumerate(nodes)}
    reads, writes, *rows, filling, draining = (tuple(map(column.__getitem__, nodes)) for column in accesses)
    source, target = (tuple(map(place.__getitem__, ends)) for ends in (sources, targets))
    inner = tuple([tuple(map(place.__getitem__, inner_waits.get(node, ()))) for node in nodes])
    capacity, read_at, write_at, forward = map(tuple, of_edges)
    of_nodes = tuple([Rows(*cycles) if any(cycles) else ONE_CYCLE for cycles in zip(*rows, strict=True)])
    columns = (reads, writes, source, target, capacity, inner, of_nodes, read_at, write_at, forward)
    return StreamingUnit(tuple(nodes), tuple(numbers), *columns, hop_cycles, filling, draining)
