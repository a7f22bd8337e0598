"""Blocks filled by non-increasing work, whatever depends on what."""

import numpy as np

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.scheduler.blocks import Blocks, by_urgency
from dfcompile.scheduler.partitioner import partitioner


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
