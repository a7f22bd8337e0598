"""The checker of a choice of arrays on the chip; it knows nothing of how stores are found or chosen."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.extraction.scopes import Array
from dfcompile.errors import VerificationError
from dfcompile.exploration.on_chip import OnChip, Store
from dfcompile.scheduler import Schedule


def check_on_chip(
    dag: CanonicalDag,
    arrays: Mapping[str, Array],
    schedule: Schedule,
    stores: Sequence[Store],
    found: OnChip,
    memory_bytes: int,
) -> None:
    """Check a choice: traffic, recounted edge by edge; and that memory suffices whenever something comes to the chip.

    Raises:
        VerificationError: traffic is another, or there is more on the chip than there is room.
    """
    traffic = _traffic(dag, arrays, schedule, {stores[at].name for at in found.stores})
    if traffic != found.io_bytes:
        raise VerificationError(f"on chip: found {found.io_bytes} bytes of traffic against {traffic} of all edges")
    for at in found.stores:
        cycle = stores[at].first_cycle
        there = [other for other in found.stores if _is_there(stores[other], cycle)]
        used = sum(stores[other].size_bytes for other in there)
        if used > memory_bytes:
            raise VerificationError(f"on chip: found {used} bytes in cycle {cycle} against {memory_bytes}")


def _is_there(store: Store, cycle: int) -> bool:
    return store.first_cycle <= cycle and (cycle < store.end_cycle or cycle == store.first_cycle)


def _traffic(dag: CanonicalDag, arrays: Mapping[str, Array], schedule: Schedule, on_chip: set[str]) -> int:
    """Return the bytes off the chip: every edge that does not stream, one by one."""
    written, read = Counter[str](), Counter[str]()
    made: dict[int, int] = {}  # what a task hands on in memory, once
    for edge in np.flatnonzero(~schedule.streamed).tolist():
        source, target = int(dag.edge_source[edge]), int(dag.edge_target[edge])
        moved = int(dag.edge_volume[edge]) * int(dag.edge_element_bytes[edge])
        if dag.is_buffer[source] and dag.is_computational[target]:
            read[dag.scopes[dag.node_scope[source]].origin] += moved
        elif dag.is_computational[source] and dag.is_buffer[target]:
            written[dag.scopes[dag.node_scope[target]].origin] += moved
        elif dag.is_computational[source] and dag.is_computational[target]:
            read[_handed_on(dag, source)] += moved
            made[source] = max(made.get(source, 0), moved)
    for task, moved in made.items():
        written[_handed_on(dag, task)] += moved
    total = 0
    for name in {*written, *read}:
        if name not in on_chip:
            total += written[name] + read[name]
        elif name in arrays:
            total += _passing(arrays[name], written[name], read[name])
    return total


def _handed_on(dag: CanonicalDag, task: int) -> str:
    return f"{dag.scopes[dag.node_scope[task]].name} handed on"


def _passing(array: Array, written: int, read: int) -> int:
    """Return what an array on the chip moves: all of an input or of weights once, all of a result once."""
    if not written:
        return min(array.elements * array.element_bytes, read)
    return written if not array.is_transient or not read else 0
