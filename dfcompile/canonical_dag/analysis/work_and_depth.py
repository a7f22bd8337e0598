"""Work and depth of a canonical DAG: what bounds every schedule of it."""

import numpy as np

from dfcompile.canonical_dag.analysis.longest_path import longest_paths
from dfcompile.canonical_dag.dag import Bool, CanonicalDag, Int64


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
