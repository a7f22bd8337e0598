"""What a schedule keeps in memory: arrays, from when to when, and the traffic that they cause."""

from collections.abc import Mapping

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.dag import Bool, Int32, Int64
from dfcompile.canonical_dag.extraction.scopes import Array
from dfcompile.distinct import distinct
from dfcompile.scheduler import Schedule

_NEVER = np.iinfo(np.int64).max


class Store(Struct, frozen=True):
    """An array that passes through memory: a buffer, or what the tasks of a scope hand on without a stream.

    Attributes:
        name: of the array, or of the scope.
        size_bytes: of all of it.
        first_cycle: in which a task that touches it starts.
        end_cycle: by which all tasks that touch it have ended.
        traffic_bytes: off the chip if it lies there: each element as often as tasks read or write it.
        least_bytes: off the chip if it lies on the chip: inputs and weights come once, results leave once.
    """

    name: str
    size_bytes: int
    first_cycle: int
    end_cycle: int
    traffic_bytes: int
    least_bytes: int

    @property
    def saved_bytes(self) -> int:
        """What it saves to have it on the chip."""
        return self.traffic_bytes - self.least_bytes


def stores_of(dag: CanonicalDag, arrays: Mapping[str, Array], schedule: Schedule) -> tuple[Store, ...]:
    """Return the stores of a schedule: buffers in the order of nodes, then scopes whose streams were cut.

    What a task hands to several others is written once. An array is there from the start of the first task that writes
    it (of an input, that reads it) to the end of the last that touches it.

    Args:
        dag: the graph.
        arrays: by name; a buffer has the name of its array as origin.
        schedule: of the graph.
    """
    task, buffer = dag.is_computational, dag.is_buffer
    stored = np.flatnonzero((task | buffer)[dag.edge_source] & (task | buffer)[dag.edge_target] & ~schedule.streamed)
    source, target = dag.edge_source[stored], dag.edge_target[stored]
    moved = dag.edge_volume[stored] * dag.edge_element_bytes[stored]
    return (
        *_buffers(dag, arrays, schedule, (source, target, moved)),
        *_handed_on(dag, schedule, (source, target, moved)),
    )


def _buffers(
    dag: CanonicalDag, arrays: Mapping[str, Array], schedule: Schedule, edges: tuple[Int32, Int32, Int64]
) -> list[Store]:
    source, target, moved = edges
    written, read = dag.is_buffer[target], dag.is_buffer[source]
    written_bytes = _sums(target[written], moved[written], dag.nodes_count)
    read_bytes = _sums(source[read], moved[read], dag.nodes_count)
    first, end = _spans(
        schedule,
        np.concatenate([target[written], source[read]]),
        np.concatenate([source[written], target[read]]),
    )
    found = []
    for node in np.flatnonzero(dag.is_buffer).tolist():
        array = arrays[dag.scopes[dag.node_scope[node]].origin]
        size = array.elements * array.element_bytes
        ins, outs = int(written_bytes[node]), int(read_bytes[node])
        if ins + outs == 0:
            continue
        leaves = ins if not array.is_transient or outs == 0 else 0
        comes = 0 if ins else min(size, outs)
        found.append(Store(array.name, size, int(first[node]), int(end[node]), ins + outs, leaves + comes))
    return found


def _handed_on(dag: CanonicalDag, schedule: Schedule, edges: tuple[Int32, Int32, Int64]) -> list[Store]:
    cut: Bool = dag.is_computational[edges[0]] & dag.is_computational[edges[1]]
    source, target, moved = edges[0][cut], edges[1][cut], edges[2][cut]
    if not len(source):
        return []
    made = np.zeros(dag.nodes_count, dtype=np.int64)
    np.maximum.at(made, source, moved)
    size = _sums(dag.node_scope, np.where(dag.is_computational, made, 0), len(dag.scopes))
    scope = dag.node_scope[source]
    read = _sums(scope, moved, len(dag.scopes))
    first, end = _spans(schedule, np.concatenate([scope, scope]), np.concatenate([source, target]))
    return [
        Store(f"{dag.scopes[at].name} handed on", int(size[at]), int(first[at]), int(end[at]),
              int(size[at]) + int(read[at]), 0)
        for at in distinct(scope).tolist()
    ]  # fmt: skip


def _sums(place: Int32, moved: Int64, count: int) -> Int64:
    sums = np.zeros(count, dtype=np.int64)
    np.add.at(sums, place, moved)
    return sums


def _spans(schedule: Schedule, place: Int32, tasks: Int32) -> tuple[Int64, Int64]:
    """Return the first start and the last end of the tasks that touch each place."""
    count = int(place.max(initial=-1)) + 1
    first, end = np.full(count, _NEVER, dtype=np.int64), np.zeros(count, dtype=np.int64)
    np.minimum.at(first, place, schedule.start[tasks])
    np.maximum.at(end, place, schedule.last_out[tasks])
    return first, end
