"""When the tasks of a mapping run, what configurations take, and what they do with memory, recounted."""

import math
from collections.abc import Mapping, Sequence
from itertools import starmap

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag import NO_KERNEL, CanonicalDag, TensorRole
from dfcompile.canonical_dag.dag import NO_MEMBER, UNORDERED, Bool, Int64
from dfcompile.dfmodel_backend.attained.holding import KEPT, SHARED
from dfcompile.dfmodel_backend.attained.mapping import TaskMapping
from dfcompile.dfmodel_backend.attained.stores import HELD_WHOLE, NOT_HELD, Place, StoreUse
from dfcompile.dfmodel_backend.check.machines import dram_bytes_per_ns
from dfcompile.dfmodel_backend.check.requirements import joined, require
from dfcompile.dfmodel_backend.columns import equal_rows
from dfcompile.dfmodel_backend.machine.system import System
from dfcompile.dfmodel_backend.options import Overlap
from dfcompile.dfmodel_backend.workload.graph import Exchange
from dfcompile.distinct import distinct
from dfcompile.errors import VerificationError


class Touch(Struct, frozen=True, eq=False):
    """What a configuration does with a store: a buffer node, or a task that hands on what it makes.

    Attributes:
        configuration: its number.
        store: number of the node.
        read: bytes.
        written: bytes.
        fetched: bytes that were made before the configuration and are read in it, each once.
        leaves: whether what is written is needed elsewhere.
        whole: bytes of all elements: of an array as the DAG says, or what is written to it, or the most read.
        name: of the store; of a task that of its scope.
        reads: edges over which tasks read.
        writes: edges over which tasks write.
    """

    configuration: int
    store: int
    read: int
    written: int
    fetched: int
    leaves: bool
    whole: int
    name: str
    reads: Int64
    writes: Int64


def touches_of(dag: CanonicalDag, configuration: Int64, streamed: Bool) -> list[Touch]:
    """Return what configurations do with memory, by configuration and store.

    Args:
        dag: the lowering, volumes in elements.
        configuration: of each task, negative for memory, shape [nodes].
        streamed: whether each edge is a FIFO, shape [edges].
    """
    task, real = dag.is_computational, dag.is_computational | dag.is_buffer
    source, target = dag.edge_source.astype(np.int64), dag.edge_target.astype(np.int64)
    stored, size = ~streamed & real[source] & real[target], dag.edge_volume * dag.edge_element_bytes
    reads, writes = np.flatnonzero(stored & task[target]), np.flatnonzero(stored & task[source])
    edges, node = np.concatenate([reads, writes]), np.concatenate([target[reads], source[writes]])
    is_write = np.arange(len(edges)) >= len(reads)
    touched = np.where(dag.is_buffer[target], target, source)[edges]
    first, row, counts = equal_rows([configuration[node], touched])
    store = touched[first]
    made = np.zeros(dag.nodes_count, dtype=np.int64)
    np.maximum.at(made, source, size)
    read, written = np.zeros((2, len(first)), dtype=np.int64)
    np.add.at(read, row[~is_write], size[reads])
    np.add.at(written, row[is_write], size[writes])
    is_buffer = dag.is_buffer[store]
    is_read, is_written = (np.bincount(row, which, len(first)) > 0 for which in (~is_write, is_write))
    written = np.where(is_buffer, written, np.where(is_written, made[store], 0))
    total, readers = np.zeros((2, dag.nodes_count), dtype=np.int64)
    np.add.at(total, store, written)
    np.add.at(readers, store, is_read)
    whole = _whole_bytes(dag, total, made)[store]
    born = np.where(total[store] > 0, total[store] - written, whole)
    outputs = {tensor.name for tensor in dag.tensors if tensor.role is TensorRole.OUTPUT}
    is_output = np.array([scope.origin in outputs for scope in dag.scopes], dtype=np.bool_)[dag.node_scope[store]]
    is_read_elsewhere = readers[store] - is_read > 0
    leaves = (written > 0) & (is_read_elsewhere | (is_buffer & (is_output | ~is_read)))
    by_row = np.split(np.argsort(row, kind="stable"), np.cumsum(counts)[:-1])
    figures = (configuration[node][first], store, read, written, np.minimum(born, read), leaves, whole)
    names = (dag.scopes[scope].name for scope in dag.node_scope[store].tolist())
    ends = ([edges[own[is_write[own] == way]] for own in by_row] for way in (False, True))
    return list(starmap(Touch, zip(*(each.tolist() for each in figures), names, *ends, strict=False)))


