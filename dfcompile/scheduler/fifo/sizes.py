"""FIFO capacities that keep reconvergent paths of different latency from deadlocking."""

import numpy as np

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.dag import Bool, Int32, Int64
from dfcompile.scheduler.timing.cycles import edges_on_cycles, edges_on_loops
from dfcompile.scheduler.timing.exact_integers import ceil_ratio
from dfcompile.scheduler.timing.steady_state import Times
from dfcompile.scheduler.timing.streams import streamed_components


def fifo_capacities(
    dag: CanonicalDag, block: Int32, streamed: Bool, times: Times, *, off_cycles: bool = False
) -> Int64:
    """Return the capacity of each streamed FIFO in elements, 0 for the other edges, shape [edges].

    A join v cannot fire before its slowest input is there; until then its input (u, v) receives
    ``skew / s(u, v)`` elements, ``skew = max over predecessors t of v in the block of FO(t) - FO(u)``. So much
    room, at least 1 and at most the edge's volume, is given to every streamed edge on an undirected cycle of its
    block; any other FIFO holds 1 [dematteis23, section 6]. With ``off_cycles`` every streamed edge gets its room: else
    a producer off all cycles waits, and stays on its processing element, until its consumer begins.

    A predecessor t that reaches v through memory counts with LO(t). If its end depends on the streaming component
    of v itself, that component must run to its end before v begins: then (u, v) must hold its whole volume.
    """
    source, target = dag.edge_source, dag.edge_target
    inside = block[source] == block[target]
    streams_at = _latest(dag, inside & streamed, times.first_out)
    memory_at = _latest(dag, inside & ~streamed, times.last_out)
    edges = np.flatnonzero(streamed)
    join, emits_at = target[edges], times.first_out[source[edges]]
    skew = np.maximum(streams_at, memory_at)[join] - emits_at
    capacity = np.zeros(dag.edges_count, dtype=np.int64)
    whole = dag.edge_volume[edges]
    capacity[edges] = np.clip(ceil_ratio(np.maximum(skew, 0), whole, times.peak[join]), 1, whole)
    if off_cycles:
        # Of a producer that ends before the join begins all elements wait, whatever their mean interval.
        ended = edges[times.last_out[source[edges]] < np.maximum(streams_at, memory_at)[join]]
        capacity[ended] = dag.edge_volume[ended]
    late = edges[memory_at[join] > emits_at]
    if len(late):
        own = late[_awaits_own_component(dag, inside, streamed)[target[late]]]
        capacity[own] = dag.edge_volume[own]
    if not off_cycles:
        deep = np.flatnonzero(capacity > 1)
        # Sizes above 1 are rare: only the blocks that have one are searched for cycles.
        capacity[deep[~_on_cycle_of_block(dag, block, inside, deep)]] = 1
    capacity.setflags(write=False)
    return capacity


def _awaits_own_component(dag: CanonicalDag, inside: Bool, streamed: Bool) -> Bool:
    """Return which nodes wait for memory that their own streaming component fills first, shape [nodes]."""
    component = streamed_components(dag, streamed)
    memory = np.flatnonzero(inside & ~streamed)
    target = dag.edge_target[memory]
    on_loop = edges_on_loops(dag.nodes_count, component[dag.edge_source[memory]], component[target])
    awaits = np.zeros(dag.nodes_count, dtype=np.bool_)
    awaits[target[on_loop]] = True
    return awaits


def _latest(dag: CanonicalDag, edges: Bool, time: Int64) -> Int64:
    """Return the latest time among the sources of the given edges, 0 without any, shape [nodes]."""
    latest = np.zeros(dag.nodes_count, dtype=np.int64)
    np.maximum.at(latest, dag.edge_target[edges], time[dag.edge_source[edges]])
    return latest


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
