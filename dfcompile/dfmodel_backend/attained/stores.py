"""Where the data of a configuration lies: on the chip, or in DRAM, and what that moves.

A store is an array that the canonical DAG puts in a buffer, or what the tasks of a scope hand to others where that does
not stream: through a border of configurations or of spatial blocks.

While a configuration runs SRAM may hold

- a store whole, from the cycle in which it is first touched to the one in which it is last: an array, or of a scope
  what single tasks make;
- or of it the elements that tasks read which start while the first of them runs, fetched once for all of these, and if
  they stay until they are needed again once for several of such fetches;
- or, where these tasks are of one scope and read in one order, what the last of them has yet to read.

What it does not hold is written once to DRAM and read from there each time that a task reads it.
"""

from enum import StrEnum, unique
from math import prod

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag import CanonicalDag, TensorRole
from dfcompile.canonical_dag.dag import NO_MEMBER, UNORDERED, Bool, Int8, Int64
from dfcompile.canonical_dag.extraction.traversal import loops_of, reused_elements
from dfcompile.dfmodel_backend.attained.footprints import MemoryEdges, Spans, fetches_of, largest, sums
from dfcompile.dfmodel_backend.attained.holding import Holding, Wholes, hold
from dfcompile.distinct import numbered


@unique
class Place(StrEnum):
    """Where a store lies while a configuration runs."""

    CHIP = "chip"  # whole, in SRAM
    PARTS = "parts"  # of some of it what tasks read at a time
    DRAM = "dram"


HELD_WHOLE = -2
NOT_HELD = -1


