"""When the tasks of a mapping run, what configurations take, and what they do with memory, recounted."""

import math
from collections.abc import Mapping, Sequence
from itertools import starmap

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag import NO_KERNEL, CanonicalDag, TensorRole
from dfcompile.canonical_dag.dag import NO_MEMBER, UNORDERED, Bool, Int32, Int64
from dfcompile.dfmodel_backend.attained.holding import KEPT, SHARED
from dfcompile.dfmodel_backend.attained.mapping import TaskMapping
from dfcompile.dfmodel_backend.attained.stores import HELD_WHOLE, NOT_HELD, Place, StoreUse
from dfcompile.dfmodel_backend.check.machines import dram_bytes_per_ns
from dfcompile.dfmodel_backend.check.requirements import combined_ns, require
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
    edges = edges[np.argsort(row, kind="stable")]  # of each row those that read come first
    ends = np.cumsum(counts)
    borders = (ends - counts, ends - np.bincount(row[is_write], minlength=len(first)), ends)
    begin, middle, end = (column.tolist() for column in borders)
    figures = (configuration[node][first], store, read, written, np.minimum(born, read), leaves, whole)
    names = (dag.scopes[scope].name for scope in dag.node_scope[store].tolist())
    of_rows = (map(edges.__getitem__, map(slice, *both)) for both in ((begin, middle), (middle, end)))
    return list(starmap(Touch, zip(*(each.tolist() for each in figures), names, *of_rows, strict=True)))


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
        self._fetch = np.full(len(dag.edge_source), NOT_HELD)  # of each edge
        self._fetch[residency.edge] = residency.fetch
        self._cycles: list[Int64] = []  # when what SRAM holds changes
        self._changes: list[Int64] = []  # by how many bytes

    def check(self, touches: Mapping[str, Sequence[Touch]], capacity: float) -> None:
        """Check what the configuration touches, by name, on a chip of so many bytes of SRAM."""
        dag, machine, schedule = self._dag, self._mapping.machine_dag, self._schedule
        tasks = self._found.part.node[self._found.part.dag.is_computational]
        edges = np.flatnonzero(schedule.streamed & np.isin(dag.edge_source, tasks))
        begin = schedule.start[dag.edge_source[edges]]
        width = -(-dag.edge_volume[edges] // machine.edge_volume[edges])
        size = dag.edge_element_bytes[edges] * schedule.fifo_capacity[edges] * width
        self._put(begin, np.maximum(schedule.last_out[dag.edge_target[edges]], begin), size)
        require(f"{self._where}: bytes of FIFOs", self._found.fifo_bytes, self._peak())
        said = {store.name: store for store in self._found.stores}
        moved = self._moved([touch for own in touches.values() for touch in own])
        first = 0
        for name, own in touches.items():
            if name not in said:
                raise VerificationError(f"{self._where}: nothing is said of {name!r}")
            self._check_store(said.pop(name), own, moved[first : first + len(own)])
            first += len(own)
        for name in said:
            raise VerificationError(f"{self._where}: does not touch {name!r}")
        peak = self._peak()
        require(f"{self._where}: bytes of SRAM", self._found.sram_bytes, peak)
        if peak > capacity:
            raise VerificationError(f"{self._where}: found {peak} bytes of SRAM against {capacity:.0f}")

    def _check_store(self, store: StoreUse, touches: Sequence[Touch], moved: Int64) -> None:
        where = f"{self._where}, {store.name!r}"
        columns = zip(*((touch.written, touch.read, touch.fetched, touch.leaves) for touch in touches), strict=True)
        written, read, fetched, leaves = map(sum, columns)
        said = store.written, store.read, store.fetched, store.leaves
        require(f"{where}: bytes written, read, fetched; leaves", said, (written, read, fetched, leaves > 0))
        dram_read, dram_write, apart, held = moved.sum(axis=0).tolist()
        require(f"{where}: bytes of DRAM", (store.dram_read_bytes, store.dram_write_bytes), (dram_read, dram_write))
        require(f"{where}: place", store.place, Place.CHIP if not apart else Place.PARTS if held else Place.DRAM)

    def _put(self, begin: Int64, end: Int64, size: Int64) -> None:
        self._cycles += (begin, end)
        self._changes += (size, -size)

    def _peak(self) -> int:
        cycles, changes = (np.concatenate(columns) for columns in (self._cycles, self._changes))
        held = np.cumsum(changes[np.lexsort((changes, cycles))])  # room is made before it is taken
        return int(held.max(initial=0))

    def _moved(self, touches: Sequence[Touch]) -> Int64:
        """Return of each touch what `_check_store` sums.

        These are the bytes of DRAM that are read and written, whether the store is in parts, and fetches of it.
        """
        dag, schedule, count = self._dag, self._schedule, len(touches)
        number = np.arange(count)
        reads = np.concatenate([touch.reads for touch in touches] or [np.zeros(0, np.int64)])
        writes = np.concatenate([touch.writes for touch in touches] or [np.zeros(0, np.int64)])
        of_read = np.repeat(number, [len(touch.reads) for touch in touches])
        of_write = np.repeat(number, [len(touch.writes) for touch in touches])
        edges, touch_of = np.concatenate([reads, writes]), np.concatenate([of_read, of_write])
        is_held = self._fetch[edges] == HELD_WHOLE
        is_whole, is_parted = (np.bincount(touch_of, which, count) > 0 for which in (is_held, ~is_held))
        for wrong in np.flatnonzero(is_whole & is_parted).tolist():
            raise VerificationError(f"{self._where}: {touches[wrong].name!r} is held whole and not whole")
        node = np.concatenate([dag.edge_target[reads], dag.edge_source[writes]])
        begin, end = np.full(count, schedule.makespan_cycles), np.zeros(count, np.int64)
        np.minimum.at(begin, touch_of, schedule.start[node])
        np.maximum.at(end, touch_of, schedule.last_out[node])
        columns = [(touch.written, touch.fetched, touch.leaves, touch.whole) for touch in touches]
        written, fetched, leaves, whole = np.array(columns, np.int64).reshape(-1, 4).T
        self._put(begin[is_whole], end[is_whole], np.minimum(written + fetched, whole)[is_whole])
        parted = is_parted[of_read]
        dram_read, fetches = self._fetched(reads[parted], of_read[parted], touches)
        dram_read = np.where(is_whole, fetched, dram_read)
        return np.stack([dram_read, written * (leaves | is_parted), is_parted, is_whole | fetches], axis=1)

    def _fetched(self, edges: Int64, touch_of: Int64, touches: Sequence[Touch]) -> tuple[Int64, Int64]:
        """Put what fetches hold into SRAM; return the bytes that each touch reads from DRAM, and its fetches.

        Args:
            edges: that tasks read over, of stores that are not held whole.
            touch_of: number of the touch of each.
            touches: all of them.
        """
        dag, schedule, machine = self._dag, self._schedule, self._mapping.machine_dag
        moved, fetches = np.zeros((2, len(touches)), np.int64)
        sizes = dag.edge_volume * dag.edge_element_bytes
        is_alone = self._fetch[edges] == NOT_HELD
        np.add.at(moved, touch_of[is_alone], sizes[edges[is_alone]])
        edges, touch_of = edges[~is_alone], touch_of[~is_alone]
        by_fetch = np.argsort(self._fetch[edges], kind="stable")
        edges, touch_of = edges[by_fetch], touch_of[by_fetch]
        numbers, first, counts = np.unique(self._fetch[edges], return_index=True, return_counts=True)
        if not len(numbers):
            return moved, fetches
        one, touch, is_shared = edges[first], touch_of[first], counts > 1
        way = self._found.residency.way[numbers]

        def is_one(column: Int32 | Int64) -> Bool:
            """Return which fetches have one value of a column over their edges."""
            return np.logical_and.reduceat(column == np.repeat(column[first], counts), first)

        for wrong in np.flatnonzero(~is_one(touch_of)).tolist():
            raise VerificationError(f"{self._where}: fetch {numbers[wrong]} is of two stores")
        whole = np.array([one.whole for one in touches], np.int64)
        in_memory = dag.is_buffer[np.array([one.store for one in touches], np.int64)]
        distinct = (dag.edge_distinct * dag.edge_element_bytes)[edges]
        all_of_it = ~in_memory[touch] | np.logical_and.reduceat(distinct == whole[touch_of], first)
        columns = (dag.edge_order, dag.edge_volume, dag.edge_distinct, dag.edge_first)
        alike = np.logical_and.reduce([is_one(column[edges]) for column in columns])
        alike &= np.array([order != UNORDERED for order in dag.orders], np.bool_)[dag.edge_order[one]]
        is_same = all_of_it | alike & (dag.edge_first[one] >= 0)
        readers = dag.edge_target[edges]
        streams_alike = alike & is_one(dag.node_scope[readers]) | (way == KEPT)
        for wrong in np.flatnonzero(is_shared & ~(is_same & streams_alike)).tolist():
            where = f"{self._where}, {touches[touch[wrong]].name!r}"
            if is_same[wrong]:
                raise VerificationError(f"{where}: a stream is shared by tasks that do not read alike")
            raise VerificationError(
                f"{where}: a fetch is read by tasks of which it is not known that they read the same"
            )
        begin = np.minimum.reduceat(schedule.start[readers], first)
        end = np.maximum.reduceat(schedule.last_out[readers], first)
        word = -(-dag.edge_volume[one] // machine.edge_volume[one]) * dag.edge_element_bytes[one]
        ahead = end - begin - np.minimum.reduceat(machine.work[readers], first) + 1
        window, once = np.where(is_shared, ahead * word, 0), distinct[first]
        rolls = (way != KEPT) & (way != SHARED)
        rolling, again = one[rolls], np.zeros_like(once)
        reads, number = np.unique(np.stack([column[rolling] for column in columns[:3]]), axis=1, return_inverse=True)
        kept = np.array([_needed_again(dag.orders[order], *sizes) for order, *sizes in reads.T.tolist()], np.int64)
        again[rolls] = kept[number] * dag.edge_element_bytes[rolling]
        held = np.where(way == SHARED, window, np.minimum(window + again, once))
        self._put(begin, end, np.where(way == KEPT, once, held))
        np.add.at(moved, touch, np.where(way == SHARED, sizes[one], once))
        np.add.at(fetches, touch, 1)
        return moved, fetches


def _needed_again(order: str, volume: int, distinct: int) -> int:
    """Return the elements that a task has to keep of what it reads: all, or those that an inner loop walks again."""
    if volume == distinct:
        return 0
    if order == UNORDERED or order.startswith("["):
        return distinct
    loops = [tuple(map(int, loop.split("@"))) for loop in order.split(",")]
    different, span = 1, 0
    for extent, stride in sorted((loop for loop in loops if loop[1]), key=lambda loop: abs(loop[1])):
        if abs(stride) <= span:
            return distinct
        different, span = different * extent, span + abs(stride) * (extent - 1)
    if different != distinct:
        return distinct
    outer = next(place for place, loop in enumerate(loops) if not loop[1])
    return math.prod(extent for extent, stride in loops[outer:] if stride)


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
        self.times_ns = [combined_ns(overlap, *parts) for parts in self.parts_ns]
        self.time_ns = sum(self.times_ns)
