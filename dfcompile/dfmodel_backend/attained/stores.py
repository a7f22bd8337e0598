"""Where the data of a configuration lies: on the chip, or in DRAM, and what that moves.

A store is an array that the canonical DAG puts in a buffer, or what the tasks of a scope hand to others where that does
not stream: through a border of configurations or of spatial blocks.

While a configuration runs SRAM may hold a store whole, from the first spatial block that touches it to the last; or
only the part that the tasks of a block read, fetched anew for each block. What it does not hold is written once to DRAM
and read from there each time that a task reads it; but tasks of one scope that read all of an array in one order, which
is known, in one spatial block, share a stream from DRAM, if SRAM holds what the last of them has yet to read.
"""

from enum import StrEnum, unique
from functools import cached_property

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag import CanonicalDag, TensorRole
from dfcompile.canonical_dag.dag import Bool, Int32, Int64
from dfcompile.dfmodel_backend.attained.holding import Holding, hold
from dfcompile.dfmodel_backend.columns import equal_rows
from dfcompile.distinct import first_places, numbered


@unique
class Place(StrEnum):
    """Where a store lies while a configuration runs."""

    CHIP = "chip"  # whole, in SRAM
    PARTS = "parts"  # in SRAM what a spatial block reads, at least of some blocks
    DRAM = "dram"


class StoreUse(Struct, frozen=True):
    """What a configuration does with a store, in bytes.

    Attributes:
        name: of the array, or of the scope of tasks.
        place: where it lies.
        written: made in the configuration.
        read: by its tasks, each time that an element is read counted.
        fetched: made elsewhere and read here, each element once.
        leaves: whether what is written is needed elsewhere, or is a result of the model.
        dram_read_bytes: read from DRAM.
        dram_write_bytes: written to DRAM.
        held_blocks: numbers of the spatial blocks whose part SRAM holds; empty unless the place is `Place.PARTS`.
        shared_blocks: numbers of the spatial blocks in which tasks share streams from DRAM.
    """

    name: str
    place: Place
    written: int
    read: int
    fetched: int
    leaves: bool
    dram_read_bytes: int
    dram_write_bytes: int
    held_blocks: tuple[int, ...]
    shared_blocks: tuple[int, ...]

    @property
    def dram_bytes(self) -> int:
        """Read and written."""
        return self.dram_read_bytes + self.dram_write_bytes


class BlockEdges(Struct, frozen=True, eq=False):
    """The edges of a configuration that do not stream, and when they are used.

    Attributes:
        edge: numbers, ascending.
        block: spatial block of the task that reads; of an edge to memory of the task that writes, shape [edges].
        writer_block: spatial block of the task that writes, 0 of what is there before, shape [edges].
        start: cycle in which the reading task starts, shape [edges].
        end: cycle in which it ends, shape [edges].
        work: its cycles, shape [edges].
        word_bytes: that it reads in a cycle, shape [edges].
        inside: whether each node of the DAG is a task of the configuration, shape [nodes].
        fifo_bytes: of each spatial block, shape [blocks].
    """

    edge: Int64
    block: Int64
    writer_block: Int64
    start: Int64
    end: Int64
    work: Int64
    word_bytes: Int64
    inside: Bool
    fifo_bytes: Int64


