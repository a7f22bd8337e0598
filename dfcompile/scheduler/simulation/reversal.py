"""A replay run backwards: when the last access may take place at the latest, and all before it.

The rules of a replay are the same in both directions of time. Read backwards, an element is read where it was written
and written where it was read: a task with I reads and O writes has O reads and I writes, in the same cycles counted
from its end; of accesses in one cycle the order is reversed; a place in a FIFO is awaited as an element is. So the
earliest times of the reversed graph, counted from the end of the schedule, are the latest ones that do not delay it.
"""

import numpy as np

from dfcompile.canonical_dag import CanonicalDag, NodeKind
from dfcompile.canonical_dag.dag import Column
from dfcompile.records import replace
from dfcompile.scheduler.simulation.replay import Replay


def reversed_dag(dag: CanonicalDag) -> CanonicalDag:
    """Return a graph with all edges turned round, the last one first; nodes keep their numbers."""
    kind = dag.kind.copy()
    kind[dag.kind == NodeKind.PSEUDO_SOURCE] = NodeKind.PSEUDO_SINK
    kind[dag.kind == NodeKind.PSEUDO_SINK] = NodeKind.PSEUDO_SOURCE
    kind.setflags(write=False)
    return replace(
        dag,
        kind=kind,
        volume_in=dag.volume_out,
        volume_out=dag.volume_in,
        edge_source=_last_first(dag.edge_target),
        edge_target=_last_first(dag.edge_source),
        edge_volume=_last_first(dag.edge_volume),
        edge_distinct=_last_first(dag.edge_distinct),
        edge_element_bytes=_last_first(dag.edge_element_bytes),
        edge_order=_last_first(dag.edge_order),
        edge_first=_last_first(dag.edge_first),
        edge_taken=_last_first(dag.edge_taken),
    )


def reversed_replay(replay: Replay) -> Replay:
    """Return what is replayed in the reversed graph: edge k of the one is edge ``edges - 1 - k`` of the other."""
    return Replay(
        pe=replay.pe,
        order=-replay.order,
        streamed=_last_first(replay.streamed),
        fifo_capacity=_last_first(replay.fifo_capacity),
        block=(replay.block.max(initial=0) - replay.block).astype(np.int32),
        barrier=replay.barrier,
    )


def _last_first(column: Column) -> Column:
    turned = column.copy()
    turned[:] = column[::-1]
    turned.setflags(write=False)
    return turned
