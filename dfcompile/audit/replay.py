"""A plain replay of a small schedule, element by element: what its times, and those of a simulation, have to be.

The time of an access follows from those of earlier accesses, in whatever order they are computed: no clock runs.
"""

from collections import defaultdict, deque
from collections.abc import Generator, Iterator
from functools import cached_property

import numpy as np

from dfcompile.audit.graph_figures import GraphFigures
from dfcompile.scheduler.schedules import Schedule

MOST_STEPS = 2**15  # cycles and accesses of tasks that stream, about: some hundredths of a second


def plain_times(graph: GraphFigures, schedule: Schedule) -> "PlainReplay | None":
    """Return the replay of a schedule, by its elements, order, blocks and FIFOs alone; ``None``: it is too large."""
    streams = np.flatnonzero(schedule.streamed)
    ends = np.concatenate([graph.dag.edge_source[streams], graph.dag.edge_target[streams]])
    steps = 2 * sum(graph.dag.edge_volume[streams].tolist()) + sum(graph.work[sorted(set(ends.tolist()))].tolist())
    if steps > MOST_STEPS or graph.dag.nodes_count > MOST_STEPS:
        return None
    replay = PlainReplay(graph, schedule)
    replay.run()
    return replay


class PlainReplay:
    """Who has ended and when, and the times of all accesses to FIFOs so far.

    Attributes:
        start: when each task held its first elements, or might run; without an entry it never did.
        end: when each node had ended; without an entry it never did.
        read_stall_cycles: that tasks waited for elements after their starts.
        write_stall_cycles: that tasks waited for places.
    """

    def __init__(self, graph: GraphFigures, schedule: Schedule) -> None:
        self._graph, self._schedule = graph, schedule
        self._capacity = schedule.fifo_capacity.tolist()
        self._volumes = list(zip(graph.taken.tolist(), graph.given.tolist(), strict=True))
        self.start: dict[int, int] = {}
        self.end: dict[int, int] = {}
        self.read_stall_cycles = self.write_stall_cycles = 0
        self._put: dict[int, list[int]] = defaultdict(list)
        self._got: dict[int, list[int]] = defaultdict(list)
        self._asleep: dict[tuple[int, bool], int] = {}  # by FIFO, and whether for a place in it

    def run(self) -> None:
        """Let every node go on as far as it gets; with barriers, block by block."""
        nodes = range(self._graph.dag.nodes_count)
        block = self._schedule.block.tolist()
        blocks = sorted(set(block)) if self._schedule.barrier else [None]
        for number in blocks:
            opened = max(self.end.values(), default=0)
            chosen = [node for node in nodes if number is None or block[node] == number]
            self._run(chosen, opened)
            if any(node not in self.end for node in chosen):
                return

    def _run(self, nodes: list[int], opened: int) -> None:
        awaited = {node: {each for each in self._awaited[node] if each not in self.end} for node in nodes}
        behind: dict[int, list[int]] = defaultdict(list)
        for node, others in awaited.items():
            for other in others:
                behind[other].append(node)
        lives = {node: self._life(node, opened) for node in nodes}
        ready = deque(node for node in nodes if not awaited[node])
        while ready:
            node = ready.popleft()
            for woken in lives[node]:
                if woken is None:
                    break
                ready.append(woken)
            else:
                for other in behind[node]:
                    awaited[other].discard(node)
                    if not awaited[other]:
                        ready.append(other)

    @cached_property
    def _awaited(self) -> list[set[int]]:
        """What has to end before each node begins: who writes memory for it, and the task before on its element."""
        dag, schedule = self._graph.dag, self._schedule
        awaited: list[set[int]] = [set() for _ in range(dag.nodes_count)]
        for edge in np.flatnonzero(~schedule.streamed).tolist():
            awaited[int(dag.edge_target[edge])].add(int(dag.edge_source[edge]))
        before: dict[int, int] = {}
        tasks = np.flatnonzero(self._graph.is_task).tolist()
        for task in sorted(tasks, key=lambda task: int(schedule.start[task])):
            element = int(schedule.pe[task])
            if element in before:
                awaited[task].add(before[element])
            before[element] = task
        return awaited

    @cached_property
    def _fifos(self) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
        """The streams into each task, and those out of it."""
        into: dict[int, list[int]] = defaultdict(list)
        out: dict[int, list[int]] = defaultdict(list)
        for edge in np.flatnonzero(self._schedule.streamed).tolist():
            into[int(self._graph.dag.edge_target[edge])].append(edge)
            out[int(self._graph.dag.edge_source[edge])].append(edge)
        return into, out

    def _life(self, node: int, opened: int) -> Iterator[int | None]:
        """Go through the cycles of a node; yields who may go on, ``None`` where it has to wait itself."""
        now = max([opened, *(self.end[other] for other in self._awaited[node])])
        inputs, outputs = (side.get(node, []) for side in self._fifos)
        taken, given = self._volumes[node]
        if not inputs:
            self.start[node] = now
        if not (inputs or outputs):
            self.end[node] = now + max(taken, given) * bool(self._graph.is_task[node])
            return
        reads, writes = taken or given, given or taken
        read = written = 0
        while read < reads or written < writes:
            if written < read * writes // reads:
                for edge in outputs:
                    now = yield from self._write(node, edge, now)
                written += 1
            if read < reads and written == read * writes // reads:
                first = now
                for edge in inputs:
                    now = yield from self._read(node, edge, now)
                if read:
                    self.read_stall_cycles += now - first
                elif inputs:
                    self.start[node] = now
                read += 1
            now += read < reads or written < writes
        self.end[node] = now

    def _write(self, node: int, edge: int, now: int) -> Generator[int | None, None, int]:
        free = len(self._put[edge]) - self._capacity[edge]
        while free >= len(self._got[edge]):
            self._asleep[edge, True] = node
            yield None
        if free >= 0:
            self.write_stall_cycles += max(self._got[edge][free] - now, 0)
            now = max(self._got[edge][free], now)
        self._put[edge].append(now)
        if (edge, False) in self._asleep:
            yield self._asleep.pop((edge, False))
        return now

    def _read(self, node: int, edge: int, now: int) -> Generator[int | None, None, int]:
        place = len(self._got[edge])
        while place >= len(self._put[edge]):
            self._asleep[edge, False] = node
            yield None
        now = max(self._put[edge][place], now)
        self._got[edge].append(now)
        if (edge, True) in self._asleep:
            yield self._asleep.pop((edge, True))
        return now