class StoreTable(Struct, frozen=True, dict=True):
    """The stores of a canonical DAG.

    Numbers are those of the buffer nodes in ascending order, then of the scopes.

    Attributes:
        dag: with volumes in elements.
    """

    dag: CanonicalDag

    @cached_property
    def _buffers(self) -> Int64:
        return np.flatnonzero(self.dag.is_buffer)

    @cached_property
    def of_node(self) -> Int64:
        """Store of each node: of a buffer itself, of a task what its scope hands on, shape [nodes]."""
        store = len(self._buffers) + self.dag.node_scope.astype(np.int64)
        store[self._buffers] = np.arange(len(self._buffers))
        return store

    @cached_property
    def moves_data(self) -> Bool:
        """Whether each edge is between tasks and buffers: marks of start and end move nothing, shape [edges]."""
        real: Bool = self.dag.is_computational | self.dag.is_buffer
        return np.asarray(real[self.dag.edge_source] & real[self.dag.edge_target])

    @cached_property
    def edge_bytes(self) -> Int64:
        """Bytes that travel on each edge, shape [edges]."""
        return self.dag.edge_volume * self.dag.edge_element_bytes

    @cached_property
    def distinct_bytes(self) -> Int64:
        """Bytes of the different elements of each edge, shape [edges]."""
        return self.dag.edge_distinct * self.dag.edge_element_bytes

    @cached_property
    def out_bytes(self) -> Int64:
        """What each task makes, in bytes: the largest of its output edges, shape [nodes]."""
        out = np.zeros(self.dag.nodes_count, dtype=np.int64)
        np.maximum.at(out, self.dag.edge_source, self.edge_bytes)
        return out

    @cached_property
    def whole_bytes(self) -> Int64:
        """Size of each buffer: of its array, or what is written to it, or what one task reads, shape [buffers]."""
        dag = self.dag
        sizes = {tensor.name: tensor.size_bytes for tensor in dag.tensors}
        read = np.zeros(dag.nodes_count, dtype=np.int64)
        np.maximum.at(read, dag.edge_source, self.distinct_bytes)
        whole = np.where(self.written_bytes > 0, self.written_bytes, read[self._buffers])
        for place, node in enumerate(self._buffers.tolist()):
            name = dag.scopes[dag.node_scope[node]].origin
            whole[place] = sizes.get(name, int(whole[place]))
        return whole

    @cached_property
    def written_bytes(self) -> Int64:
        """What all tasks write to each buffer, shape [buffers]."""
        written = np.zeros(self.dag.nodes_count, dtype=np.int64)
        by_task = self.dag.is_computational[self.dag.edge_source]
        np.add.at(written, self.dag.edge_target[by_task], self.edge_bytes[by_task])
        return written[self._buffers]

    @cached_property
    def readers(self) -> Int64:
        """Edges over which tasks read each buffer, shape [buffers]."""
        read = self.dag.edge_source[self.dag.is_computational[self.dag.edge_target]]
        return np.bincount(read, minlength=self.dag.nodes_count)[self._buffers]

    @cached_property
    def is_result(self) -> Bool:
        """Whether each buffer holds a result of the model: an output, or what nobody reads, shape [buffers]."""
        outputs = {tensor.name for tensor in self.dag.tensors if tensor.role is TensorRole.OUTPUT}
        names = [self.dag.scopes[self.dag.node_scope[node]].origin for node in self._buffers]
        found: Bool = np.array([name in outputs for name in names], dtype=np.bool_) | (self.readers == 0)
        return found

    def name(self, store: int) -> str:
        """Return the name of a store."""
        if store < len(self._buffers):
            return self.dag.node_name(int(self._buffers[store]))
        return self.dag.scopes[store - len(self._buffers)].name

    def uses(self, edges: BlockEdges, room: float) -> tuple[tuple[StoreUse, ...], int]:
        """Return what a configuration does with stores, and the SRAM that it takes with its FIFOs.

        Args:
            edges: of the configuration that do not stream.
            room: bytes of SRAM.
        """
        table = UseTable(self, edges)
        if not len(table.stores):
            return (), int(edges.fifo_bytes.max(initial=0))
        held = hold(table.holding, edges.fifo_bytes, room)
        dram_read = np.where(held.whole, table.fetched, table.read - held.saved_by_parts - held.saved_by_sharing)
        dram_write = np.where(table.leaves | ~held.whole, table.written, 0)
        in_parts = [len(blocks) > 0 for blocks in held.blocks]
        place = np.where(held.whole, Place.CHIP, np.where(in_parts, Place.PARTS, Place.DRAM))
        columns = (place, table.written, table.read, table.fetched, table.leaves, dram_read, dram_write)
        rows = zip(
            table.stores.tolist(), *(column.tolist() for column in columns), held.blocks, held.shared, strict=True
        )
        uses = tuple(StoreUse(self.name(store), Place(where), *row) for store, where, *row in rows)
        return uses, held.sram_bytes