def _whole_bytes(dag: CanonicalDag, written: Int64, made: Int64) -> Int64:
    """Return the bytes of all elements of each store, shape [nodes].

    Args:
        dag: the lowering.
        written: by all configurations, shape [nodes].
        made: by each task, shape [nodes].
    """
    most_read = np.zeros(dag.nodes_count, dtype=np.int64)
    np.maximum.at(most_read, dag.edge_source, dag.edge_distinct * dag.edge_element_bytes)
    whole = np.where(dag.is_buffer, np.where(written > 0, written, most_read), made)
    sizes = {tensor.name: tensor.size_bytes for tensor in dag.tensors}
    for node in np.flatnonzero(dag.is_buffer & (dag.node_member == NO_MEMBER)).tolist():  # others are slices of one
        whole[node] = sizes.get(dag.scopes[dag.node_scope[node]].origin, whole[node])
    return whole


def check_bytes(dag: CanonicalDag, touches: Sequence[Touch], mapping: TaskMapping, system: System) -> None:
    """Check what the configurations of a mapping say of memory.

    * What is fetched for several tasks has the same elements for each: it is all of an array, or begins at one place
      and is read in one order.
    * It lies in SRAM from the start of the first task to the end of the last; or they are of one scope, and in SRAM is
      what the last is behind at most, with what each needs again, or without: then that is read again.
    * SRAM never holds more than there is, FIFOs included.

    Args:
        dag: the lowering, volumes in elements.
        touches: what configurations do with memory.
        mapping: to check.
        system: of the chip.

    Raises:
        VerificationError: naming the configuration and what it touches.
    """
    capacity = system.accelerator.sram_bytes or math.inf
    by_name: list[dict[str, list[Touch]]] = [{} for _ in mapping.configurations]
    for touch in touches:
        by_name[touch.configuration].setdefault(touch.name, []).append(touch)
    for place, own in enumerate(by_name):
        _Configuration(dag, mapping, place).check(own, capacity)


