"""Gaussian elimination: a pivot and its updates per row."""

import numpy as np

from dfcompile.canonical_dag.builder import DagBuilder
from dfcompile.canonical_dag.dag import CanonicalDag, NodeKind
from dfcompile.errors import UserError
from dfcompile.generators.canonical_dags.volume_walk import FIRST_VOLUME, check_sizes, volume_walk


def gaussian(size: int, volume: int = FIRST_VOLUME, seed: int | None = None) -> CanonicalDag:
    """Return the elimination of an N x N matrix: ``(N^2 + N - 2) / 2`` tasks, ``N (N - 1)`` edges.

    Row k has a pivot, which feeds N - k updates; update j of row k goes on to column j of row k + 1: the first one to
    its pivot, the others to its updates. A pseudo source feeds the first pivot; the last update is the sink.

    Args:
        size: N, 2 or more.
        volume: elements on the first edge.
        seed: of random volumes, one per row; without one all tasks are elementwise.

    Raises:
        UserError: a size below 2, a volume below 1, or too many tasks.
    """
    check_sizes("gaussian", 1, (size * size + size - 2) // 2, volume=volume)
    check_sizes("gaussian", 2, 0, size=size)
    builder = DagBuilder(f"gaussian-{size}")
    start = builder.add_memory(builder.add_scope("start"), NodeKind.PSEUDO_SOURCE)
    pivots, updates = builder.add_scope("pivot"), builder.add_scope("update")
    volumes = volume_walk(size, volume, seed)
    above = np.zeros(0, dtype=np.int64)
    members = 0
    for row in range(size - 1):
        width = size - 1 - row
        pivot = builder.add_tasks(pivots, 1, row).start
        nodes = np.array(builder.add_tasks(updates, width, members))
        members += width
        if row == 0:
            builder.add_edge(start, pivot, volumes[0])
        else:
            targets = np.array([pivot, *nodes])
            builder.add_edges(above, targets, np.full(len(targets), volumes[row]))
        builder.add_edges(np.full(width, pivot), nodes, np.full(width, volumes[row]))
        above = nodes
    return builder.finish(UserError)
