"""The left-looking tiled Cholesky factorisation."""

import numpy as np

from dfcompile.canonical_dag.builder import DagBuilder
from dfcompile.canonical_dag.dag import CanonicalDag, Int64, NodeKind
from dfcompile.errors import UserError
from dfcompile.generators.canonical_dags.volume_walk import FIRST_VOLUME, check_sizes, volume_walk


def cholesky(tiles: int, volume: int = FIRST_VOLUME, seed: int | None = None) -> CanonicalDag:
    """Return the factorisation of N x N tiles: ``N(N+1)(N+2)/6`` tasks, ``(N-1)^2 + N + N(N-1)^2/2`` edges.

    * ``syrk[k, j]``, j < k, updates the diagonal tile k with ``trsm[k, j]``, after ``syrk[k, j-1]``;
    * ``potrf[k]`` factors it;
    * ``gemm[i, k, j]``, j < k < i, updates tile (i, k) with ``trsm[i, j]`` and ``trsm[k, j]``, after
      ``gemm[i, k, j-1]``;
    * ``trsm[i, k]`` solves it with ``potrf[k]``.

    A pseudo source feeds ``potrf[0]``; ``potrf[N-1]`` is the sink. Joins leave three free volumes per column: of what
    ``potrf[k]`` emits, of what ``trsm[·, k]`` emits, and of what ``potrf[k+1]`` reads.

    Args:
        tiles: N, 1 or more.
        volume: elements on the first edge.
        seed: of random volumes; without one all tasks are elementwise.

    Raises:
        UserError: a size or volume below 1, or too many tasks.
    """
    check_sizes("cholesky", 1, tiles * (tiles + 1) * (tiles + 2) // 6, tiles=tiles, volume=volume)
    return _Factorisation(tiles, volume, seed).build()


class _Factorisation:
    def __init__(self, tiles: int, volume: int, seed: int | None) -> None:
        self._tiles = tiles
        self._builder = DagBuilder(f"cholesky-{tiles}")
        start = self._builder.add_scope("start")
        self._start = self._builder.add_memory(start, NodeKind.PSEUDO_SOURCE)
        self._scopes = {name: self._builder.add_scope(name) for name in ("potrf", "trsm", "syrk", "gemm")}
        self._members = dict.fromkeys(self._scopes, 0)
        self._trsm = np.zeros((tiles, tiles), dtype=np.int64)  # node of trsm[i, k]
        # What potrf[k] reads, what it emits, what trsm[., k] emits, for k = 0, 1, ...
        walk = volume_walk(3 * tiles, volume, seed)
        self._read, self._factor, self._column = walk[0::3], walk[1::3], walk[2::3]

    def build(self) -> CanonicalDag:
        for column in range(self._tiles):
            potrf = self._add_diagonal(column)
            self._add_below(column, potrf)
        return self._builder.finish(UserError)

    def _add_diagonal(self, k: int) -> int:
        syrk = self._add("syrk", k)
        potrf = int(self._add("potrf", 1)[0])
        columns = np.array(self._column)
        if k == 0:
            self._builder.add_edge(self._start, potrf, self._read[0])
        else:
            self._builder.add_edges(self._trsm[k, :k], syrk, columns[:k])
            self._builder.add_edges(syrk[:-1], syrk[1:], columns[1:k])
            self._builder.add_edge(int(syrk[-1]), potrf, self._read[k])
        return potrf

    def _add_below(self, k: int, potrf: int) -> None:
        rows = np.arange(k + 1, self._tiles)
        gemm = self._add("gemm", len(rows) * k).reshape(len(rows), k)
        trsm = self._add("trsm", len(rows))
        self._trsm[rows, k] = trsm
        volumes = np.broadcast_to(np.array(self._column[:k], dtype=np.int64), gemm.shape)
        self._edges(self._trsm[rows, :k], gemm, volumes)
        self._edges(np.broadcast_to(self._trsm[k, :k], gemm.shape), gemm, volumes)
        self._edges(gemm[:, :-1], gemm[:, 1:], volumes[:, 1:])
        if k > 0:
            self._edges(gemm[:, -1], trsm, np.full(len(rows), self._factor[k]))
        self._edges(np.full(len(rows), potrf), trsm, np.full(len(rows), self._factor[k]))

    def _add(self, scope: str, count: int) -> Int64:
        nodes = self._builder.add_tasks(self._scopes[scope], count, self._members[scope])
        self._members[scope] += count
        return np.array(nodes, dtype=np.int64)

    def _edges(self, sources: Int64, targets: Int64, volumes: Int64) -> None:
        self._builder.add_edges(sources.ravel(), targets.ravel(), volumes.ravel())