class _Configuration:
    def __init__(self, dag: CanonicalDag, mapping: TaskMapping, place: int) -> None:
        self._mapping, self._place, self._where = mapping, place, f"configuration {place}"
        self._found = mapping.configurations[place]
        self._dag, self._schedule = dag, mapping.schedule
        residency = self._found.residency
        self._fetch = dict(zip(residency.edge.tolist(), residency.fetch.tolist(), strict=True))
        self._way = residency.way.tolist()
        self._used: dict[int, int] = {}  # fetch and the store that it is of
        self._changes: list[tuple[int, int]] = []  # cycle and bytes, of what SRAM holds

    def check(self, touches: Mapping[str, Sequence[Touch]], capacity: float) -> None:
        """Check what the configuration touches, by name, on a chip of so many bytes of SRAM."""
        dag, machine = self._dag, self._mapping.machine_dag
        tasks = self._found.part.node[self._found.part.dag.is_computational]
        for edge in np.flatnonzero(self._schedule.streamed & np.isin(dag.edge_source, tasks)).tolist():
            source, target = int(dag.edge_source[edge]), int(dag.edge_target[edge])
            width = -(-int(dag.edge_volume[edge]) // int(machine.edge_volume[edge]))
            size = int(self._schedule.fifo_capacity[edge]) * width * int(dag.edge_element_bytes[edge])
            begin = int(self._schedule.start[source])
            self._put(begin, max(int(self._schedule.last_out[target]), begin), size)
        require(f"{self._where}: bytes of FIFOs", self._found.fifo_bytes, self._peak())
        said = {store.name: store for store in self._found.stores}
        for name, own in touches.items():
            if name not in said:
                raise VerificationError(f"{self._where}: nothing is said of {name!r}")
            self._check_store(said.pop(name), own)
        for name in said:
            raise VerificationError(f"{self._where}: does not touch {name!r}")
        peak = self._peak()
        require(f"{self._where}: bytes of SRAM", self._found.sram_bytes, peak)
        if peak > capacity:
            raise VerificationError(f"{self._where}: found {peak} bytes of SRAM against {capacity:.0f}")

    def _check_store(self, store: StoreUse, touches: Sequence[Touch]) -> None:
        where = f"{self._where}, {store.name!r}"
        columns = zip(*((touch.written, touch.read, touch.fetched, touch.leaves) for touch in touches), strict=True)
        written, read, fetched, leaves = map(sum, columns)
        said = store.written, store.read, store.fetched, store.leaves
        require(f"{where}: bytes written, read, fetched; leaves", said, (written, read, fetched, leaves > 0))
        dram_read, dram_write, apart, held = map(sum, zip(*map(self._moved, touches), strict=True))
        require(f"{where}: bytes of DRAM", (store.dram_read_bytes, store.dram_write_bytes), (dram_read, dram_write))
        require(f"{where}: place", store.place, Place.CHIP if not apart else Place.PARTS if held else Place.DRAM)

    def _put(self, begin: int, end: int, size: int) -> None:
        self._changes += ((begin, size), (end, -size))

    def _peak(self) -> int:
        most = held = 0
        for _, change in sorted(self._changes):  # room is made before it is taken
            held += change
            most = max(most, held)
        return most

    def _moved(self, touch: Touch) -> tuple[int, int, int, int]:
        """Return the bytes of DRAM that are read and written, whether the store is in parts, and fetches of it."""
        edges = (*touch.reads.tolist(), *touch.writes.tolist())
        flags = {self._fetch.get(edge, NOT_HELD) == HELD_WHOLE for edge in edges}
        if len(flags) > 1:
            raise VerificationError(f"{self._where}: {touch.name!r} is held whole and not whole")
        if flags == {True}:
            nodes = np.concatenate([self._dag.edge_target[touch.reads], self._dag.edge_source[touch.writes]])
            begin, end = int(self._schedule.start[nodes].min()), int(self._schedule.last_out[nodes].max())
            self._put(begin, end, min(touch.written + touch.fetched, touch.whole))
            return touch.fetched, touch.written if touch.leaves else 0, 0, 1
        dram_read, held = self._fetched(touch)
        return dram_read, touch.written, 1, held

    def _fetched(self, touch: Touch) -> tuple[int, int]:
        """Return the bytes that are read from DRAM, and how many fetches there are."""
        moved = 0
        fetches: dict[int, list[int]] = {}
        for edge in touch.reads.tolist():
            number = self._fetch.get(edge, NOT_HELD)
            if number == NOT_HELD:
                moved += self._size(edge)
            else:
                fetches.setdefault(number, []).append(edge)
        for number, edges in fetches.items():
            if self._used.setdefault(number, touch.store) != touch.store:
                raise VerificationError(f"{self._where}: fetch {number} is of two stores")
            moved += self._fetch_of(touch, np.array(edges), self._way[number])
        return moved, len(fetches)

    def _size(self, edge: int) -> int:
        return int(self._dag.edge_volume[edge]) * int(self._dag.edge_element_bytes[edge])

    def _fetch_of(self, touch: Touch, edges: Int64, way: int) -> int:
        """Put what a fetch holds into SRAM; return what it reads from DRAM."""
        dag, schedule = self._dag, self._schedule
        where = f"{self._where}, {touch.name!r}"
        one = int(edges[0])
        distinct = int(dag.edge_distinct[one]) * int(dag.edge_element_bytes[one])
        sizes = dag.edge_distinct[edges] * dag.edge_element_bytes[edges]
        all_of_it = not dag.is_buffer[touch.store] or bool((sizes == touch.whole).all())
        columns = (dag.edge_order, dag.edge_volume, dag.edge_distinct, dag.edge_first)
        alike = all(len(set(column[edges].tolist())) == 1 for column in columns)
        is_known = dag.orders[int(dag.edge_order[one])] != UNORDERED
        same = alike and is_known and int(dag.edge_first[one]) >= 0
        if len(edges) > 1 and not (all_of_it or same):
            raise VerificationError(
                f"{where}: a fetch is read by tasks of which it is not known that they read the same"
            )
        readers = dag.edge_target[edges]
        begin, end = int(schedule.start[readers].min()), int(schedule.last_out[readers].max())
        if way == KEPT:
            self._put(begin, end, distinct)
            return distinct
        if len(edges) > 1 and not (alike and is_known and len(set(dag.node_scope[readers].tolist())) == 1):
            raise VerificationError(f"{where}: a stream is shared by tasks that do not read alike")
        machine = self._mapping.machine_dag
        word = -(-int(dag.edge_volume[one]) // int(machine.edge_volume[one])) * int(dag.edge_element_bytes[one])
        ahead = end - begin - int(machine.work[readers].min()) + 1
        window = ahead * word if len(edges) > 1 else 0
        if way == SHARED:
            self._put(begin, end, window)
            return self._size(one)
        self._put(begin, end, min(window + self._needed_again(one, distinct), distinct))
        return distinct

    def _needed_again(self, edge: int, distinct: int) -> int:
        """Return the bytes that a task has to keep of what it reads: all, or those that an inner loop walks again."""
        dag = self._dag
        order = dag.orders[int(dag.edge_order[edge])]
        if int(dag.edge_volume[edge]) == int(dag.edge_distinct[edge]):
            return 0
        if order == UNORDERED or order.startswith("["):
            return distinct
        loops = [tuple(map(int, loop.split("@"))) for loop in order.split(",")]
        different, span = 1, 0
        for extent, stride in sorted((loop for loop in loops if loop[1]), key=lambda loop: abs(loop[1])):
            if abs(stride) <= span:
                return distinct
            different, span = different * extent, span + abs(stride) * (extent - 1)
        if different != int(dag.edge_distinct[edge]):
            return distinct
        outer = next(place for place, loop in enumerate(loops) if not loop[1])
        inner = math.prod(extent for extent, stride in loops[outer:] if stride)
        return inner * int(dag.edge_element_bytes[edge])


NOBODY = -1  # in the place of a kernel or a configuration, of memory


class TaskPlaces:
    """Which kernel and which configuration each task belongs to.

    Attributes:
        dag: the lowering, volumes in elements.
        attained: the mapping.
        names: of kernels with tasks; of tasks without a kernel that of their scope.
        kernel: number of each node's kernel, `NOBODY` of memory, shape [nodes].
        configuration: number of each task's configuration, `NOBODY` of memory, shape [nodes].
        place: number of the configuration of each kernel's tasks.
    """

    def __init__(self, dag: CanonicalDag, attained: TaskMapping) -> None:
        """Find the places of all tasks.

        Raises:
            VerificationError: a task is in no configuration or in two, or a kernel in several.
        """
        self.dag, self.attained = dag, attained
        scopes = [scope.name if scope.kernel == NO_KERNEL else dag.kernels[scope.kernel].name for scope in dag.scopes]
        with_tasks = distinct(dag.node_scope[dag.is_computational]).tolist()
        numbers = {name: number for number, name in enumerate(dict.fromkeys(scopes[scope] for scope in with_tasks))}
        self.names = list(numbers)
        of_scope = np.array([numbers.get(name, NOBODY) for name in scopes], dtype=np.int64)
        self.kernel = np.where(dag.is_computational, of_scope[dag.node_scope], NOBODY)
        self.configuration: Int64 = np.full(dag.nodes_count, NOBODY, dtype=np.int64)
        for place, found in enumerate(attained.configurations):
            nodes = found.part.node[found.part.dag.is_computational]
            if (self.configuration[nodes] != NOBODY).any():
                raise VerificationError(f"configuration {place}: found a task for the second time")
            self.configuration[nodes] = place
        lost = dag.is_computational & (self.configuration == NOBODY)
        if lost.any():
            raise VerificationError(f"node {dag.node_name(int(np.argmax(lost)))!r}: in no configuration")
        self.place: dict[str, int] = {}
        of_tasks = (column[dag.is_computational].tolist() for column in (self.kernel, self.configuration))
        for kernel, place in dict.fromkeys(zip(*of_tasks, strict=True)):
            if self.place.setdefault(self.names[kernel], place) != place:
                both = f"{self.place[self.names[kernel]]} and {place}"
                raise VerificationError(f"kernel {self.names[kernel]!r}: found in configurations {both}")


class TaskTimes(TaskPlaces):
    """What each configuration of a mapping takes.

    Attributes:
        system: with the chips in use.
        overlap: of compute, memory and network.
        exchanges: of all chips.
        period_ns: of a cycle.
        touches: what configurations do with memory.
        dram_bytes: of each configuration, on one chip.
        parts_ns: compute, memory and network of each configuration.
        times_ns: of each configuration.
        time_ns: of all of them.
    """

    def __init__(
        self, dag: CanonicalDag, attained: TaskMapping, system: System, overlap: Overlap, exchanges: Sequence[Exchange]
    ) -> None:
        """Sum up what configurations take.

        Raises:
            VerificationError: as of `TaskPlaces`.
        """
        super().__init__(dag, attained)
        self.system, self.overlap, self.exchanges = system, overlap, exchanges
        self.period_ns = 1 / system.accelerator.frequency_ghz
        self.touches = touches_of(self.dag, self.configuration, attained.schedule.streamed)
        stores = (one.stores for one in attained.configurations)
        self.dram_bytes = [sum(store.dram_read_bytes + store.dram_write_bytes for store in own) for own in stores]
        network_ns = [0.0] * len(attained.configurations)
        for exchange in exchanges:
            network_ns[self.place[exchange.source]] += exchange.time_ns
        self.parts_ns = [
            (one.schedule.makespan_cycles * self.period_ns, size / dram_bytes_per_ns(system), exchanged_ns)
            for one, size, exchanged_ns in zip(attained.configurations, self.dram_bytes, network_ns, strict=True)
        ]
        self.times_ns = [joined(overlap, *parts) for parts in self.parts_ns]
        self.time_ns = sum(self.times_ns)
