"""Replays a schedule element by element: tasks read and write through FIFOs, wait for memory and for their elements.

Of the schedule it knows which task runs where, which edges stream, how large FIFOs are, and where nothing streams the
cycle before which no task begins, as some are postponed; the times follow from that. A task takes an element of each
input in a cycle and gives one of each output in the next, as often as its volumes say [dematteis23 4.1]; it writes
before it reads, and stops where a FIFO is empty or full.
"""

from collections import defaultdict
from collections.abc import Iterator
from heapq import heappop, heappush

import numpy as np

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.scheduler import Schedule

_Signal = tuple[str, int]  # what a node waits for: of an edge "data" or "room", or the "end" of a node or "block"
_Life = Iterator[_Signal | int]  # of a node: it waits, or is busy for some cycles


def replayed(dag: CanonicalDag, schedule: Schedule) -> tuple[list[int], list[int]]:
    """Return the first cycle of each node, and the one in which it has ended.

    Raises:
        AssertionError: some nodes wait for one another.
    """
    return _Replay(dag, schedule).run()


class _Replay:
    def __init__(self, dag: CanonicalDag, schedule: Schedule) -> None:
        self._dag, self._now = dag, 0
        nodes = range(dag.nodes_count)
        self._capacity, self._block = schedule.fifo_capacity.tolist(), schedule.block.tolist()
        self._held = [0] * dag.edges_count
        # Tasks are postponed where nothing streams; others may take what is there before they have all of the first.
        is_postponed = dag.is_computational & ~schedule.streamed.any()
        self._earliest = np.where(is_postponed, schedule.start, 0).tolist()
        self._start, self._end = [-1] * dag.nodes_count, [-1] * dag.nodes_count
        self._inputs: list[list[int]] = [[] for _ in nodes]
        self._outputs: list[list[int]] = [[] for _ in nodes]
        self._before: list[list[int]] = [[] for _ in nodes]
        ends = zip(dag.edge_source.tolist(), dag.edge_target.tolist(), schedule.streamed.tolist(), strict=True)
        for edge, (source, target, is_streamed) in enumerate(ends):
            if is_streamed:
                self._inputs[target].append(edge)
                self._outputs[source].append(edge)
            else:
                self._before[target].append(source)
        tasks = np.flatnonzero(dag.is_computational)
        last: dict[int, int] = {}  # by processing element
        for task in tasks[np.lexsort((schedule.last_out[tasks], schedule.start[tasks]))].tolist():
            element = int(schedule.pe[task])
            assert 0 <= element < schedule.pes, f"{dag.node_name(task)} runs nowhere"
            if element in last:
                self._before[task].append(last[element])
            last[element] = task
        self._left: defaultdict[int, int] = defaultdict(int)  # nodes of each block
        for block in self._block if schedule.barrier else ():
            self._left[block] += 1
        self._asleep: defaultdict[_Signal, list[tuple[int, _Life]]] = defaultdict(list)
        self._awake: list[tuple[int, int, _Life]] = []  # cycle, node

    def run(self) -> tuple[list[int], list[int]]:
        for node in range(self._dag.nodes_count):
            heappush(self._awake, (0, node, self._life(node)))
        while self._awake:
            self._now, node, life = heappop(self._awake)
            waits = next(life, None)
            if isinstance(waits, int):
                heappush(self._awake, (self._now + waits, node, life))
            elif waits is not None:
                self._asleep[waits].append((node, life))
        stuck = [self._dag.node_name(node) for node, end in enumerate(self._end) if end < 0]
        assert not stuck, f"never end: {stuck[:4]}"
        return self._start, self._end

    def _wake(self, signal: _Signal) -> None:
        for node, life in self._asleep.pop(signal, ()):
            heappush(self._awake, (self._now, node, life))

    def _life(self, node: int) -> _Life:
        for other in self._before[node]:
            while self._end[other] < 0:
                yield "end", other
        for block in sorted(block for block in self._left if block < self._block[node]):
            while self._left[block]:
                yield "block", block
        if self._now < self._earliest[node]:
            yield self._earliest[node] - self._now
        self._start[node] = self._now
        if self._dag.is_computational[node]:
            if self._inputs[node] or self._outputs[node]:
                yield from self._stream(node)
            else:
                yield int(max(self._dag.volume_in[node], self._dag.volume_out[node]))
        self._end[node] = self._now
        self._wake(("end", node))
        if self._left:
            self._left[self._block[node]] -= 1
            if not self._left[self._block[node]]:
                self._wake(("block", self._block[node]))

    def _stream(self, node: int) -> _Life:
        reads, writes = int(self._dag.volume_in[node]), int(self._dag.volume_out[node])
        reads, writes = reads or writes, writes or reads
        read = written = 0
        while True:
            if written < read * writes // reads:
                for edge in self._outputs[node]:
                    while self._held[edge] == self._capacity[edge]:
                        yield "room", edge
                    self._held[edge] += 1
                    self._wake(("data", edge))
                written += 1
            if read < reads and written == read * writes // reads:
                for edge in self._inputs[node]:
                    while not self._held[edge]:
                        yield "data", edge
                    self._held[edge] -= 1
                    self._wake(("room", edge))
                read += 1
                if read == 1 and self._inputs[node]:
                    self._start[node] = self._now
            if read == reads and written == writes:
                return
            yield 1
