"""An element-by-element simulator for tests: slow, small, and without anything in common with the scheduler."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import StrEnum, unique
from itertools import pairwise

import numpy as np

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.dag import Int64
from dfcompile.scheduler import Schedule
from dfcompile.scheduler.timing import int64_column


@unique
class WaitReason(StrEnum):
    """What a stalled node waits for at the other end of an edge."""

    EMPTY = "empty"  # an element that the producer has not sent
    FULL = "full"  # room that the consumer has not made
    MEMORY = "memory"  # the end of the producer: the edge goes through memory
    ELEMENT = "element"  # the end of the task before it on its processing element


NO_EDGE = -1


@dataclass(frozen=True, slots=True)
class Wait:
    """One stalled node and the node that it waits for."""

    node: int
    waits_for: int
    edge: int  # NO_EDGE where no edge joins the two
    reason: WaitReason


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """Times of a simulated run in cycles, and the wait cycle if it stalled.

    Attributes:
        start: when the node read its first element, shape [nodes].
        first_out: when its first output left, shape [nodes].
        last_out: when its last output left, shape [nodes].
        wait_cycle: nodes of which each waits for the next and the last for the first; empty if all nodes ended.
            Times of nodes that did not end are 0.
        events: element reads and writes that were simulated.
    """

    start: Int64
    first_out: Int64
    last_out: Int64
    wait_cycle: tuple[Wait, ...]
    events: int

    @property
    def stalled(self) -> bool:
        """Whether the run ended in a deadlock."""
        return bool(self.wait_cycle)

    @property
    def makespan_cycles(self) -> int:
        """Return when the last node ended."""
        return int(self.last_out.max()) if len(self.last_out) else 0


def simulate(dag: CanonicalDag, schedule: Schedule, *, fifo_capacity: Int64 | None = None, barrier: bool = True) -> Run:
    """Run a schedule: blocks in turn, blocking FIFOs, one element per edge and cycle.

    A task reads one element from every input at once. Its n-th output needs ``ceil(n * I / O)`` reads and leaves
    one cycle after the read or the output before it, whichever is later, as soon as every output FIFO has room;
    the next read comes not before the outputs that the reads so far allow have left. A FIFO of capacity c takes
    its n-th element when the (n - c)-th was read. Memory always has the next element, and room.

    This is a deterministic data-flow network: each event's time follows from the times of earlier events, in
    whatever order they are computed. So no clock is advanced, and the cost is the number of reads and writes.

    Args:
        dag: the graph.
        schedule: its blocks, processing elements and streamed edges; its times are not looked at, but to find
            the order of the tasks of one processing element.
        fifo_capacity: capacities to use instead of the schedule's, shape [edges].
        barrier: whether a block waits for the end of the one before, or only each task for the one before it on
            its processing element.
    """
    capacity = schedule.fifo_capacity if fifo_capacity is None else fifo_capacity
    run = _State(dag, schedule, capacity.tolist(), barrier=barrier)
    run.play()
    return Run(
        start=int64_column(run.start),
        first_out=int64_column(run.first_out),
        last_out=int64_column(run.last_out),
        wait_cycle=run.wait_cycle(),
        events=run.events,
    )


def held_by_readers(dag: CanonicalDag, schedule: Schedule) -> Int64:
    """Return how many elements of each edge its reader holds while it waits for another input, shape [edges].

    By the rules of the replay inputs are read one after another, in edge order; `simulate` reads them at once. A FIFO
    with a place more is the same where the reader has taken the element and waits for one of a later edge, which may go
    through memory.
    """
    held = np.zeros(dag.edges_count, dtype=np.int64)
    last: dict[int, int] = {}
    for edge, target in enumerate(dag.edge_target.tolist()):
        if target in last:
            held[last[target]] = 1
        last[target] = edge
    held[~schedule.streamed] = 0
    return held


class _State:
    """State of a run: what each node has read and written, and when."""

    def __init__(self, dag: CanonicalDag, schedule: Schedule, capacity: list[int], *, barrier: bool) -> None:
        nodes = dag.nodes_count
        self._source, self._target = dag.edge_source.tolist(), dag.edge_target.tolist()
        self._capacity = capacity
        self._reads_total, self._writes_total = dag.volume_in.tolist(), dag.volume_out.tolist()
        self._task = dag.is_computational.tolist()
        streamed = schedule.streamed
        self._fifos_in = _edges_by_node(dag.edge_target, np.flatnonzero(streamed), nodes)
        self._fifos_out = _edges_by_node(dag.edge_source, np.flatnonzero(streamed), nodes)
        self._memory_in = _edges_by_node(dag.edge_target, np.flatnonzero(~streamed), nodes)
        self._memory_out = _edges_by_node(dag.edge_source, np.flatnonzero(~streamed), nodes)
        self._put: list[list[int]] = [[] for _ in range(dag.edges_count)]
        self._got: list[list[int]] = [[] for _ in range(dag.edges_count)]
        self._reads, self._writes = [0] * nodes, [0] * nodes
        self._last_read, self._begin = [0] * nodes, [0] * nodes
        self._awaited = [len(edges) for edges in self._memory_in]
        self._wait: list[Wait | None] = [None] * nodes
        self._queue: deque[int] = deque()
        self._block, self._open_block = schedule.block.tolist(), 0
        self._before, self._after = [-1] * nodes, [-1] * nodes
        if not barrier:
            self._chain_elements(schedule)
        self._barrier = barrier
        self.ended = [False] * nodes
        self.start, self.first_out, self.last_out = [0] * nodes, [0] * nodes, [0] * nodes
        self.events = 0

    def play(self) -> None:
        """Run block after block (with a barrier) or all at once, until nothing moves."""
        groups: list[list[int]] = [[] for _ in range(max(self._block, default=0) + 1 if self._barrier else 1)]
        for node, block in enumerate(self._block):
            groups[block if self._barrier else 0].append(node)
        latest = 0
        for number, members in enumerate(groups):
            self._open_block = number
            for node in members:
                self._begin[node] = max(self._begin[node], latest)
            self._queue.extend(node for node in members if not self._awaited[node])
            while self._queue:
                self._advance(self._queue.popleft())
            if not all(self.ended[node] for node in members):
                return
            latest = max((self.last_out[node] for node in members), default=latest)

    def wait_cycle(self) -> tuple[Wait, ...]:
        """Follow who waits for whom from the first stalled node on until a node comes again."""
        stuck = [node for node, ended in enumerate(self.ended) if not ended and self._opened(node)]
        if not stuck:
            return ()
        node, seen, walk = stuck[0], dict[int, int](), list[Wait]()
        while node not in seen:
            seen[node] = len(walk)
            walk.append(self._wait[node] or self._waits_for_end(node))
            node = walk[-1].waits_for
        return tuple(walk[seen[node] :])

    def _opened(self, node: int) -> bool:
        return not self._barrier or self._block[node] <= self._open_block

    def _waits_for_end(self, node: int) -> Wait:
        for edge in self._memory_in[node]:
            if not self.ended[self._source[edge]]:
                return Wait(node, self._source[edge], edge, WaitReason.MEMORY)
        return Wait(node, self._before[node], NO_EDGE, WaitReason.ELEMENT)

    def _chain_elements(self, schedule: Schedule) -> None:
        tasks = np.flatnonzero(np.array(self._task, dtype=np.bool_))
        order = tasks[np.lexsort((schedule.start[tasks], schedule.block[tasks], schedule.pe[tasks]))].tolist()
        pe = schedule.pe.tolist()
        for left, right in pairwise(order):
            if pe[left] == pe[right]:
                self._before[right], self._after[left] = left, right
                self._awaited[right] += 1

    def _advance(self, node: int) -> None:
        """Let a node read and write until it must wait or ends."""
        if self.ended[node] or self._awaited[node]:
            return
        if not self._task[node]:
            self.start[node] = self.first_out[node] = self.last_out[node] = self._begin[node]
            self._finish(node)
            return
        total = self._reads_total[node]
        while True:
            allowed = self._writes_total[node] * self._reads[node] // total if total else self._writes_total[node]
            while self._writes[node] < allowed:
                if not self._write(node):
                    return
            if self._reads[node] == total:
                break
            if not self._read(node):
                return
        if not self._writes_total[node]:
            self.first_out[node] = self.last_out[node] = self._last_read[node] + 1
        self._finish(node)

    def _read(self, node: int) -> bool:
        count = self._reads[node]
        time = max(self._last_read[node] + 1, self.last_out[node]) if count else self._begin[node]
        for edge in self._fifos_in[node]:
            put = self._put[edge]
            if len(put) == count:
                self._wait[node] = Wait(node, self._source[edge], edge, WaitReason.EMPTY)
                return False
            time = max(time, put[count])
        for edge in self._fifos_in[node]:
            self._got[edge].append(time)
            self._wake(self._source[edge])
        if not count:
            self.start[node] = time
        self._last_read[node] = time
        self._reads[node] = count + 1
        self.events += 1
        return True

    def _write(self, node: int) -> bool:
        count = self._writes[node]
        before = self.last_out[node] if count else 0
        time = max(before, self._last_read[node] if self._reads_total[node] else self._begin[node]) + 1
        for edge in self._fifos_out[node]:
            freed = count - self._capacity[edge]
            if freed >= 0:
                got = self._got[edge]
                if len(got) <= freed:
                    self._wait[node] = Wait(node, self._target[edge], edge, WaitReason.FULL)
                    return False
                time = max(time, got[freed])
        for edge in self._fifos_out[node]:
            self._put[edge].append(time)
            self._wake(self._target[edge])
        if not count:
            self.first_out[node] = time
            if not self._reads_total[node]:
                self.start[node] = self._begin[node]
        self.last_out[node] = time
        self._writes[node] = count + 1
        self.events += 1
        return True

    def _wake(self, node: int) -> None:
        if self._wait[node] is not None:
            self._wait[node] = None
            self._queue.append(node)

    def _finish(self, node: int) -> None:
        self.ended[node] = True
        released = [self._target[edge] for edge in self._memory_out[node]]
        if self._after[node] >= 0:
            released.append(self._after[node])
        for other in released:
            self._begin[other] = max(self._begin[other], self.last_out[node])
            self._awaited[other] -= 1
            if not self._awaited[other] and (not self._barrier or self._block[other] == self._open_block):
                self._queue.append(other)


def _edges_by_node(end: np.ndarray[tuple[int], np.dtype[np.int32]], edges: Int64, nodes: int) -> list[list[int]]:
    by_node: list[list[int]] = [[] for _ in range(nodes)]
    for node, edge in zip(end[edges].tolist(), edges.tolist(), strict=True):
        by_node[node].append(edge)
    return by_node
