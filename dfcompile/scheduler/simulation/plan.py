"""Cuts a replay into units that can be simulated one after another."""

from dataclasses import dataclass
from math import gcd

import numpy as np
import numpy.typing as npt

from dfcompile.canonical_dag import CanonicalDag, topological_order
from dfcompile.canonical_dag.dag import Int64
from dfcompile.errors import UserError
from dfcompile.scheduler.simulation.components import joined, strong_components
from dfcompile.scheduler.simulation.replay import NO_NODE, Replay, check_replay, previous_on_element
from dfcompile.scheduler.simulation.stretch import StreamingUnit
from dfcompile.scheduler.simulation.turns import in_turn

_MOST_ELEMENTS = 2**33  # in a unit that is replayed part by part: some minutes
_MOST_AT_ONCE = 2**27  # in the memory: about 4 GB


@dataclass(frozen=True, slots=True)
class Plan:
    """Units in an order in which each waits only for nodes of units before it.

    Nodes from ``len(work) - barriers`` on are barriers between spatial blocks: they take no time.

    Attributes:
        work: cycles that each node runs if it never waits.
        units: tasks that stream together, or a single node.
        outer_waits: for each node of each unit, nodes of other units that must have ended before it starts.
    """

    work: tuple[int, ...]
    units: tuple[StreamingUnit, ...]
    outer_waits: tuple[tuple[tuple[int, ...], ...], ...]


def plan_replay(dag: CanonicalDag, replay: Replay) -> Plan:
    """Find the units of a replay, their inner and outer waits.

    Raises:
        VerificationError: the replay does not fit the graph.
        UserError: a unit cannot be cut into stretches that fit in memory.
    """
    check_replay(dag, replay)
    waiting, awaited, count = _waits(dag, replay)
    streamed = np.flatnonzero(replay.streamed)
    lowest = joined(count, dag.edge_source[streamed], dag.edge_target[streamed])
    _, component = np.unique(lowest, return_inverse=True)
    between = component[waiting] != component[awaited]
    groups = strong_components(
        int(component.max()) + 1 if count else 0, component[awaited[between]], component[waiting[between]]
    )
    unit_of_component = np.zeros(len(groups) and int(component.max()) + 1, dtype=np.int64)
    for number, group in enumerate(groups):
        unit_of_component[group] = number
    unit_of = unit_of_component[component]
    members = _members(dag, unit_of)
    waits = _rows(waiting, awaited, count)
    edges = _rows(unit_of[dag.edge_source[streamed]], streamed, len(groups))
    units, outer = [], []
    work = [*dag.work.tolist(), *[0] * (count - dag.nodes_count)]
    maker = _UnitMaker(dag, replay, work)
    for number, nodes in enumerate(members):
        inside = set(nodes)
        inner_waits = {node: [other for other in waits[node] if other in inside] for node in nodes}
        unit = maker.unit(nodes, edges[number], inner_waits)
        _check_size(dag, unit)
        units.append(unit)
        outer.append(tuple(tuple(other for other in waits[node] if other not in inside) for node in unit.nodes))
    return Plan(tuple(work), tuple(units), tuple(outer))


def _check_size(dag: CanonicalDag, unit: StreamingUnit) -> None:
    elements = sum(unit.volume(edge) for edge in range(len(unit.edges))) // unit.rounds
    most = _MOST_AT_ONCE if any(unit.waits) else _MOST_ELEMENTS
    if elements > most:
        raise UserError(
            f"simulation of {dag.name!r}: {elements} elements before the traffic around node "
            f"{dag.node_name(unit.nodes[0])!r} can repeat, expected at most {most} (its volumes have only "
            f"{unit.rounds} as common divisor)"
        )
    held = sum(unit.capacity[edge] for edge in range(len(unit.edges)) if unit.is_bounded(edge))
    if held > _MOST_AT_ONCE:
        raise UserError(
            f"simulation of {dag.name!r}: {held} places in the fifos around node {dag.node_name(unit.nodes[0])!r}, "
            f"expected at most {_MOST_AT_ONCE} (smaller fifos, or such as hold whole streams)"
        )


def _waits(dag: CanonicalDag, replay: Replay) -> tuple[Int64, Int64, int]:
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


def _members(dag: CanonicalDag, unit_of: Int64) -> list[list[int]]:
    """Return the nodes of each unit in topological order, barriers last."""
    order = np.arange(len(unit_of), dtype=np.int64)
    order[: dag.nodes_count] = topological_order(dag)
    return _rows(unit_of[order], order, int(unit_of.max()) + 1 if len(unit_of) else 0)


def _rows(row: npt.NDArray[np.integer], values: npt.NDArray[np.integer], count: int) -> list[list[int]]:
    """Return the values of each row, in the order given."""
    by_row = np.argsort(row, kind="stable")
    starts = np.searchsorted(row[by_row], np.arange(count + 1)).tolist()
    sorted_values = values[by_row].tolist()
    return [sorted_values[starts[number] : starts[number + 1]] for number in range(count)]


class _UnitMaker:
    """Makes units from their members."""

    def __init__(self, dag: CanonicalDag, replay: Replay, work: list[int]) -> None:
        self._source = dag.edge_source.tolist()
        self._target = dag.edge_target.tolist()
        self._capacity = replay.fifo_capacity.tolist()
        barriers = [0] * (len(work) - dag.nodes_count)
        # A source is as fast as what it writes, a sink as what it reads.
        volume_in, volume_out = dag.volume_in, dag.volume_out
        self._reads = [*np.where(volume_in > 0, volume_in, volume_out).tolist(), *barriers]
        self._writes = [*np.where(volume_out > 0, volume_out, volume_in).tolist(), *barriers]
        self._work = work

    def unit(self, members: list[int], edges: list[int], waits: dict[int, list[int]]) -> StreamingUnit:
        links = [(self._source[edge], self._target[edge]) for edge in edges]
        links += [(other, node) for node, others in waits.items() for other in others]
        nodes = in_turn(members, links) if any(waits.values()) else members
        place = {node: number for number, node in enumerate(nodes)}
        inputs: list[list[int]] = [[] for _ in nodes]
        outputs: list[list[int]] = [[] for _ in nodes]
        for number, edge in enumerate(edges):
            outputs[place[self._source[edge]]].append(number)
            inputs[place[self._target[edge]]].append(number)
        tasks = [node if self._work[node] else None for node in nodes]
        reads = tuple(0 if node is None else self._reads[node] for node in tasks)
        writes = tuple(0 if node is None else self._writes[node] for node in tasks)
        return StreamingUnit(
            nodes=tuple(nodes),
            edges=tuple(edges),
            reads=reads,
            writes=writes,
            inputs=tuple(tuple(row) for row in inputs),
            outputs=tuple(tuple(row) for row in outputs),
            source=tuple(place[self._source[edge]] for edge in edges),
            target=tuple(place[self._target[edge]] for edge in edges),
            capacity=tuple(self._capacity[edge] for edge in edges),
            waits=tuple(tuple(place[other] for other in waits[node]) for node in nodes),
            rounds=1 if any(waits.values()) else max(gcd(*reads, *writes), 1),
        )
