"""Spatial blocks that no node slows down, SB-LTS; that are always full, SB-RLX; or filled by non-increasing work."""

from heapq import heapify, heappop, heappush

import numpy as np

from dfcompile.canonical_dag import CanonicalDag, NodeKind
from dfcompile.scheduler.blocks import Blocks, by_urgency
from dfcompile.scheduler.partitioner import partitioner


@partitioner("sb-lts", source="dematteis23")
def sb_lts(dag: CanonicalDag, pes: int) -> Blocks:
    """Open a new block rather than let a node slow a block source down [dematteis23, algorithm 1]."""
    return _Filler(dag, pes, relaxed=False).fill()


@partitioner("sb-rlx", source="dematteis23")
def sb_rlx(dag: CanonicalDag, pes: int) -> Blocks:
    """Fill every block, with the least slowing node if need be [dematteis23, algorithm 1, relaxed]."""
    return _Filler(dag, pes, relaxed=True).fill()


_NO_SOURCE = -1


class _Filler:
    """Fills one block after another from three heaps of ready nodes.

    A node without an ancestor in the open block is *free*: it becomes a block source at once, smallest number
    first. Any other node is compared with the first of the block's sources among its ancestors: with no more
    work than that it is a *candidate* (largest work first, among equals the largest number), else a *spill*
    (smallest work first, among equals the smallest number). Without free nodes and candidates the next spill is taken,
    if relaxed; else all spills wait for the next block, where they are free.

    All predecessors of a ready node are placed, and blocks are filled one after another. Hence every path from
    a source of the open block to a ready node stays inside that block, and the first source among the ancestors
    is the smallest one among the predecessors in the block: no descendant sets are needed. A node enters each
    heap at most once, so the whole takes O((nodes + edges) log nodes).
    """

    def __init__(self, dag: CanonicalDag, pes: int, *, relaxed: bool) -> None:
        nodes = dag.nodes_count
        self._nodes, self._pes, self._relaxed = nodes, pes, relaxed
        self._work, self._computational = dag.work.tolist(), dag.is_computational.tolist()
        self._pseudo = (dag.kind > NodeKind.BUFFER).tolist()
        self._targets, self._out_start = dag.edge_target[dag.out_edges].tolist(), dag.out_start.tolist()
        self._sources_of, self._in_start = dag.edge_source[dag.in_edges].tolist(), dag.in_start.tolist()
        self._missing = np.diff(dag.in_start).tolist()
        self._block = [-1] * nodes
        self._first_source = [_NO_SOURCE] * nodes  # position in _block_sources
        self._order: list[int] = []
        self._free = [node for node, count in enumerate(self._missing) if not count]
        heapify(self._free)
        self._open_number = self._placed_tasks = 0
        self._block_sources: list[int] = []
        self._candidates: list[tuple[int, int]] = []
        self._spills: list[tuple[int, int]] = []

    def fill(self) -> Blocks:
        """Place all nodes."""
        for _ in range(self._nodes):
            if not (self._free or self._candidates or self._relaxed):
                self._open_block()
            if self._free:
                node = heappop(self._free)
                if not self._pseudo[node]:
                    self._first_source[node] = len(self._block_sources)
                    self._block_sources.append(node)
            elif self._candidates:
                node = -heappop(self._candidates)[1]
            else:
                node = heappop(self._spills)[1]
            self._block[node] = self._open_number
            self._order.append(node)
            self._placed_tasks += self._computational[node]
            if self._placed_tasks == self._pes:
                self._open_block()
            missing = self._missing
            for target in self._targets[self._out_start[node] : self._out_start[node + 1]]:
                missing[target] -= 1
                if not missing[target]:
                    self._classify(target)
        return Blocks.in_order(self._block, self._order)

    def _classify(self, node: int) -> None:
        first = self._nodes
        for parent in self._sources_of[self._in_start[node] : self._in_start[node + 1]]:
            if self._block[parent] == self._open_number:
                position = self._first_source[parent]
                if _NO_SOURCE < position < first:
                    first = position
        if first == self._nodes:
            heappush(self._free, node)
            return
        self._first_source[node] = first
        work = self._work[node]
        if not self._computational[node] or work <= self._work[self._block_sources[first]]:
            heappush(self._candidates, (-work, -node))
        else:
            heappush(self._spills, (work, node))

    def _open_block(self) -> None:
        """Close the open block; what waited in it has no ancestor in the next one."""
        self._open_number += 1
        self._placed_tasks = 0
        self._block_sources = []
        for node in [-node for _, node in self._candidates] + [node for _, node in self._spills]:
            heappush(self._free, node)
        self._candidates, self._spills = [], []


@partitioner("work-ordered", source="dematteis23")
def work_ordered(dag: CanonicalDag, pes: int) -> Blocks:
    """Take the ready node of largest work, P to a block [dematteis23, algorithm 2].

    Buffers and pseudo nodes are taken as soon as they are ready. Among equals the smallest number comes first.
    """
    task = dag.is_computational
    order = by_urgency(np.where(task, -dag.work, -(2**63)).tolist(), dag.edge_source, dag.edge_target)
    placed = np.cumsum(task[order])
    block = np.empty(dag.nodes_count, dtype=np.int64)
    block[order] = np.maximum(placed - 1, 0) // pes
    return Blocks.in_order(block.tolist(), order)
