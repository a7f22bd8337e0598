"""Sets of kernels that are alike: in all that the figures of a configuration depend on, names aside."""

import hashlib

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.part import OUTSIDE, DagPart
from dfcompile.dfmodel_backend.attained.stores import StoreTable
from dfcompile.distinct import numbered

MOST_NODES = 10_000  # of a part; how a larger one is scheduled depends on what was scheduled before


class Likeness(Struct, frozen=True, eq=False):
    """What a part is like.

    Attributes:
        key: equal for parts that are alike.
        stores: that the part touches, in an order that parts which are alike share.
    """

    key: bytes
    stores: tuple[int, ...]


def likeness(dag: CanonicalDag, table: StoreTable, part: DagPart, network_ns: float) -> Likeness:
    """Return what the tasks of a part are like.

    Args:
        dag: the lowering, with volumes in elements.
        table: its stores.
        part: in words of the machine.
        network_ns: of the exchanges of its kernels.
    """
    edge, own = part.edge, part.dag
    source, target = dag.edge_source[edge], dag.edge_target[edge]
    into_buffer = dag.is_buffer[target]
    stores, store = numbered(np.where(into_buffer, table.of_node[target], table.of_node[source]))
    buffers = stores[stores < len(table.whole_bytes)]
    columns = (
        own.kind, own.edge_source, own.edge_target, own.edge_volume,
        part.node == OUTSIDE, into_buffer, dag.is_buffer[source], table.moves_data[edge],
        store, numbered(dag.node_scope[target])[1], table.out_bytes[source],
        dag.edge_volume[edge], dag.edge_distinct[edge], dag.edge_element_bytes[edge], dag.edge_order[edge],
        dag.edge_first[edge],
        table.written_bytes[buffers], table.whole_bytes[buffers], table.readers[buffers], table.is_result[buffers],
    )  # fmt: skip
    digest = hashlib.blake2b(repr((network_ns, len(stores), len(buffers), len(edge))).encode(), digest_size=16)
    for column in columns:
        digest.update(column.tobytes())
    return Likeness(digest.digest(), tuple(stores.tolist()))
