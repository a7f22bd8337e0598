"""The bytes of a mapping of a lowering, recounted from edges, blocks and places alone."""

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag import CanonicalDag, TensorRole
from dfcompile.canonical_dag.dag import UNORDERED, Bool, Int64
from dfcompile.distinct import first_places
from dfcompile.scheduler import Schedule

Key = tuple[int, ...]
Sums = dict[Key, int]


class Recount(Struct, frozen=True, dict=True):
    """What configurations do with memory; a store is a buffer node, or a scope of tasks: ``-1 - scope``.

    Attributes:
        dag: the lowering, volumes in elements.
        configuration: of each task, negative for memory, shape [nodes].
        block: of each task, shape [nodes].
        streamed: whether each edge is a FIFO, shape [edges].
    """

    dag: CanonicalDag
    configuration: Int64
    block: Int64
    streamed: Bool

    @cached_property
    def _ends(self) -> tuple[Int64, Int64, Int64]:
        """Edges through memory, with source and target."""
        task, pseudo = self.dag.is_computational, ~(self.dag.is_computational | self.dag.is_buffer)
        source, target = self.dag.edge_source, self.dag.edge_target
        marks = pseudo[source] | pseudo[target] | ~(task[source] | task[target])
        edges = np.flatnonzero(~self.streamed & ~marks)
        return edges, self.dag.edge_source[edges].astype(np.int64), self.dag.edge_target[edges].astype(np.int64)

    @cached_property
    def _bytes(self) -> Int64:
        return self.dag.edge_volume * self.dag.edge_element_bytes

    @cached_property
    def _made(self) -> Int64:
        """What each task makes."""
        made = np.zeros(self.dag.nodes_count, dtype=np.int64)
        np.maximum.at(made, self.dag.edge_source, self._bytes)
        return made

    @cached_property
    def _is_between(self) -> Bool:
        _, source, target = self._ends
        return self.dag.is_computational[source] & self.dag.is_computational[target]

    @cached_property
    def _store(self) -> Int64:
        _, source, target = self._ends
        of_buffer = np.where(self.dag.is_buffer[target], target, source)
        return np.where(self._is_between, -1 - self.dag.node_scope[source].astype(np.int64), of_buffer)

    @cached_property
    def _handed(self) -> tuple[Int64, Int64, Int64]:
        """Different tasks that hand on something through memory: task, store, configuration of the reader."""
        _, source, target = self._ends
        which = self._is_between
        columns = (source[which].astype(np.int64), self._store[which], self.configuration[target[which]])
        order, starts = _sorted_rows(columns)
        task, store, reader = (column[order[starts]] for column in columns)
        return task, store, reader

    @cached_property
    def written(self) -> Sums:
        """Bytes by configuration and store."""
        edges, source, target = self._ends
        into = self.dag.is_buffer[target]
        sums = _sums((self.configuration[source[into]], self._store[into]), self._bytes[edges[into]])
        task, store, _ = self._handed
        task, first = first_places(task)
        return {**sums, **_sums((self.configuration[task], store[first]), self._made[task])}

    @cached_property
    def _reads(self) -> Bool:
        return self.dag.is_computational[self._ends[2]]

    @cached_property
    def read(self) -> Sums:
        """Bytes by configuration and store."""
        edges, _, target = self._ends
        which = self._reads
        return _sums((self.configuration[target[which]], self._store[which]), self._bytes[edges[which]])

    @cached_property
    def read_in_block(self) -> Sums:
        """Bytes by configuration, store and block."""
        edges, _, target = self._ends
        which = self._reads
        keys = (self.configuration[target[which]], self._store[which], self.block[target[which]])
        return _sums(keys, self._bytes[edges[which]])

    @cached_property
    def distinct_in_block(self) -> Sums:
        """Bytes of the different elements that tasks read, by configuration, store and block."""
        edges, _, target = self._ends
        which = self._reads
        keys = (self.configuration[target[which]], self._store[which], self.block[target[which]])
        distinct = self.dag.edge_distinct[edges[which]] * self.dag.edge_element_bytes[edges[which]]
        return _sums(keys, distinct)

    def shared_stream(self, key: Key, block: int, schedule: Schedule, machine: CanonicalDag) -> tuple[int, int]:
        """Return what tasks of a block read less if those of one scope share a stream, and the bytes it runs ahead.

        They do if each reads every element of an array, or of what one task makes, in one order that is known.
        """
        store = key[1]
        groups: dict[tuple[int, int, int, int], list[int]] = {}
        size = 0 if store < 0 else self._whole(store)
        for edge in self._read_edges[*key, block]:
            maker, reader = int(self.dag.edge_source[edge]), int(self.dag.edge_target[edge])
            distinct = int(self.dag.edge_distinct[edge]) * int(self.dag.edge_element_bytes[edge])
            order, moved = int(self.dag.edge_order[edge]), int(self._bytes[edge])
            if (store < 0 or distinct == size) and self.dag.orders[order] != UNORDERED:
                groups.setdefault((maker, int(self.dag.node_scope[reader]), order, moved), []).append(edge)
        saved = window = 0
        for (_, _, _, moved), edges in groups.items():
            if len(edges) > 1:
                readers = self.dag.edge_target[edges]
                word = -(-int(self.dag.edge_volume[edges[0]]) // int(machine.edge_volume[edges[0]]))
                span = int(schedule.last_out[readers].max()) - int(schedule.start[readers].min())
                ahead = span - int(machine.work[readers[0]]) + 1
                saved += (len(edges) - 1) * moved
                window += ahead * word * int(self.dag.edge_element_bytes[edges[0]])
        return saved, window

    @cached_property
    def _read_edges(self) -> dict[Key, list[int]]:
        """Edges by configuration, store and block of the reader."""
        found: dict[Key, list[int]] = {}
        edges, _, target = self._ends
        which = self._reads
        reader = target[which]
        columns = (edges[which], self.configuration[reader], self._store[which], self.block[reader])
        for edge, *key in zip(*(column.tolist() for column in columns), strict=True):
            found.setdefault(tuple(key), []).append(edge)
        return found

    @cached_property
    def blocks(self) -> dict[Key, tuple[int, int]]:
        """First and last block that touches a store, by configuration and store."""
        _, source, target = self._ends
        writes = self.dag.is_computational[source]
        found: dict[Key, tuple[int, int]] = {}
        for which, node in ((self._reads, target), (writes, source)):
            block = self.block[node[which]]
            columns = (self.configuration[node[which]], self._store[which])
            order, starts = _sorted_rows(columns)
            if not len(starts):
                continue
            lows, highs = np.minimum.reduceat(block[order], starts), np.maximum.reduceat(block[order], starts)
            keys = zip(*(column[order[starts]].tolist() for column in columns), strict=True)
            for key, low, high in zip(keys, lows.tolist(), highs.tolist(), strict=True):
                first, last = found.get(key, (low, high))
                found[key] = min(first, low), max(last, high)
        return found

    @cached_property
    def _handed_elsewhere(self) -> Sums:
        task, store, reader = self._handed
        away = self.configuration[task] != reader
        return _sums((reader[away], store[away]), self._made[task[away]])

    @cached_property
    def _left_behind(self) -> set[Key]:
        task, store, reader = self._handed
        away = self.configuration[task] != reader
        return set(zip(self.configuration[task[away]].tolist(), store[away].tolist(), strict=True))

    @cached_property
    def _sizes(self) -> dict[str, int]:
        return {tensor.name: tensor.size_bytes for tensor in self.dag.tensors}

    @cached_property
    def _outputs(self) -> set[str]:
        return {tensor.name for tensor in self.dag.tensors if tensor.role is TensorRole.OUTPUT}

    @cached_property
    def _all_written(self) -> Sums:
        sums: Sums = {}
        for (_, store), size in self.written.items():
            sums[store,] = sums.get((store,), 0) + size
        return sums

    @cached_property
    def _readers(self) -> dict[int, set[int]]:
        found: dict[int, set[int]] = {}
        for configuration, store in self.read:
            found.setdefault(store, set()).add(configuration)
        return found

    def pairs(self) -> Iterator[Key]:
        """Yield the pairs of configuration and store that touch each other."""
        yield from sorted({*self.read, *self.written})

    def name(self, store: int) -> str:
        """Return the name of a store."""
        return self.dag.scopes[self.dag.node_scope[store] if store >= 0 else -1 - store].name

    def born_elsewhere(self, key: Key) -> int:
        """Return the bytes that were made before the configuration."""
        store = key[1]
        if store < 0:
            return self._handed_elsewhere.get(key, 0)
        if self._all_written.get((store,), 0):
            return self._all_written[store,] - self.written.get(key, 0)
        return self._whole(store)

    def _whole(self, buffer: int) -> int:
        """Return the size of a buffer's array: as the DAG says, or what is written to it, or the most that is read."""
        origin = self.dag.scopes[self.dag.node_scope[buffer]].origin
        if origin in self._sizes:
            return self._sizes[origin]
        read = (self.dag.edge_distinct * self.dag.edge_element_bytes)[self.dag.edge_source == buffer]
        return self._all_written.get((buffer,), 0) or int(read.max())

    def leaves(self, key: Key) -> bool:
        """Return whether what a configuration writes is needed elsewhere."""
        configuration, store = key
        if not self.written.get(key, 0):
            return False
        if store < 0:
            return key in self._left_behind
        readers = self._readers.get(store, set())
        is_output = self.dag.scopes[self.dag.node_scope[store]].origin in self._outputs
        return is_output or not readers or readers != {configuration}


def _sums(keys: tuple[Int64, ...], values: Int64) -> Sums:
    """Return the sum of the values of each key."""
    if not len(values):
        return {}
    order, starts = _sorted_rows(keys)
    rows = zip(*(key[order[starts]].tolist() for key in keys), strict=True)
    return dict(zip(rows, np.add.reduceat(values[order], starts).tolist(), strict=True))


def _sorted_rows(columns: tuple[Int64, ...]) -> tuple[Int64, Int64]:
    """Return rows in an order in which equal ones are neighbours, and the places where others begin."""
    order = np.lexsort(columns[::-1])
    differs = np.ones(len(order), dtype=np.bool_)
    if len(order):
        differs[1:] = False
    for column in columns:
        differs[1:] |= np.diff(column[order]) != 0
    return order, np.flatnonzero(differs)
