"""The bytes of a mapping of a lowering, recounted from edges alone."""

from functools import cached_property

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag import CanonicalDag, TensorRole
from dfcompile.canonical_dag.dag import Bool, Int64
from dfcompile.dfmodel_backend.columns import equal_rows
from dfcompile.distinct import distinct

Key = tuple[int, int]  # configuration and store
Sums = dict[Key, int]


class Recount(Struct, frozen=True, dict=True):
    """What configurations do with memory; a store is a buffer node, or a task that hands on what it makes.

    Attributes:
        dag: the lowering, volumes in elements.
        configuration: of each task, negative for memory, shape [nodes].
        streamed: whether each edge is a FIFO, shape [edges].
    """

    dag: CanonicalDag
    configuration: Int64
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
    def sizes(self) -> Int64:
        """Bytes on each edge, shape [edges]."""
        return self.dag.edge_volume * self.dag.edge_element_bytes

    @cached_property
    def _made(self) -> Int64:
        """What each task makes."""
        made = np.zeros(self.dag.nodes_count, dtype=np.int64)
        np.maximum.at(made, self.dag.edge_source, self.sizes)
        return made

    @cached_property
    def _store(self) -> Int64:
        _, source, target = self._ends
        return np.where(self.dag.is_buffer[target], target, source)

    @cached_property
    def _accesses(self) -> tuple[Bool, Bool]:
        """Whether over each edge a task reads, and whether one writes."""
        _, source, target = self._ends
        return self.dag.is_computational[target], self.dag.is_computational[source]

    @cached_property
    def written(self) -> Sums:
        """Bytes by configuration and store."""
        edges, source, target = self._ends
        into = self.dag.is_buffer[target]
        sums = _sums((self.configuration[source[into]], self._store[into]), self.sizes[edges[into]])
        handed = distinct(source[self._accesses[0] & self._accesses[1]])
        return {**sums, **_sums((self.configuration[handed], handed), self._made[handed])}

    @cached_property
    def read(self) -> Sums:
        """Bytes by configuration and store."""
        edges, _, target = self._ends
        which = self._accesses[0]
        return _sums((self.configuration[target[which]], self._store[which]), self.sizes[edges[which]])

    @cached_property
    def edges_at(self) -> dict[Key, tuple[Int64, Int64]]:
        """Edges over which tasks read, and over which they write, by configuration and store."""
        edges, source, target = self._ends
        found: dict[Key, list[Int64]] = {}
        for side, (which, node) in enumerate(zip(self._accesses, (target, source), strict=True)):
            keys = (self.configuration[node[which]], self._store[which])
            first, group, counts = equal_rows(keys)
            rows = zip(*(key[first].tolist() for key in keys), strict=True)
            by_row = edges[which][np.argsort(group, kind="stable")]
            for key, own in zip(rows, np.split(by_row, np.cumsum(counts)[:-1]), strict=False):
                found.setdefault(key, [edges[:0], edges[:0]])[side] = own
        return {key: (reads, writes) for key, (reads, writes) in found.items()}

    @cached_property
    def _sizes(self) -> dict[str, int]:
        return {tensor.name: tensor.size_bytes for tensor in self.dag.tensors}

    @cached_property
    def _outputs(self) -> set[str]:
        return {tensor.name for tensor in self.dag.tensors if tensor.role is TensorRole.OUTPUT}

    @cached_property
    def _all_written(self) -> dict[int, int]:
        sums: dict[int, int] = {}
        for (_, store), size in self.written.items():
            sums[store] = sums.get(store, 0) + size
        return sums

    @cached_property
    def _readers(self) -> dict[int, set[int]]:
        found: dict[int, set[int]] = {}
        for configuration, store in self.read:
            found.setdefault(store, set()).add(configuration)
        return found

    def name(self, store: int) -> str:
        """Return the name of a store: of a task that of its scope."""
        return str(self.dag.scopes[self.dag.node_scope[store]].name)

    def born_elsewhere(self, key: Key) -> int:
        """Return the bytes that were made before the configuration."""
        store = key[1]
        if not self.dag.is_buffer[store]:
            return 0 if key in self.written else int(self._made[store])
        if self._all_written.get(store, 0):
            return self._all_written[store] - self.written.get(key, 0)
        return self.whole(store)

    def whole(self, store: int) -> int:
        """Return the bytes of all elements: of an array as the DAG says, or what is written to it, or the most read."""
        if not self.dag.is_buffer[store]:
            return int(self._made[store])
        origin = self.dag.scopes[self.dag.node_scope[store]].origin
        if origin in self._sizes:
            return self._sizes[origin]
        read = (self.dag.edge_distinct * self.dag.edge_element_bytes)[self.dag.edge_source == store]
        return self._all_written.get(store, 0) or int(read.max())

    def leaves(self, key: Key) -> bool:
        """Return whether what a configuration writes is needed elsewhere."""
        configuration, store = key
        if not self.written.get(key, 0):
            return False
        readers = self._readers.get(store, set())
        if not self.dag.is_buffer[store]:
            return bool(readers - {configuration})
        is_output = self.dag.scopes[self.dag.node_scope[store]].origin in self._outputs
        return is_output or not readers or readers != {configuration}


def _sums(keys: tuple[Int64, Int64], values: Int64) -> Sums:
    """Return the sum of the values of each key."""
    first, group, _ = equal_rows(keys)
    total = np.zeros(len(first), dtype=np.int64)
    np.add.at(total, group, values)
    rows = zip(*(key[first].tolist() for key in keys), strict=True)
    return dict(zip(rows, total.tolist(), strict=True))
