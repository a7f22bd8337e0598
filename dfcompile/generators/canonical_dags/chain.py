"""A chain of tasks."""

import numpy as np

from dfcompile.canonical_dag.builder import DagBuilder
from dfcompile.canonical_dag.dag import CanonicalDag, NodeKind
from dfcompile.errors import UserError
from dfcompile.generators.canonical_dags.volume_walk import FIRST_VOLUME, check_sizes, volume_walk


def chain(size: int, volume: int = FIRST_VOLUME, seed: int | None = None) -> CanonicalDag:
    """Return ``size`` tasks in a row between a pseudo source and a pseudo sink: ``size + 1`` edges.

    Args:
        size: number of tasks.
        volume: elements on the first edge.
        seed: of random volumes; without one all tasks are elementwise.

    Raises:
        UserError: a size or volume below 1, or too many tasks.
    """
    check_sizes("chain", 1, size, size=size, volume=volume)
    builder = DagBuilder(f"chain-{size}")
    start = builder.add_memory(builder.add_scope("start"), NodeKind.PSEUDO_SOURCE)
    tasks = builder.add_tasks(builder.add_scope("task"), size)
    end = builder.add_memory(builder.add_scope("end"), NodeKind.PSEUDO_SINK)
    nodes = np.array([start, *tasks, end])
    builder.add_edges(nodes[:-1], nodes[1:], volume_walk(size + 1, volume, seed))
    return builder.finish(UserError)
