"""What the configurations of a mapping of a lowering do with memory, recounted from edges alone."""

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag import CanonicalDag, TensorRole
from dfcompile.canonical_dag.dag import Bool, Int64
from dfcompile.dfmodel_backend.columns import equal_rows


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
    return [
        Touch(
            *figures_of_row,
            name=dag.scopes[dag.node_scope[store[number]]].name,
            reads=edges[own[~is_write[own]]],
            writes=edges[own[is_write[own]]],
        )
        for number, (*figures_of_row, own) in enumerate(zip(*(each.tolist() for each in figures), by_row, strict=False))
    ]


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
    for node in np.flatnonzero(dag.is_buffer).tolist():
        whole[node] = sizes.get(dag.scopes[dag.node_scope[node]].origin, whole[node])
    return whole