class Residency(Struct, frozen=True, eq=False):
    """What SRAM holds while a configuration runs.

    Attributes:
        edge: through memory, ascending, shape [edges].
        fetch: number of what brings what is read over each edge; or that it is read alone: `NOT_HELD`; or that all of
            what it leads to or comes from is held: `HELD_WHOLE`, shape [edges].
        way: of each fetch `KEPT`, `ROLLING` or `SHARED`, shape [fetches].
        sram_bytes: held at a time at most, FIFOs included.
        fifo_bytes: of FIFOs at a time at most.
        needed_bytes: that are moved where SRAM holds all that goes through memory: each element read or written once.
    """

    edge: Int64
    fetch: Int64
    way: Int8
    sram_bytes: int
    fifo_bytes: int
    needed_bytes: int


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
    """

    name: str
    place: Place
    written: int
    read: int
    fetched: int
    leaves: bool
    dram_read_bytes: int
    dram_write_bytes: int

    @property
    def dram_bytes(self) -> int:
        """Read and written."""
        return self.dram_read_bytes + self.dram_write_bytes


class StoreTable:
    """The stores of a canonical DAG.

    A store is a scope: the slices of an array, or what tasks hand on. Columns of buffers have these in ascending order.

    Attributes:
        dag: with volumes in elements.
        buffer: number of each buffer among the buffers; of other nodes, of the last one before them, shape [nodes].
        moves_data: whether each edge is between tasks and buffers: marks of start and end move nothing, shape [edges].
        edge_bytes: that travel on each edge, shape [edges].
        distinct_bytes: of the different elements of each edge, shape [edges].
        reused_bytes: that a task must have at hand so that it takes no element of an edge twice, shape [edges].
        out_bytes: what each task makes: the largest of its output edges, shape [nodes].
        written_bytes: what all tasks write to each buffer, shape [buffers].
        whole_bytes: of each buffer: of its array, or what is written to it, or what one task reads, shape [buffers].
        readers: edges over which tasks read each buffer, shape [buffers].
        is_result: whether each buffer holds a result of the model: an output, or what nobody reads, shape [buffers].
    """

    def __init__(self, dag: CanonicalDag) -> None:
        self.dag = dag
        task, source, target, nodes = dag.is_computational, dag.edge_source, dag.edge_target, dag.nodes_count
        buffers = np.flatnonzero(dag.is_buffer)
        self.buffer: Int64 = np.cumsum(dag.is_buffer) - 1
        real = task | dag.is_buffer
        self.moves_data: Bool = real[source] & real[target]
        self.edge_bytes: Int64 = dag.edge_volume * dag.edge_element_bytes
        self.distinct_bytes: Int64 = dag.edge_distinct * dag.edge_element_bytes
        self.reused_bytes = _reused_elements(dag) * dag.edge_element_bytes
        self.out_bytes = largest(source, self.edge_bytes, nodes)
        self.written_bytes = sums(target[task[source]], self.edge_bytes[task[source]], nodes)[buffers]
        self.readers: Int64 = np.bincount(source[task[target]], minlength=nodes)[buffers]
        outputs = {tensor.name for tensor in dag.tensors if tensor.role is TensorRole.OUTPUT}
        is_output = np.array([scope.origin in outputs for scope in dag.scopes], dtype=np.bool_)
        self.is_result: Bool = is_output[dag.node_scope[buffers]] | (self.readers == 0)
        read = largest(source, self.distinct_bytes, nodes)[buffers]
        self.whole_bytes = np.where(self.written_bytes > 0, self.written_bytes, read)
        sizes = {tensor.name: tensor.size_bytes for tensor in dag.tensors}
        for place in np.flatnonzero(dag.node_member[buffers] == NO_MEMBER).tolist():  # all of an array
            name = dag.scopes[dag.node_scope[buffers[place]]].origin
            self.whole_bytes[place] = sizes.get(name, self.whole_bytes[place])

    def is_like(self, other: "StoreTable") -> bool:
        """Return whether stores are as large as others of the same tasks and edges, and hold results where they do.

        It depends on what is known of arrays: of a graph whose tasks belong to no kernels that is less.
        """
        columns = ("is_result", "whole_bytes")
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in columns)

    def name(self, store: int) -> str:
        """Return the name of a store."""
        return self.dag.scopes[store].name

    def uses(self, edges: MemoryEdges, room: float) -> tuple[tuple[StoreUse, ...], Residency]:
        """Return what a configuration does with stores, and what SRAM holds.

        Args:
            edges: of the configuration that do not stream.
            room: bytes of SRAM.
        """
        return _Uses(self, edges).held(room)


def _reused_elements(dag: CanonicalDag) -> Int64:
    """Return how many elements of each edge a task must have at hand so that it takes none twice, shape [edges]."""
    loops = [loops_of(order) if order != UNORDERED else () for order in dag.orders]
    taken = np.array([prod(loop.extent for loop in each if loop.stride) for each in loops], dtype=np.int64)
    reused = np.array([-1 if (found := reused_elements(each)) is None else found for each in loops], dtype=np.int64)
    order = dag.edge_order
    is_known = dag.is_ordered & (reused[order] >= 0) & (taken[order] == dag.edge_distinct)
    elements = dag.edge_distinct.copy()
    elements[is_known] = np.minimum(reused[order], elements)[is_known]
    elements[dag.edge_volume == dag.edge_distinct] = 0
    return elements


class _Uses:
    """What a configuration touches through memory: a keeper is a buffer, or a task that hands on what it makes."""

    def __init__(self, table: StoreTable, edges: MemoryEdges) -> None:
        dag = table.dag
        self._table, self._edges = table, edges
        source, target = dag.edge_source[edges.edge], dag.edge_target[edges.edge]
        to_buffer = dag.is_buffer[target]
        self._is_handed = ~(dag.is_buffer[source] | to_buffer)
        keeper = np.where(to_buffer, target, source)
        self._keepers, self._row = numbered(keeper)
        self._is_buffer = dag.is_buffer[self._keepers]
        place = table.buffer[self._keepers[self._is_buffer]]
        moved = table.edge_bytes[edges.edge]
        count = len(self._keepers)
        self._read = sums(self._row[edges.is_read], moved[edges.is_read], count)
        self._written = sums(self._row[to_buffer], moved[to_buffer], count)
        is_made = np.bincount(self._row, edges.is_written & ~to_buffer, count) > 0
        made = table.out_bytes[self._keepers]
        self._written += np.where(is_made, made, 0)
        self._born = np.where(self._is_buffer | is_made, 0, made)
        everywhere = table.written_bytes[place]
        elsewhere = everywhere - self._written[self._is_buffer]
        self._born[self._is_buffer] = np.where(everywhere > 0, elsewhere, table.whole_bytes[place])
        readers = np.bincount(self._row, edges.is_read, count)[self._is_buffer]
        leaves = np.bincount(self._row, edges.is_written & self._is_handed & ~edges.is_read, count) > 0
        leaves[self._is_buffer] = table.is_result[place] | (readers < table.readers[place])
        self._leaves = leaves & (self._written > 0)
        self._fetched = np.minimum(self._born, self._read)
        self._whole = np.full(count, -1, dtype=np.int64)  # of an array
        self._whole[self._is_buffer] = table.whole_bytes[place]

    def held(self, room: float) -> tuple[tuple[StoreUse, ...], Residency]:
        edges, table = self._edges, self._table
        edge, keeper = edges.edge[edges.is_read], self._row[edges.is_read]
        is_all = (table.distinct_bytes[edge] == self._whole[keeper]) | self._is_handed[edges.is_read]
        fetches = fetches_of(table.dag, edges, keeper, is_all, table.reused_bytes[edge])
        wholes = self._wholes()
        held = hold(wholes, fetches, edges.fifos, room)
        is_link = np.zeros(len(held.stays), dtype=np.bool_)
        is_link[1:] = held.stays[:-1]
        number = np.cumsum(~is_link) - 1  # fetches of the same elements that stay are one
        is_kept = held.is_held | held.is_shared
        fetch = np.full(len(edges.edge), NOT_HELD)
        fetch[edges.is_read] = np.where(is_kept, number, NOT_HELD)[fetches.of_read]
        fetch[held.is_whole[self._row]] = HELD_WHOLE
        residency = Residency(
            edge=edges.edge,
            fetch=fetch,
            way=held.way[~is_link],
            sram_bytes=held.peak,
            fifo_bytes=edges.fifos.peak,
            needed_bytes=int(wholes.moved.sum()),
        )
        read = sums(fetches.keeper, held.moved_by_fetch, len(self._keepers))
        return self._store_uses(held, read, np.bincount(fetches.keeper, is_kept, len(self._keepers)) > 0), residency

    def _wholes(self) -> Wholes:
        edges, count = self._edges, len(self._keepers)
        first, last = np.full(count, np.iinfo(np.int64).max), np.zeros(count, dtype=np.int64)
        for which, (begin, end) in ((edges.is_read, edges.reader), (edges.is_written, edges.writer)):
            np.minimum.at(first, self._row[which], begin[which])
            np.maximum.at(last, self._row[which], end[which])
        moved = self._fetched + np.where(self._leaves, self._written, 0)
        taken = self._written + self._fetched
        taken = np.where(self._is_buffer, np.minimum(taken, self._whole), taken)  # some is written over
        spans = Spans(np.minimum(first, last), last, taken)
        return Wholes(spans, self._is_buffer, moved, self._written)

    def _store_uses(self, held: Holding, read: Int64, is_kept: Bool) -> tuple[StoreUse, ...]:
        """Return what is done with stores: of scopes what single tasks make, together."""
        table, whole = self._table, held.is_whole
        stores, place = numbered(table.dag.node_scope[self._keepers])
        dram_read = np.where(whole, self._fetched, read)
        dram_write = np.where(whole & ~self._leaves, 0, self._written)
        columns = (self._written, self._read, self._fetched, self._leaves, dram_read, dram_write)
        together = [sums(place, column, len(stores)).tolist() for column in columns]
        all_whole = np.bincount(place, ~whole, len(stores)) == 0
        some = np.bincount(place, whole | is_kept, len(stores)) > 0
        where = np.where(all_whole, Place.CHIP, np.where(some, Place.PARTS, Place.DRAM)).tolist()
        rows = zip(stores.tolist(), where, *together, strict=True)
        return tuple(
            StoreUse(table.name(store), Place(at), made, taken, fetched, bool(leaves), from_dram, to_dram)
            for store, at, made, taken, fetched, leaves, from_dram, to_dram in rows
        )
