"""Canonical DAGs on which streaming schedulers are compared [dematteis23, section 6].

Chains, forks and joins, fast Fourier transforms, Gaussian elimination, Cholesky factorisation.
"""

from fractions import Fraction
from random import Random

import numpy as np

from dfcompile.canonical_dag.builder import DagBuilder
from dfcompile.canonical_dag.dag import CanonicalDag, Int64, NodeKind
from dfcompile.canonical_dag.forms.reader import LARGEST_NODES
from dfcompile.canonical_dag.verifier import LARGEST_VOLUME
from dfcompile.errors import UserError

FIRST_VOLUME = 2048
_FACTORS = tuple(Fraction(factor) for factor in ("1/4", "1/3", "1/2", "2", "3", "4"))
_LARGEST_FACTOR = 1000


def volume_walk(steps: int, first: int, seed: int | None) -> list[int]:
    """Return ``steps`` volumes, the first one given; all equal without a seed.

    With probability 1/3 a volume equals the one before; otherwise it is the one before times 1/4, 1/3, 1/2, 2, 3 or 4,
    rounded down, at least 1 and at most 1000 times the first [dematteis23, section 6].
    """
    if seed is None:
        return [first] * steps
    random = Random(seed)  # noqa: S311  # reproducible, not secret
    volumes = [first]
    while len(volumes) < steps:
        volume = volumes[-1]
        if random.randrange(3) > 0:
            volume = int(volume * random.choice(_FACTORS))
        volumes.append(min(max(volume, 1), _LARGEST_FACTOR * first))
    return volumes[:steps]


def check_sizes(generator: str, least: int, tasks: int, **sizes: int) -> None:
    """Check what the user asked for, before anything is built.

    Raises:
        UserError: a size is below the least or makes volumes too large, or there are more tasks than a graph may have.
    """
    for name, size in sizes.items():
        if size < least:
            raise UserError(f"{generator}: {name} {size} against {least} or more")
        if size * _LARGEST_FACTOR > LARGEST_VOLUME:
            raise UserError(f"{generator}: {name} {size} against at most {LARGEST_VOLUME // _LARGEST_FACTOR}")
    if tasks > LARGEST_NODES:
        raise UserError(f"{generator}: {tasks} tasks against at most {LARGEST_NODES}")


def chain(size: int, volume: int = FIRST_VOLUME, seed: int | None = None) -> CanonicalDag:
    """Return ``size`` tasks in a row between a pseudo source and a pseudo sink: ``size + 1`` edges.

    Args:
        size: number of tasks.
        volume: elements on the first edges.
        seed: of random volumes; without one all tasks are elementwise.

    Raises:
        UserError: a size or volume below 1, or too many tasks.
    """
    check_sizes("chain", 1, size, size=size, volume=volume)
    builder = DagBuilder(f"chain-{size}")
    start = _start(builder)
    nodes = np.array([start, *builder.add_tasks(builder.add_scope("task"), size), _end(builder)])
    builder.add_edges(nodes[:-1], nodes[1:], volume_walk(size + 1, volume, seed))
    return builder.finish(UserError)


def fork_join(first: int, second: int, volume: int = FIRST_VOLUME, seed: int | None = None) -> CanonicalDag:
    """Return ``first`` tasks joined by one, then ``second`` tasks joined by one: n + m + 2 tasks, 2n + 2m + 1 edges.

    The pseudo source forks to the first stage of n; the last join, of m, ends in the pseudo sink. All edges into a
    stage have one random volume, and so have all edges out of it.

    Args:
        first: tasks of the first stage.
        second: tasks of the second stage.
        volume: elements on the first edges.
        seed: of random volumes; without one all tasks are elementwise.

    Raises:
        UserError: a size or volume below 1, or too many tasks.
    """
    check_sizes("fork-join", 1, first + second + 2, first=first, second=second, volume=volume)
    builder = DagBuilder(f"fork-join-{first}-{second}")
    start = _start(builder)
    left = np.array(builder.add_tasks(builder.add_scope("first"), first))
    middle = builder.add_task(builder.add_scope("middle"))
    right = np.array(builder.add_tasks(builder.add_scope("second"), second))
    last = builder.add_task(builder.add_scope("last"))
    end = _end(builder)
    volumes = volume_walk(5, volume, seed)
    for stage, fork, join, into in ((left, start, middle, 0), (right, middle, last, 2)):
        builder.add_edges(np.full(len(stage), fork), stage, np.full(len(stage), volumes[into]))
        builder.add_edges(stage, np.full(len(stage), join), np.full(len(stage), volumes[into + 1]))
    builder.add_edge(last, end, volumes[4])
    return builder.finish(UserError)


def fft(size: int, volume: int = FIRST_VOLUME, seed: int | None = None) -> CanonicalDag:
    """Return the graph of a transform of N = 2^k points: ``Nk + 2N - 2`` tasks, ``2Nk + 3N - 2`` edges.

    The pseudo source is the root of a binary tree with N leaves; k stages of N butterflies follow, then a pseudo sink.
    All edges into a level of the tree, and all edges into a stage, have one random volume.

    Args:
        size: points, a power of two.
        volume: elements on the first edges.
        seed: of random volumes; without one all tasks are elementwise.

    Raises:
        UserError: ``size`` is not a power of two, a volume below 1, or too many tasks.
    """
    stages = max(size, 1).bit_length() - 1
    check_sizes("fft", 1, size * stages + 2 * size - 2, volume=volume)
    if size != 2**stages or stages < 1:
        raise UserError(f"fft: {size} points against a power of two, 2 or more")
    builder = DagBuilder(f"fft-{size}")
    volumes = volume_walk(2 * stages + 1, volume, seed)
    previous = np.array([_start(builder)])
    tree, butterfly = builder.add_scope("split"), builder.add_scope("butterfly")
    for level in range(stages):
        width = 2 ** (level + 1)
        nodes = np.array(builder.add_tasks(tree, width, width - 2))
        builder.add_edges(np.repeat(previous, 2), nodes, np.full(width, volumes[level]))
        previous = nodes
    indices = np.arange(size)
    for stage in range(stages):
        nodes = np.array(builder.add_tasks(butterfly, size, stage * size))
        pairs = np.stack([previous, previous[indices ^ 2**stage]], axis=1)  # what each butterfly reads
        builder.add_edges(pairs.ravel(), np.repeat(nodes, 2), np.full(2 * size, volumes[stages + stage]))
        previous = nodes
    builder.add_edges(previous, np.full(size, _end(builder)), np.full(size, volumes[-1]))
    return builder.finish(UserError)


