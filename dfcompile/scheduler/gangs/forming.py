"""Gangs: the tasks that must be on the machine together, and no others."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.dag import Bool, Int32, Int64
from dfcompile.distinct import numbered
from dfcompile.scheduler.blocks import Blocks
from dfcompile.scheduler.timing.cycles import edges_on_loops
from dfcompile.scheduler.timing.steady_state import node_offsets, reading_offsets, streamed_components


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
    start, first_out, last_out = _offsets(dag, blocks, gang, streamed)
    source, target, task = dag.edge_source, dag.edge_target, dag.is_computational
    is_small = dag.edge_volume <= relay_elements
    relayed = (gang[source] != gang[target]) & task[source] & task[target] & is_small
    count = int(gang.max(initial=-1)) + 1
    reading = reading_offsets(dag, streamed)
    return Gangs(count, gang, blocks.order, start, first_out, last_out, reading, relayed)


def gang_sequence(dag: CanonicalDag, gang: Int32, block: Int32) -> list[int]:
    """Return the gangs so that each comes after those that it waits for, and block after block."""
    source, target = gang[dag.edge_source], gang[dag.edge_target]
    links = np.flatnonzero(source != target)
    links = links[np.argsort(source[links], kind="stable")]
    count = int(gang.max(initial=-1)) + 1
    row = np.searchsorted(source[links], np.arange(count + 1)).tolist()
    followers, missing = target[links].tolist(), np.bincount(target[links], minlength=count).tolist()
    block_of = np.zeros(count, dtype=np.int64)
    block_of[gang] = block
    blocks = block_of.tolist()
    ready = [(blocks[number], number) for number in range(count) if not missing[number]]
    heapify(ready)
    sequence = []
    while ready:
        number = heappop(ready)[1]
        sequence.append(number)
        for follower in followers[row[number] : row[number + 1]]:
            missing[follower] -= 1
            if not missing[follower]:
                heappush(ready, (blocks[follower], follower))
    return sequence


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


def _offsets(dag: CanonicalDag, blocks: Blocks, gang: Int32, streamed: Bool) -> tuple[list[int], list[int], list[int]]:
    first, last = node_offsets(dag, blocks.block, streamed)
    first_offset, last_offset = first.tolist(), last.tolist()
    inside = np.flatnonzero(gang[dag.edge_source] == gang[dag.edge_target])
    inside = inside[np.argsort(dag.edge_target[inside], kind="stable")]
    parents, is_streamed = dag.edge_source[inside].tolist(), streamed[inside].tolist()
    row = np.searchsorted(dag.edge_target[inside], np.arange(dag.nodes_count + 1)).tolist()
    start, first_out, last_out = [0] * dag.nodes_count, first_offset[:], last_offset[:]
    for node in blocks.order.tolist():
        begin = 0
        for edge in range(row[node], row[node + 1]):
            parent = parents[edge]
            ready = first_out[parent] if is_streamed[edge] else last_out[parent]
            if ready > begin:
                begin = ready
        if begin:
            start[node] = begin
            first_out[node] += begin
            last_out[node] += begin
    return start, first_out, last_out
