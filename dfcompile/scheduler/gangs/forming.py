"""Gangs: the tasks that must be on the machine together, and no others."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag.dag import Bool, CanonicalDag, Int32, Int64
from dfcompile.distinct import numbered
from dfcompile.scheduler.blocks import Blocks, by_urgency
from dfcompile.scheduler.timing.cycles import edges_on_loops
from dfcompile.scheduler.timing.steady_state import node_offsets, node_times, reading_offsets, streamed_components


class Gangs(Struct, frozen=True, eq=False):
    """The smallest units of a partition that can be placed one by one.

    A gang is a streaming component of a block, or several that wait for one another through memory; a buffer or
    pseudo node that no gang waits for in a circle is a gang of its own, without tasks. No circle of dependences
    joins gangs. Once a gang begins, each of its nodes follows at a fixed distance: data of other gangs are there in
    time.

    Attributes:
        count: number of gangs.
        gang: gang of each node, shape [nodes].
        order: all nodes, those of a gang topologically, shape [nodes].
        start: cycles from the beginning of its gang until each node starts, shape [nodes].
        first_out: until its first output, shape [nodes].
        last_out: until its last output, shape [nodes].
        reading: cycles from the start of each node to when it needs its last element at least, shape [nodes].
        relayed: which edges may stream from gang to gang, through FIFOs that hold all of them, shape [edges].
    """

    count: int
    gang: Int32
    order: Int32
    start: list[int]
    first_out: list[int]
    last_out: list[int]
    reading: Int64
    relayed: Bool

    def largest(self, dag: CanonicalDag) -> int:
        """Return the tasks of the largest gang."""
        return int(np.bincount(self.gang[dag.is_computational]).max(initial=0))


def gangs_of(dag: CanonicalDag, blocks: Blocks, streamed: Bool, relay_elements: int) -> Gangs:
    """Split the blocks of a partition into gangs.

    Args:
        dag: the graph.
        blocks: its blocks.
        streamed: which edges stream inside blocks, shape [edges].
        relay_elements: an edge of at most so many may stream from gang to gang, through a FIFO that holds all of it.
    """
    component = streamed_components(dag, streamed)
    gang = _merged(dag, blocks.block, streamed, component)
    inside = dag.in_edges[gang[dag.edge_source[dag.in_edges]] == gang[dag.edge_target[dag.in_edges]]]
    offsets = node_offsets(dag, blocks.block, streamed)
    times = node_times(dag, blocks.order, offsets, streamed, (inside, np.zeros(dag.nodes_count, dtype=np.int32)))
    is_small = dag.edge_volume <= relay_elements
    relayed = (gang[dag.edge_source] != gang[dag.edge_target]) & dag.between_tasks & is_small
    count = int(gang.max(initial=-1)) + 1
    reading = reading_offsets(dag, streamed)
    return Gangs(count, gang, blocks.order, *times, reading, relayed)


def gang_sequence(dag: CanonicalDag, gang: Int32, block: Int32) -> list[int]:
    """Return the gangs so that each comes after those that it waits for, and block after block."""
    source, target = gang[dag.edge_source], gang[dag.edge_target]
    block_of = np.zeros(int(gang.max(initial=-1)) + 1, dtype=np.int64)
    block_of[gang] = block
    return by_urgency(block_of.tolist(), source[source != target], target[source != target])


def _merged(dag: CanonicalDag, block: Int32, streamed: Bool, component: Int64) -> Int32:
    """Number the components, those that wait for one another through memory as one; memory never leaves a block."""
    source, target = component[dag.edge_source], component[dag.edge_target]
    memory = ~streamed & (block[dag.edge_source] == block[dag.edge_target])
    circular = np.zeros(dag.edges_count, dtype=np.bool_)
    between = np.flatnonzero(memory & (source != target))
    circular[between] = edges_on_loops(dag.nodes_count, source[between], target[between])
    if circular.any():
        component = streamed_components(dag, streamed | circular)
    return numbered(component)[1].astype(np.int32)
