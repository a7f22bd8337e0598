"""Blocks filled by non-increasing work, whatever depends on what."""

from heapq import heapify, heappop, heappush

import numpy as np

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.scheduler.blocks import Blocks
from dfcompile.scheduler.partitioner import partitioner


@partitioner("work-ordered", source="dematteis23")
def work_ordered(dag: CanonicalDag, pes: int) -> Blocks:
    """Take the ready node of largest work, P to a block [dematteis23, algorithm 2].

    Buffers and pseudo nodes are taken as soon as they are ready. Among equals the smallest number comes first.
    """
    computational, work = dag.is_computational.tolist(), dag.work.tolist()
    targets, starts = dag.edge_target[dag.out_edges].tolist(), dag.out_start.tolist()
    missing = np.diff(dag.in_start).tolist()
    urgency = [-work[node] if computational[node] else -(2**63) for node in range(dag.nodes_count)]
    ready = [(urgency[node], node) for node, count in enumerate(missing) if not count]
    heapify(ready)
    block = [0] * dag.nodes_count
    order = []
    open_block = placed = 0
    while ready:
        node = heappop(ready)[1]
        if computational[node] and placed == pes:
            open_block, placed = open_block + 1, 0
        placed += computational[node]
        block[node] = open_block
        order.append(node)
        for target in targets[starts[node] : starts[node + 1]]:
            missing[target] -= 1
            if not missing[target]:
                heappush(ready, (urgency[target], target))
    return Blocks.in_order(block, order)
