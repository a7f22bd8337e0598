"""A part of a canonical DAG as a DAG of its own: what lies outside becomes memory."""

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag.dag import EDGE_COLUMNS, Bool, CanonicalDag, Int32, Int64, NodeKind, frozen, node_volumes
from dfcompile.distinct import distinct
from dfcompile.records import replace

OUTSIDE = -1  # a node of a part that stands for one that is not in it


class DagPart(Struct, frozen=True, eq=False):
    """Some tasks of a canonical DAG with all their edges.

    A task at the other end of an edge that is not in the part is replaced by memory: what it makes is there before the
    part runs, what it reads is kept. So every task has the volumes and the kind that it has in the whole.

    Attributes:
        dag: the part; nodes and edges are in the order of the whole.
        node: number in the whole of each node, `OUTSIDE` of what stands for a task that is not in it, shape [nodes].
        edge: number in the whole of each edge, shape [edges].
    """

    dag: CanonicalDag
    node: Int32
    edge: Int64


def part_of(dag: CanonicalDag, tasks: Int64, edges: Int64) -> DagPart:
    """Return some tasks of a DAG with their edges and the buffers at these.

    Args:
        dag: the whole.
        tasks: numbers of computational nodes, ascending.
        edges: numbers of all edges at these tasks, ascending.
    """
    if len(tasks) == dag.tasks_count and len(edges) == dag.edges_count and _is_used_whole(dag):
        return DagPart(dag, frozen(np.arange(dag.nodes_count, dtype=np.int32)), edges)
    source, target = dag.edge_source[edges], dag.edge_target[edges]
    buffers = distinct(np.concatenate([source[dag.is_buffer[source]], target[dag.is_buffer[target]]]))
    kept = np.sort(np.concatenate([tasks, buffers]))
    from_inside, source_place = _places(kept, source)
    to_inside, target_place = _places(kept, target)
    makers = distinct(source[~from_inside])
    readers = distinct(target[~to_inside])
    from_outside = len(kept) + np.searchsorted(makers, source)
    to_outside = len(kept) + len(makers) + np.searchsorted(readers, target)
    stand_ins = len(makers) + len(readers)
    kind = np.concatenate([dag.kind[kept], np.full(stand_ins, NodeKind.BUFFER, dtype=np.int8)])
    edge_source = np.where(from_inside, source_place, from_outside).astype(np.int32)
    edge_target = np.where(to_inside, target_place, to_outside).astype(np.int32)
    volume_in, volume_out = node_volumes(kind, edge_source, edge_target, dag.edge_volume[edges])
    outside_scope = len(dag.scopes)
    ends = {"edge_source": edge_source, "edge_target": edge_target}
    columns = {name: getattr(dag, name)[edges] for name in EDGE_COLUMNS} | ends
    columns |= {
        "kind": kind,
        "volume_in": volume_in,
        "volume_out": volume_out,
        "node_scope": np.concatenate([dag.node_scope[kept], np.full(stand_ins, outside_scope, dtype=np.int32)]),
        "node_member": np.concatenate([dag.node_member[kept], np.arange(stand_ins, dtype=np.int64)]),
    }
    scopes = dag.scopes_and_outside if stand_ins else dag.scopes
    part = replace(dag, scopes=scopes, **{name: frozen(column) for name, column in columns.items()})
    return DagPart(part, frozen(np.concatenate([kept, np.full(stand_ins, OUTSIDE)]).astype(np.int32)), edges)


def _is_used_whole(dag: CanonicalDag) -> bool:
    """Return whether all nodes are tasks, or buffers that tasks use."""
    used = dag.is_computational.copy()
    used[dag.edge_source] = used[dag.edge_target] = True
    return bool((used & (dag.is_computational | dag.is_buffer)).all())


def _places(kept: Int64, nodes: Int32) -> tuple[Bool, Int64]:
    """Return whether nodes are among those that are kept, ascending, and where."""
    place = np.searchsorted(kept, nodes)
    return kept[np.minimum(place, len(kept) - 1)] == nodes, place
