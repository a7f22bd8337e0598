"""A partitioner: as many tasks as there are processing elements, in the order of the longest way to them."""

import numpy as np

from dfcompile.canonical_dag import CanonicalDag, topological_order
from dfcompile.scheduler import Blocks, partitioner


@partitioner("slices", source="mylab24")
def slices(dag: CanonicalDag, pes: int) -> Blocks:
    """Cut a topological order into blocks of P tasks each."""
    tasks_before = np.cumsum(dag.is_computational[topological_order(dag)])
    block = np.zeros(dag.nodes_count, dtype=np.int64)
    block[topological_order(dag)] = np.maximum(tasks_before - 1, 0) // pes
    return Blocks.of(dag, block.tolist())