class UseTable:
    """Bytes of each store that a configuration touches through memory, as columns.

    Attributes:
        stores: their numbers.
        written: made in the configuration, shape [stores].
        read: by its tasks, shape [stores].
        fetched: made elsewhere and read here, each element once, shape [stores].
        leaves: whether what is written is needed elsewhere, shape [stores].
        holding: what SRAM saves.
    """

    def __init__(self, table: StoreTable, edges: BlockEdges) -> None:
        dag, inside = table.dag, edges.inside
        source, target = dag.edge_source[edges.edge], dag.edge_target[edges.edge]
        from_buffer, to_buffer = dag.is_buffer[source], dag.is_buffer[target]
        between = dag.is_computational[source] & dag.is_computational[target]
        self.stores, self._row = numbered(np.where(to_buffer, table.of_node[target], table.of_node[source]))
        is_buffer = self.stores < len(table.whole_bytes)
        moved = table.edge_bytes[edges.edge]
        made, handed = between & inside[source], between & ~inside[source]
        reads = (from_buffer | between) & inside[target]
        self.written: Int64 = self._sums(moved, to_buffer)
        self.written += self._once(source, table.out_bytes, made)
        self.read = self._sums(moved, reads)
        born = self._once(source, table.out_bytes, handed)
        buffers = self.stores[is_buffer]
        elsewhere = table.written_bytes[buffers] - self.written[is_buffer]
        born[is_buffer] = np.where(table.written_bytes[buffers] > 0, elsewhere, table.whole_bytes[buffers])
        leaves = self._sums(np.ones(len(moved), dtype=np.int64), made & ~inside[target]) > 0
        read_here = self._sums(np.ones(len(moved), dtype=np.int64), from_buffer)[is_buffer]
        leaves[is_buffer] = table.is_result[buffers] | (read_here < table.readers[buffers])
        self.fetched = np.minimum(born, self.read)
        self.leaves = leaves & (self.written > 0)
        self.holding = self._holding(table, edges, reads, made | to_buffer, born)

    def _holding(self, table: StoreTable, edges: BlockEdges, reads: Bool, writes: Bool, born: Int64) -> Holding:
        blocks = len(edges.fifo_bytes)
        first = np.full(len(self.stores), blocks, dtype=np.int64)
        last = np.zeros(len(self.stores), dtype=np.int64)
        for which, block in ((reads, edges.block), (writes, edges.writer_block)):
            np.minimum.at(first, self._row[which], block[which])
            np.maximum.at(last, self._row[which], block[which])
        key = self._row * blocks + edges.block
        pairs, place = numbered(key[reads])
        saved, window = self._streams(table, edges, reads, np.searchsorted(pairs, key), len(pairs))
        row = pairs // blocks
        part, read = np.zeros(len(pairs), dtype=np.int64), np.zeros(len(pairs), dtype=np.int64)
        np.add.at(part, place, table.distinct_bytes[edges.edge[reads]])
        np.add.at(read, place, table.edge_bytes[edges.edge[reads]])
        return Holding(
            first=np.minimum(first, last),
            last=last,
            needed=self.written + self.fetched,
            saved=self.written + self.read - np.where(self.leaves, self.written, 0) - self.fetched,
            row=row,
            block=pairs % blocks,
            part=np.minimum(part, (self.written + born)[row]),
            read=read,
            shared=saved,
            window=window,
        )

    def _streams(
        self, table: StoreTable, edges: BlockEdges, reads: Bool, pair: Int64, pairs: int
    ) -> tuple[Int64, Int64]:
        """Return what sharing streams saves, and the SRAM that it takes, per store and block.

        A task reads an element in each cycle of its work. Of two tasks that read the same elements in the same order
        one is never farther ahead than the cycles from the first start to the last end but for the work.
        """
        saved, window = np.zeros(pairs, dtype=np.int64), np.zeros(pairs, dtype=np.int64)
        dag = table.dag
        source, target = dag.edge_source[edges.edge], dag.edge_target[edges.edge]
        whole = np.zeros(dag.nodes_count, dtype=np.int64)
        whole[dag.is_buffer] = table.whole_bytes
        reads_all = (table.distinct_bytes[edges.edge] == whole[source]) | dag.is_computational[source]
        reads_all &= reads & dag.is_ordered[edges.edge]
        found = np.flatnonzero(reads_all)
        if not len(found):
            return saved, window
        keys = (pair, source, dag.node_scope[target], dag.edge_order[edges.edge], dag.edge_volume[edges.edge])
        first, group, count = equal_rows([np.asarray(key)[found].astype(np.int64) for key in keys])
        begin, end = edges.start[found][first].copy(), edges.end[found][first].copy()
        np.minimum.at(begin, group, edges.start[found])
        np.maximum.at(end, group, edges.end[found])
        one = found[first]
        ahead = (end - begin - edges.work[one] + 1) * edges.word_bytes[one]
        several = count > 1
        np.add.at(saved, pair[one[several]], (count[several] - 1) * table.edge_bytes[edges.edge[one[several]]])
        np.add.at(window, pair[one[several]], ahead[several])
        return saved, window

    def _sums(self, moved: Int64, which: Bool) -> Int64:
        sums = np.zeros(len(self.stores), dtype=np.int64)
        np.add.at(sums, self._row[which], moved[which])
        return sums

    def _once(self, source: Int32, out_bytes: Int64, which: Bool) -> Int64:
        """Return what the tasks at the sources of some edges make, each task once."""
        nodes, first = first_places(source[which])
        sums = np.zeros(len(self.stores), dtype=np.int64)
        np.add.at(sums, self._row[which][first], out_bytes[nodes])
        return sums
