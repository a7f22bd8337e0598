"""Spatial blocks: which nodes are on the machine together."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.dag import Int32
from dfcompile.errors import VerificationError


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
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
        used, numbers = np.unique(np.array(block, dtype=np.int32), return_inverse=True)
        assert len(used) <= len(block)
        return cls(_frozen(numbers), _frozen(np.array(order, dtype=np.int32)))

    @classmethod
    def of(cls, dag: CanonicalDag, block: list[int]) -> Blocks:
        """Order the nodes of a given partition; ties go to the node with the smaller number.

        Raises:
            VerificationError: an edge leads back to an earlier block, or the graph has a cycle.
        """
        backward = np.asarray(block)[dag.edge_source] > np.asarray(block)[dag.edge_target]
        if backward.any():
            edge = int(np.argmax(backward))
            names = [dag.node_name(int(end[edge])) for end in (dag.edge_source, dag.edge_target)]
            raise VerificationError(f"edge {names[0]!r} -> {names[1]!r}: leads back to an earlier block")
        targets, starts = dag.edge_target[dag.out_edges].tolist(), dag.out_start.tolist()
        missing = np.diff(dag.in_start).tolist()
        ready: list[tuple[int, int]] = []
        for node, count in enumerate(missing):
            if not count:
                heappush(ready, (block[node], node))
        order = []
        while ready:
            node = heappop(ready)[1]
            order.append(node)
            for target in targets[starts[node] : starts[node + 1]]:
                missing[target] -= 1
                if not missing[target]:
                    heappush(ready, (block[target], target))
        if len(order) < dag.nodes_count:
            raise VerificationError(f"dag {dag.name!r}: has a cycle")
        return cls.in_order(block, order)

    @property
    def count(self) -> int:
        """Number of blocks."""
        return int(self.block.max()) + 1 if len(self.block) else 0


def _frozen(column: np.ndarray[tuple[int], np.dtype[np.signedinteger]]) -> Int32:
    frozen = column.astype(np.int32)
    frozen.setflags(write=False)
    return frozen
