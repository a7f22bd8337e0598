"""What a schedule keeps in memory: arrays, from when to when, and the traffic that they cause."""

from collections.abc import Mapping

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag import CanonicalDag
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
    source, target = dag.edge_source[stored].astype(np.int64), dag.edge_target[stored].astype(np.int64)
    moved, writes, reads = dag.edge_volume[stored] * dag.edge_element_bytes[stored], task[source], task[target]
    place = np.where(buffer[target], target, source)
    cut = writes & reads
    place[cut] = dag.nodes_count + dag.node_scope[source[cut]]
    made = np.zeros(dag.nodes_count, dtype=np.int64)
    np.maximum.at(made, source[cut], moved[cut])
    written, read, end = np.zeros((3, dag.nodes_count + len(dag.scopes)), dtype=np.int64)
    np.add.at(written, place[writes & ~cut], moved[writes & ~cut])
    np.add.at(written, dag.nodes_count + dag.node_scope, made)
    np.add.at(read, place[reads], moved[reads])
    first = np.full_like(end, _NEVER)
    for touches, tasks in ((writes, source[writes]), (reads, target[reads])):
        np.minimum.at(first, place[touches], schedule.start[tasks])
        np.maximum.at(end, place[touches], schedule.last_out[tasks])
    found = []
    for at in distinct(place).tolist():
        ins, outs, cycles = int(written[at]), int(read[at]), (int(first[at]), int(end[at]))
        if at >= dag.nodes_count:
            name = f"{dag.scopes[at - dag.nodes_count].name} handed on"
            found.append(Store(name, ins, *cycles, traffic_bytes=ins + outs, least_bytes=0))
            continue
        array = arrays[dag.scopes[dag.node_scope[at]].origin]
        size = array.elements * array.element_bytes
        comes = 0 if ins else min(size, outs)
        leaves = ins if not array.is_transient or outs == 0 else 0
        found.append(Store(array.name, size, *cycles, traffic_bytes=ins + outs, least_bytes=leaves + comes))
    return tuple(found)
