"""Spatial blocks: which nodes are on the machine together."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag.dag import CanonicalDag, Int32, frozen
from dfcompile.canonical_dag.verifier import reject_edge
from dfcompile.distinct import distinct, numbered
from dfcompile.errors import VerificationError


class Blocks(Struct, frozen=True, eq=False):
    """A partition of the nodes into spatial blocks that run one after another [dematteis23, section 5].

    Attributes:
        block: number of the block of each node, shape [nodes]; buffers and pseudo nodes have one too.
        order: all nodes, block after block and topologically inside a block, shape [nodes].
    """

    block: Int32
    order: Int32

    @classmethod
    def in_order(cls, block: list[int], order: list[int]) -> Blocks:
        """Freeze what a partitioner found; empty blocks vanish, the others keep their order."""
        used, numbers = numbered(np.array(block, dtype=np.int32))
        assert len(used) <= len(block)
        return cls(frozen(numbers.astype(np.int32)), frozen(np.array(order, dtype=np.int32)))

    @classmethod
    def of(cls, dag: CanonicalDag, block: list[int]) -> Blocks:
        """Order the nodes of a given partition; ties go to the node with the smaller number.

        Raises:
            VerificationError: an edge leads back to an earlier block, or the graph has a cycle.
        """
        backward = np.asarray(block)[dag.edge_source] > np.asarray(block)[dag.edge_target]
        reject_edge(dag, backward, "leads back to an earlier block")
        order = by_urgency(block, dag.edge_source, dag.edge_target)
        if len(order) < dag.nodes_count:
            raise VerificationError(f"dag {dag.name!r}: has a cycle")
        return cls.in_order(block, order)

    @property
    def count(self) -> int:
        """Number of blocks."""
        return int(self.block.max()) + 1 if len(self.block) else 0


def check_blocks(dag: CanonicalDag, blocks: object, pes: int, *, overlaps: bool) -> None:
    """Check that a value is a partition of the nodes into spatial blocks for P processing elements.

    Args:
        dag: the graph.
        blocks: what a partitioner returned.
        pes: number of processing elements P.
        overlaps: whether a block may hold more than P tasks, which its streaming components may not.

    Raises:
        VerificationError: it is another type, a column is not as documented, a node is missing, a node comes before
            what it reads, or a block holds more than P tasks.
    """
    if not isinstance(blocks, Blocks):
        raise VerificationError(f"returned {type(blocks).__name__} against Blocks")
    nodes = dag.nodes_count
    for name, column in (("block", blocks.block), ("order", blocks.order)):
        if not isinstance(column, np.ndarray) or column.dtype != np.int32 or column.shape != (nodes,):
            raise VerificationError(f"column {name}: found {_described(column)} against int32({nodes},)")
    if not np.array_equal(np.sort(blocks.order), np.arange(nodes)):
        raise VerificationError(f"column order: not each of the {nodes} nodes once")
    if not np.array_equal(distinct(blocks.block), np.arange(blocks.count)):
        raise VerificationError("column block: the numbers of the blocks are not 0, 1, 2, …")
    place = np.empty(nodes, dtype=np.int64)
    place[blocks.order] = np.arange(nodes)
    backward = blocks.block[dag.edge_source] > blocks.block[dag.edge_target]
    reject_edge(dag, backward, "leads back to an earlier block")
    reject_edge(dag, place[dag.edge_source] > place[dag.edge_target], "its target comes first in the order")
    if nodes and np.any(np.diff(blocks.block[blocks.order]) < 0):
        raise VerificationError("column order: not block after block")
    if not overlaps:
        held = np.bincount(blocks.block[dag.is_computational], minlength=blocks.count)
        if np.any(held > pes):
            fullest = int(np.argmax(held))
            raise VerificationError(f"block {fullest}: {held[fullest]} tasks against at most {pes}")


def _described(column: object) -> str:
    return f"{column.dtype}{column.shape}" if isinstance(column, np.ndarray) else type(column).__name__


def by_urgency(urgency: list[int], source: Int32, target: Int32) -> list[int]:
    """Return vertices, each after those that lead to it; next is the one of least urgency, of equals the first.

    Args:
        urgency: of each vertex, shape [vertices].
        source: where each edge begins, shape [edges].
        target: where it ends; what is on a cycle, or behind one, is left out, shape [edges].
    """
    by_source = np.argsort(source, kind="stable")
    followers = target[by_source].tolist()
    row = np.searchsorted(source[by_source], np.arange(len(urgency) + 1)).tolist()
    missing = np.bincount(target, minlength=len(urgency)).tolist()
    ready = [(urgency[vertex], vertex) for vertex, count in enumerate(missing) if not count]
    heapify(ready)
    order = []
    while ready:
        vertex = heappop(ready)[1]
        order.append(vertex)
        for follower in followers[row[vertex] : row[vertex + 1]]:
            missing[follower] -= 1
            if not missing[follower]:
                heappush(ready, (urgency[follower], follower))
    return order
