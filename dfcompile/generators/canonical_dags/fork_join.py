"""Two stages of parallel tasks, each joined by one task."""

import numpy as np

from dfcompile.canonical_dag.builder import DagBuilder
from dfcompile.canonical_dag.dag import CanonicalDag, NodeKind
from dfcompile.errors import UserError
from dfcompile.generators.canonical_dags.volume_walk import FIRST_VOLUME, check_sizes, volume_walk


def fork_join(first: int, second: int, volume: int = FIRST_VOLUME, seed: int | None = None) -> CanonicalDag:
    """Return ``first`` tasks joined by one, then ``second`` tasks joined by one: n + m + 2 tasks, 2n + 2m + 1 edges.

    The pseudo source forks to the first stage; the last join ends in the pseudo sink.

    Args:
        first: tasks of the first stage, n.
        second: tasks of the second stage, m.
        volume: elements on the first edges.
        seed: of random volumes, one per stage; without one all tasks are elementwise.

    Raises:
        UserError: a size or volume below 1, or too many tasks.
    """
    check_sizes("fork-join", 1, first + second + 2, first=first, second=second, volume=volume)
    builder = DagBuilder(f"fork-join-{first}-{second}")
    start = builder.add_memory(builder.add_scope("start"), NodeKind.PSEUDO_SOURCE)
    left = np.array(builder.add_tasks(builder.add_scope("first"), first))
    middle = builder.add_task(builder.add_scope("middle"))
    right = np.array(builder.add_tasks(builder.add_scope("second"), second))
    last = builder.add_task(builder.add_scope("last"))
    end = builder.add_memory(builder.add_scope("end"), NodeKind.PSEUDO_SINK)
    volumes = volume_walk(5, volume, seed)
    for nodes, before, after, into, out in ((left, start, middle, 0, 1), (right, middle, last, 2, 3)):
        builder.add_edges(np.full(len(nodes), before), nodes, np.full(len(nodes), volumes[into]))
        builder.add_edges(nodes, np.full(len(nodes), after), np.full(len(nodes), volumes[out]))
    builder.add_edge(last, end, volumes[4])
    return builder.finish(UserError)
