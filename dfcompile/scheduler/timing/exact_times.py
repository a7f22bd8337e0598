"""Times of a whole schedule element by element, gang after gang."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.dag import Bool, Int32, Int64
from dfcompile.errors import UserError
from dfcompile.scheduler.timing.element_times import GangTask, TaskTimes, gang_times

NO_TASK = -1
_MOST_ACCESSES = 100_000_000  # of one gang: about 4 GB


@dataclass(frozen=True, slots=True, eq=False)
class Turns:
    """What a gang waits for, beside its data.

    Attributes:
        sequence: the gangs, each after those that it waits for.
        previous: the task before each task on its processing element, or ``NO_TASK``, shape [nodes].
        block: of each node, whose end the nodes of later blocks await, shape [nodes]; ``None`` without barriers.
        apart: whether gangs are timed by themselves, each from cycle 0 on, as if all they read were there.
    """

    sequence: list[int]
    previous: Int32
    block: Int32 | None = None
    apart: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class ExactTimes:
    """Start, first and last output of each node, shape [nodes], and capacities that do not deadlock, [edges]."""

    start: list[int]
    first_out: list[int]
    last_out: list[int]
    capacity: Int64


def exact_times(
    dag: CanonicalDag, order: Int32, gang: Int32, streamed: Bool, capacity: Int64, turns: Turns
) -> ExactTimes:
    """Return when each node runs if all tasks run as soon as they can.

    A FIFO at which a gang deadlocks is made twice as large until the gang runs.

    Args:
        dag: the graph.
        order: all nodes topologically, shape [nodes].
        gang: of each node, shape [nodes].
        streamed: which edges stream, shape [edges].
        capacity: of the FIFOs, shape [edges].
        turns: the order of the gangs.

    Raises:
        UserError: a gang accesses its FIFOs too often to be timed element by element.
    """
    return _Timer(dag, order, gang, streamed, capacity, turns).run()


class _Timer:
    """Times so far."""

    def __init__(
        self, dag: CanonicalDag, order: Int32, gang: Int32, streamed: Bool, capacity: Int64, turns: Turns
    ) -> None:
        self._dag, self._turns = dag, turns
        self._gang = gang.tolist()
        self._capacity = capacity.tolist()
        self._streamed = streamed.tolist()
        self._source, self._target = dag.edge_source.tolist(), dag.edge_target.tolist()
        self._in_edges, self._in_row = dag.in_edges.tolist(), dag.in_start.tolist()
        self._out_edges, self._out_row = dag.out_edges.tolist(), dag.out_start.tolist()
        self._task = dag.is_computational.tolist()
        self._reads, self._writes = dag.volume_in.tolist(), dag.volume_out.tolist()
        self._previous = turns.previous.tolist()
        by_gang = order[np.argsort(gang[order], kind="stable")]
        row = np.searchsorted(gang[by_gang], np.arange(int(gang.max(initial=-1)) + 2)).tolist()
        members = by_gang.tolist()
        self._members = [members[first:last] for first, last in pairwise(row)]
        self._start, self._first, self._last = ([0] * dag.nodes_count for _ in range(3))
        self._relayed: dict[int, Int64] = {}  # when each element of a stream between gangs is there

    def run(self) -> ExactTimes:
        block = None if self._turns.block is None else self._turns.block.tolist()
        open_block = barrier = latest = 0
        for number in self._turns.sequence:
            nodes = self._members[number]
            if block is not None and block[nodes[0]] != open_block:
                open_block, barrier = block[nodes[0]], latest
            self._time(number, nodes, barrier)
            latest = max(latest, *(self._last[node] for node in nodes))
        capacity = np.array(self._capacity, dtype=np.int64)
        capacity.setflags(write=False)
        return ExactTimes(self._start, self._first, self._last, capacity)

    def _time(self, number: int, nodes: list[int], barrier: int) -> None:
        if len(nodes) == 1 and not self._has_streams(nodes[0]):
            self._time_alone(nodes[0], self._release(nodes[0], number, barrier))
            return
        place = {node: position for position, node in enumerate(nodes)}
        tasks = [self._gang_task(node, number, place, barrier) for node in nodes]
        accesses = sum(each.reads * len(each.inputs) + each.writes * len(each.outputs) for each in tasks)
        if accesses > _MOST_ACCESSES:
            name = self._dag.node_name(nodes[0])
            raise UserError(
                f"gang of {name!r}: {accesses} accesses to fifos against at most {_MOST_ACCESSES} that can be timed "
                "one by one (use steady timing)"
            )
        times = self._without_deadlock(tasks)
        for node, start, first, last in zip(nodes, times.start, times.first_out, times.last_out, strict=True):
            self._start[node], self._first[node], self._last[node] = start, first, last
            if not self._task[node]:
                self._start[node] = self._first[node] = self._last[node]

    def _has_streams(self, node: int) -> bool:
        edges = self._in_edges[self._in_row[node] : self._in_row[node + 1]]
        edges = edges + self._out_edges[self._out_row[node] : self._out_row[node + 1]]
        return any(self._streamed[edge] for edge in edges)

    def _time_alone(self, node: int, release: int) -> None:
        """A task that only memory feeds and takes never waits."""
        self._start[node] = self._first[node] = self._last[node] = release
        if self._task[node]:
            reads, writes = self._reads[node] or self._writes[node], self._writes[node] or self._reads[node]
            self._first[node] += max(1, -(-reads // writes))
            self._last[node] += max(reads, writes)

    def _without_deadlock(self, tasks: list[GangTask]) -> TaskTimes:
        fifos = [edge for task in tasks for edge in task.outputs]
        while True:
            times = gang_times(tasks, {edge: self._capacity[edge] for edge in fifos}, self._relayed)
            if not times.full:
                self._relayed.update(times.relayed)
                return times
            for edge in times.full:
                self._capacity[edge] *= 2

    def _release(self, node: int, number: int, barrier: int) -> int:
        """Return when all that a node awaits of other gangs has ended."""
        if self._turns.apart:
            return 0
        release = barrier
        for edge in self._in_edges[self._in_row[node] : self._in_row[node + 1]]:
            if self._gang[self._source[edge]] != number and not self._streamed[edge]:
                release = max(release, self._last[self._source[edge]])
        previous = self._previous[node]
        return release if previous == NO_TASK else max(release, self._last[previous])

    def _gang_task(self, node: int, number: int, place: dict[int, int], barrier: int) -> GangTask:
        edges = self._in_edges[self._in_row[node] : self._in_row[node + 1]]
        outputs = self._out_edges[self._out_row[node] : self._out_row[node + 1]]
        awaits = {
            place[self._source[e]]: None
            for e in edges
            if not self._streamed[e] and self._gang[self._source[e]] == number
        }
        task = self._task[node]
        reads, writes = self._reads[node], self._writes[node]
        return GangTask(
            reads=(reads or writes) if task else 0,
            writes=(writes or reads) if task else 0,
            inputs=tuple(edge for edge in edges if self._streamed[edge]),
            outputs=tuple(edge for edge in outputs if self._streamed[edge]),
            awaits=tuple(awaits),
            release=self._release(node, number, barrier),
        )
