"""The fast Fourier transform: a recursion tree, then butterflies."""

import numpy as np

from dfcompile.canonical_dag.builder import DagBuilder
from dfcompile.canonical_dag.dag import CanonicalDag, NodeKind
from dfcompile.errors import UserError
from dfcompile.generators.canonical_dags.volume_walk import FIRST_VOLUME, check_sizes, volume_walk


def fft(points: int, volume: int = FIRST_VOLUME, seed: int | None = None) -> CanonicalDag:
    """Return the graph of a transform of N = 2^k points: ``Nk + 2N - 2`` tasks, ``2Nk + 3N - 2`` edges.

    The pseudo source is the root of a binary tree with N leaves; k stages of N butterflies follow, then a pseudo sink.

    Args:
        points: N, a power of two from 2 on.
        volume: elements on the first edges.
        seed: of random volumes, one per level; without one all tasks are elementwise.

    Raises:
        UserError: ``points`` is not a power of two, a volume below 1, or too many tasks.
    """
    stages = max(points, 1).bit_length() - 1
    check_sizes("fft", 1, points * stages + 2 * points - 2, volume=volume)
    if points != 2**stages or stages < 1:
        raise UserError(f"fft: {points} points against a power of two, 2 or more")
    builder = DagBuilder(f"fft-{points}")
    volumes = volume_walk(2 * stages + 1, volume, seed)
    before = np.array([builder.add_memory(builder.add_scope("start"), NodeKind.PSEUDO_SOURCE)])
    tree, butterfly = builder.add_scope("split"), builder.add_scope("butterfly")
    for level in range(stages):
        width = 2 ** (level + 1)
        nodes = np.array(builder.add_tasks(tree, width, width - 2))
        builder.add_edges(np.repeat(before, 2), nodes, np.full(width, volumes[level]))
        before = nodes
    places = np.arange(points)
    for stage in range(stages):
        nodes = np.array(builder.add_tasks(butterfly, points, stage * points))
        pairs = np.stack([before, before[places ^ 2**stage]], axis=1)
        builder.add_edges(pairs.ravel(), np.repeat(nodes, 2), np.full(2 * points, volumes[stages + stage]))
        before = nodes
    end = builder.add_memory(builder.add_scope("end"), NodeKind.PSEUDO_SINK)
    builder.add_edges(before, np.full(points, end), np.full(points, volumes[-1]))
    return builder.finish(UserError)
