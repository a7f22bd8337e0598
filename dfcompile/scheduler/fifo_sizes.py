"""FIFO capacities that keep reconvergent paths of different latency from deadlocking."""

import numpy as np

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.dag import Bool, Int32, Int64
from dfcompile.scheduler.cycles import edges_on_cycles
from dfcompile.scheduler.exact import ceil_ratio
from dfcompile.scheduler.steady_state import Times


def fifo_capacities(dag: CanonicalDag, block: Int32, streamed: Bool, times: Times) -> Int64:
    """Return the capacity of each streamed FIFO in elements, 0 for the other edges, shape [edges].

    A join v cannot fire before its slowest input is there; until then its input (u, v) receives
    ``(max over predecessors t of v in the block of FO(t) - FO(u)) / s(u, v)`` elements, with LO(t) for a
    predecessor that does not stream to v. So much room, at least 1 and at most the edge's volume, is given to
    every streamed edge on an undirected cycle of its block; any other FIFO holds 1 [dematteis23, section 6].
    """
    source, target = dag.edge_source, dag.edge_target
    inside = block[source] == block[target]
    available = np.where(streamed, times.first_out[source], times.last_out[source])
    fires = np.zeros(dag.nodes_count, dtype=np.int64)
    np.maximum.at(fires, target[inside], available[inside])
    skew = np.where(streamed, fires[target] - times.first_out[source], 0)
    needed = np.zeros(dag.edges_count, dtype=np.int64)
    needed[streamed] = ceil_ratio(
        np.maximum(skew, 0)[streamed], dag.edge_volume[streamed], times.peak[target[streamed]]
    )
    capacity = np.where(streamed, np.clip(needed, 1, dag.edge_volume), 0)
    deep = np.flatnonzero(capacity > 1)
    # Sizes above 1 are rare: only the blocks that have one are searched for cycles.
    spared = deep[~_on_cycle_of_block(dag, block, inside, deep)]
    capacity[spared] = 1
    capacity.setflags(write=False)
    return capacity


def _on_cycle_of_block(dag: CanonicalDag, block: Int32, inside: Bool, asked: Int64) -> Bool:
    """Return which of the asked edges lie on an undirected cycle of dependences inside their block.

    Memory that is full before the block begins (a buffer without predecessors in it) makes nobody wait.
    """
    blocks = int(block.max()) + 1 if len(block) else 0
    searched = np.zeros(blocks, dtype=np.bool_)
    searched[block[dag.edge_source[asked]]] = True
    fed = np.zeros(dag.nodes_count, dtype=np.bool_)
    fed[dag.edge_target[inside]] = True
    waits = dag.is_computational | (dag.is_buffer & fed)
    edges = np.flatnonzero(inside & searched[block[dag.edge_source]] & waits[dag.edge_source])
    on_cycle = np.zeros(dag.edges_count, dtype=np.bool_)
    on_cycle[edges] = edges_on_cycles(dag.nodes_count, dag.edge_source[edges], dag.edge_target[edges])
    return on_cycle[asked]