def gaussian(size: int, volume: int = FIRST_VOLUME, seed: int | None = None) -> CanonicalDag:
    """Return the elimination of an N x N matrix: ``(N^2 + N - 2) / 2`` tasks, ``N (N - 1)`` edges.

    Row k has a pivot, which feeds N - k updates; update j of row k goes on to column j of row k + 1: the first one to
    its pivot, the others to its updates. A pseudo source feeds the first pivot; the last update is the sink. All
    edges of a row have one random volume.

    Args:
        size: rows and columns of the matrix.
        volume: elements on the first edges.
        seed: of random volumes; without one all tasks are elementwise.

    Raises:
        UserError: a size below 2, a volume below 1, or too many tasks.
    """
    check_sizes("gaussian", 1, (size * size + size - 2) // 2, volume=volume)
    check_sizes("gaussian", 2, 0, size=size)
    builder = DagBuilder(f"gaussian-{size}")
    start = _start(builder)
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


def cholesky(size: int, volume: int = FIRST_VOLUME, seed: int | None = None) -> CanonicalDag:
    """Return the factorisation of N x N tiles: ``N(N+1)(N+2)/6`` tasks, ``(N-1)^2 + N + N(N-1)^2/2`` edges.

    * ``syrk[k, j]``, j < k, updates the diagonal tile k with ``trsm[k, j]``, after ``syrk[k, j-1]``;
    * ``potrf[k]`` factors it;
    * ``gemm[i, k, j]``, j < k < i, updates tile (i, k) with ``trsm[i, j]`` and ``trsm[k, j]``, after
      ``gemm[i, k, j-1]``;
    * ``trsm[i, k]`` solves it with ``potrf[k]``.

    A pseudo source feeds ``potrf[0]``; ``potrf[N-1]`` is the sink. All inputs of a task have one volume, so three can
    be drawn per column: of what ``potrf[k]`` reads, of what it emits, and of what ``trsm[·, k]`` emits.

    Args:
        size: rows and columns of tiles.
        volume: elements on the first edges.
        seed: of random volumes; without one all tasks are elementwise.

    Raises:
        UserError: a size or volume below 1, or too many tasks.
    """
    check_sizes("cholesky", 1, size * (size + 1) * (size + 2) // 6, tiles=size, volume=volume)
    builder = DagBuilder(f"cholesky-{size}")
    start = _start(builder)
    scopes = {name: builder.add_scope(name) for name in ("potrf", "trsm", "syrk", "gemm")}
    members = dict.fromkeys(scopes, 0)
    trsm_nodes = np.zeros((size, size), dtype=np.int64)  # number of trsm[i, k]
    # Volumes of what potrf[k] reads, of what it emits, of what trsm[., k] emits, for k = 0, 1, ...
    walk = volume_walk(3 * size, volume, seed)
    potrf_in, potrf_out, trsm_out = walk[0::3], walk[1::3], np.array(walk[2::3], dtype=np.int64)

    def add(scope: str, count: int) -> Int64:
        nodes = builder.add_tasks(scopes[scope], count, members[scope])
        members[scope] += count
        return np.array(nodes, dtype=np.int64)

    def join(sources: Int64, targets: Int64, volumes: Int64) -> None:
        builder.add_edges(sources.ravel(), targets.ravel(), volumes.ravel())

    for k in range(size):
        syrk, (potrf,) = add("syrk", k), add("potrf", 1)
        if k > 0:
            join(trsm_nodes[k, :k], syrk, trsm_out[:k])
            join(syrk[:-1], syrk[1:], trsm_out[1:k])
        builder.add_edge(int(syrk[-1]) if k > 0 else start, int(potrf), potrf_in[k])
        rows = np.arange(k + 1, size)
        gemm, trsm = add("gemm", len(rows) * k).reshape(len(rows), k), add("trsm", len(rows))
        trsm_nodes[rows, k] = trsm
        gemm_in, trsm_in = np.broadcast_to(trsm_out[:k], gemm.shape), np.full(len(rows), potrf_out[k])
        join(trsm_nodes[rows, :k], gemm, gemm_in)
        join(np.broadcast_to(trsm_nodes[k, :k], gemm.shape), gemm, gemm_in)
        join(gemm[:, :-1], gemm[:, 1:], gemm_in[:, 1:])
        if k > 0:
            join(gemm[:, -1], trsm, trsm_in)
        join(np.full(len(rows), potrf), trsm, trsm_in)
    return builder.finish(UserError)


def _start(builder: DagBuilder) -> int:
    return builder.add_memory(builder.add_scope("start"), NodeKind.PSEUDO_SOURCE)


def _end(builder: DagBuilder) -> int:
    return builder.add_memory(builder.add_scope("end"), NodeKind.PSEUDO_SINK)
