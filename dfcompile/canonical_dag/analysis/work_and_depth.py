"""Work and depth of a canonical DAG, without streaming and with it: what bounds every schedule of it."""

import numpy as np

from dfcompile.canonical_dag.analysis.longest_path import connected, longest_paths, on_loops
from dfcompile.canonical_dag.dag import Bool, CanonicalDag, Int32, Int64
from dfcompile.distinct import numbered

NO_COMPONENT = -1


def total_work(dag: CanonicalDag) -> int:
    """Return ``T1``, the cycles of all tasks one after another [dematteis23, section 4]."""
    return int(dag.work.sum())


def critical_path(dag: CanonicalDag) -> int:
    """Return ``T_inf``, the largest work along a path: cycles on any number of processing elements, no streaming."""
    return int(longest_paths(dag.edge_source, dag.edge_target, dag.work).max(initial=0))


def io_elements(dag: CanonicalDag) -> int:
    """Return the elements that travel between tasks and buffers: all that is written to or read from memory."""
    return int(dag.edge_volume[stored_edges(dag)].sum())


def stored_edges(dag: CanonicalDag) -> Bool:
    """Return which edges join a task and a buffer, shape [edges]."""
    stored = dag.is_buffer | dag.is_computational
    return ~dag.between_tasks & stored[dag.edge_source] & stored[dag.edge_target]


def levels(dag: CanonicalDag) -> Int64:
    """Return the level of every node, shape [nodes].

    ``L(v) = 1`` without producers, otherwise ``max(ceil(R(v)), 1)`` more than the largest level of a producer
    [dematteis23, section 4]: an upsampler needs R cycles to hand on one element, here rounded up to whole cycles.
    Buffers and pseudo nodes add nothing.
    """
    return longest_paths(dag.edge_source, dag.edge_target, level_steps(dag))


def level_steps(dag: CanonicalDag) -> Int64:
    """Return what each node adds to the level of its producers, shape [nodes]."""
    rate = -(-dag.volume_out // np.maximum(dag.volume_in, 1))
    steps = np.where(dag.volume_in > 0, np.maximum(rate, 1), 1)
    return np.where(dag.is_computational, steps, 0).astype(np.int64)


def streaming_components(dag: CanonicalDag) -> Int32:
    """Return the weakly connected component of each task over the edges between tasks, shape [nodes].

    Components are numbered by their first task; buffers and pseudo nodes have ``NO_COMPONENT``.
    """
    return _components(dag, dag.between_tasks)


def streaming_depth(dag: CanonicalDag) -> int:
    """Return ``T_s_inf``: cycles on any number of processing elements if every edge between tasks streams.

    A component takes ``L - 1 + max W`` cycles, L its levels: its largest task runs without pause once data have reached
    it. A buffer hands on only when it is full, so components follow one another along buffers, and the depth is the
    longest *path* of components [dematteis23, section 4].

    A component that waits for a buffer which it fills itself cannot stream as a whole. Such components are cut between
    tasks with different numbers of buffers before them, and the cut edges count as buffered.
    """
    streamed = dag.between_tasks
    component = _components(dag, streamed)
    if dag.is_buffer.any():  # else nothing waits for a buffer
        # Components on cycles through buffers, or between such cycles.
        waits = on_loops(2 * dag.nodes_count, *_contracted(dag, component, ~streamed))[component[dag.edge_source]]
        buffers_before = longest_paths(dag.edge_source, dag.edge_target, dag.is_buffer.astype(np.int64))
        cut = streamed & waits & (buffers_before[dag.edge_source] != buffers_before[dag.edge_target])
        streamed = streamed & ~cut
        component = _components(dag, streamed)
    source, target = _contracted(dag, component, ~streamed)
    steps = np.zeros(2 * dag.nodes_count, dtype=np.int64)
    # ``L - 1 + max W`` of each component, levels along its own edges
    level = longest_paths(dag.edge_source[streamed], dag.edge_target[streamed], level_steps(dag))
    tasks = dag.is_computational
    deepest, largest = np.zeros((2, int(component.max(initial=-1)) + 1), dtype=np.int64)
    np.maximum.at(deepest, component[tasks], level[tasks])
    np.maximum.at(largest, component[tasks], dag.work[tasks])
    depths = deepest - 1 + largest
    steps[: len(depths)] = depths
    return int(longest_paths(source, target, steps).max(initial=0))


def _components(dag: CanonicalDag, edges: Bool) -> Int32:
    root = connected(dag.nodes_count, dag.edge_source[edges], dag.edge_target[edges])
    component = np.full(dag.nodes_count, NO_COMPONENT, dtype=np.int32)
    component[dag.is_computational] = numbered(root[dag.is_computational])[1]
    return component


def _contracted(dag: CanonicalDag, component: Int32, kept: Bool) -> tuple[Int64, Int64]:
    """Return the kept edges between components (numbered as they are) and other nodes (numbered behind them)."""
    vertex = np.where(component >= 0, component, dag.nodes_count + np.arange(dag.nodes_count))
    return vertex[dag.edge_source[kept]], vertex[dag.edge_target[kept]]
