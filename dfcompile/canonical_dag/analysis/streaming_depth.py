"""Streaming components of a canonical DAG and the depth that they and the buffers between them give."""

import numpy as np

from dfcompile.canonical_dag.analysis.longest_path import connected, longest_paths, on_loops
from dfcompile.canonical_dag.analysis.work_and_depth import level_steps
from dfcompile.canonical_dag.dag import Bool, CanonicalDag, Int32, Int64
from dfcompile.distinct import numbered

NO_COMPONENT = -1


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
    depths = _depths(dag, component, streamed)
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


def _depths(dag: CanonicalDag, component: Int32, streamed: Bool) -> Int64:
    """Return ``L - 1 + max W`` of each component, levels along its own edges."""
    level = longest_paths(dag.edge_source[streamed], dag.edge_target[streamed], level_steps(dag))
    tasks = dag.is_computational
    deepest, largest = np.zeros((2, int(component.max(initial=-1)) + 1), dtype=np.int64)
    np.maximum.at(deepest, component[tasks], level[tasks])
    np.maximum.at(largest, component[tasks], dag.work[tasks])
    return deepest - 1 + largest
