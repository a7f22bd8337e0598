"""When every element of a gang moves: the least solution of its (max, +) recurrences.

A task with I reads and O writes (a source reads, a sink writes as often as it does the other) has a fixed program. In
cycle c of it, not counting cycles spent waiting:

* write j = 1..O happens in cycle ``max(j, ceil(j * I / O))``, read i = 0..I-1 in cycle ``max(i, floor(i * O / I))``;
* within a cycle the write comes first, outputs and inputs one after another in the order of their edges.

Every access takes place in its cycle plus the delay of the task so far. Delays never fall. A read of element i raises
the delay until the element is there, a write of element j until element ``j - capacity`` has been read. The task ends
with its last write. So each access time is a maximum of sums of earlier ones; integral and fractional rates are alike.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dfcompile.canonical_dag.dag import Int64

_NEVER_YET = -(2**61)
_SWEEPS = 24


@dataclass(frozen=True, slots=True, eq=False)
class GangTask:
    """A task of a gang: its volumes, its streams as edge numbers, and tasks of the gang that it awaits in memory.

    A memory inside the gang is a task without reads and writes: it ends when all that it awaits has.
    """

    reads: int
    writes: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    awaits: tuple[int, ...]
    release: int


@dataclass(frozen=True, slots=True, eq=False)
class TaskTimes:
    """Start, first and last output of each task of a gang, and when elements leave it.

    ``full`` lists the FIFOs that a deadlock is stuck at; ``relayed`` has the writes of the streams to other gangs.
    """

    start: list[int]
    first_out: list[int]
    last_out: list[int]
    full: list[int]
    relayed: dict[int, Int64]


@dataclass(frozen=True, slots=True, eq=False)
class _Program:
    """Cycles of reads and writes, and their positions among all accesses of a task, per input and output."""

    read_cycle: Int64
    write_cycle: Int64
    read_at: Int64
    write_at: Int64
    length: int


def _program(reads: int, writes: int, inputs: int, outputs: int) -> _Program:
    if not reads:
        nothing = np.zeros(0, dtype=np.int64)
        return _Program(nothing, nothing, nothing, nothing, 0)
    read, write = np.arange(reads, dtype=np.int64), np.arange(1, writes + 1, dtype=np.int64)
    read_cycle = np.maximum(read, read * writes // reads)
    write_cycle = np.maximum(write, -(-write * reads // writes))
    cycle = np.concatenate([np.tile(read_cycle, inputs), np.tile(write_cycle, outputs)])
    is_read = np.arange(len(cycle)) >= reads * inputs
    edge = np.concatenate([np.repeat(np.arange(inputs), reads), np.repeat(np.arange(outputs), writes)])
    at = np.empty(len(cycle), dtype=np.int64)
    at[np.lexsort((edge, ~is_read, cycle))] = np.arange(len(cycle))
    return _Program(
        read_cycle,
        write_cycle,
        at[: reads * inputs].reshape(inputs, reads),
        at[reads * inputs :].reshape(outputs, writes),
        len(cycle),
    )


def gang_times(
    tasks: list[GangTask], capacity: dict[int, int], relayed: Mapping[int, Int64] | None = None
) -> TaskTimes:
    """Return when the tasks of a gang run.

    Args:
        tasks: in topological order.
        capacity: of each FIFO that they write.
        relayed: when the elements of streams from other gangs are there; those streams, and those to other gangs, hold
            whatever is written.
    """
    times = _Elements(tasks, capacity, relayed or {})
    return times.by_sweeps() or times.by_steps()


class _Elements:
    """Access times of a gang, raised until no access is too early."""

    def __init__(self, tasks: list[GangTask], capacity: dict[int, int], relayed: Mapping[int, Int64]) -> None:
        self._tasks = tasks
        self._capacity = capacity
        self._relayed = {edge: relayed[edge] for task in tasks for edge in task.inputs if edge in relayed}
        self._writer = {edge: number for number, task in enumerate(tasks) for edge in task.outputs}
        self._reader = {edge: number for number, task in enumerate(tasks) for edge in task.inputs}
        self._awaited_by: list[list[int]] = [[] for _ in tasks]
        for number, task in enumerate(tasks):
            for other in task.awaits:
                self._awaited_by[other].append(number)
        self._start, self._first, self._last = ([_NEVER_YET] * len(tasks) for _ in range(3))
        # A task without streams reads or writes memory at the same places of its program.
        known: dict[tuple[int, int, int, int], _Program] = {}
        self._programs = []
        for task in tasks:
            key = (task.reads, task.writes, max(len(task.inputs), 1), max(len(task.outputs), 1))
            if key not in known:
                known[key] = _program(*key)
            self._programs.append(known[key])

    def by_sweeps(self) -> TaskTimes | None:
        """Raise whole programs, forwards and backwards in turn; give up where single elements go to and fro."""
        self._put = {e: np.full(self._tasks[n].writes, _NEVER_YET, dtype=np.int64) for e, n in self._writer.items()}
        self._put |= self._relayed
        self._get = {e: np.full(len(times), _NEVER_YET, dtype=np.int64) for e, times in self._put.items()}
        late = [True] * len(self._tasks)
        for sweep in range(_SWEEPS):
            numbers = range(len(self._tasks))
            for number in numbers if sweep % 2 == 0 else reversed(numbers):
                if late[number]:
                    late[number] = False
                    self._raise(number, late)
            if not any(late):
                leaving = {edge: self._put[edge] for edge in self._writer if edge not in self._reader}
                return TaskTimes(self._start, self._first, self._last, [], leaving)
        return None

    def _raise(self, number: int, late: list[bool]) -> None:
        task, program = self._tasks[number], self._programs[number]
        begin = max(task.release, *(self._last[other] for other in task.awaits), 0)
        if not program.length:
            self._start[number] = self._first[number] = begin
            self._end(number, begin, late)
            return
        delay = np.full(program.length, _NEVER_YET, dtype=np.int64)
        for edge, at in zip(task.inputs, program.read_at, strict=False):
            delay[at] = self._put[edge] - program.read_cycle
        for edge, at in zip(task.outputs, program.write_at, strict=False):
            room = self._capacity[edge]
            if room < task.writes:
                delay[at[room:]] = self._get[edge][:-room] - program.write_cycle[room:]
        delay[0] = max(int(delay[0]), begin)
        np.maximum.accumulate(delay, out=delay)
        for edge, at in zip(task.inputs, program.read_at, strict=False):
            np.add(delay[at], program.read_cycle, out=self._get[edge])
            if edge in self._relayed:
                continue
            room, writer = self._capacity[edge], self._writer[edge]
            if room < task.reads and not late[writer]:
                late[writer] = bool((self._get[edge][:-room] > self._put[edge][room:]).any())
        for edge, at in zip(task.outputs, program.write_at, strict=False):
            np.add(delay[at], program.write_cycle, out=self._put[edge])
            reader = self._reader.get(edge)
            if reader is not None:
                late[reader] = late[reader] or bool((self._put[edge] > self._get[edge]).any())
        self._start[number] = int(delay[program.read_at[-1, 0]]) if task.inputs else int(delay[0])
        self._first[number] = int(delay[program.write_at[0, 0]] + program.write_cycle[0])
        self._end(number, int(delay[-1] + program.write_cycle[-1]), late)

    def _end(self, number: int, last: int, late: list[bool]) -> None:
        if last > self._last[number]:
            self._last[number] = last
            for other in self._awaited_by[number]:
                late[other] = True

    def by_steps(self) -> TaskTimes:
        """Take one access at a time, each task as far as it gets: always ends, also in a deadlock."""
        steps = _Steps(self._tasks, self._programs, self._capacity, self._writer, self._reader, self._relayed)
        return steps.run(self._awaited_by)


class _Steps:
    """How far each task is, and all accesses so far."""

    def __init__(
        self,
        tasks: list[GangTask],
        programs: list[_Program],
        capacity: dict[int, int],
        writer: dict[int, int],
        reader: dict[int, int],
        relayed: Mapping[int, Int64],
    ) -> None:
        self._tasks, self._capacity, self._writer, self._reader = tasks, capacity, writer, reader
        self._accesses = [_listed(task, program) for task, program in zip(tasks, programs, strict=True)]
        self._programs = programs
        self._put: dict[int, list[int]] = {edge: [] for edge in writer}
        self._put |= {edge: times.tolist() for edge, times in relayed.items()}
        self._get: dict[int, list[int]] = {edge: [] for edge in self._put}
        self._done = [0] * len(tasks)
        self._delay = [task.release for task in tasks]
        self._missing = [len(task.awaits) for task in tasks]
        self._start, self._first, self._last = ([_NEVER_YET] * len(tasks) for _ in range(3))

    def run(self, awaited_by: list[list[int]]) -> TaskTimes:
        ready = deque(number for number, missing in enumerate(self._missing) if not missing)
        while ready:
            number = ready.popleft()
            ready.extend(self._advance(number))
            if self._done[number] == len(self._accesses[number]) and self._last[number] == _NEVER_YET:
                cycles = self._programs[number].write_cycle
                self._last[number] = self._delay[number] + (int(cycles[-1]) if len(cycles) else 0)
                for other in awaited_by[number]:
                    self._missing[other] -= 1
                    self._delay[other] = max(self._delay[other], self._last[number])
                    if not self._missing[other]:
                        ready.append(other)
        stuck = [number for number, last in enumerate(self._last) if last == _NEVER_YET]
        full = [edge for number in stuck for edge in self._full(number)]
        leaving = {e: np.array(self._put[e], dtype=np.int64) for e in self._writer if e not in self._reader}
        return TaskTimes(self._start, self._first, self._last, full, leaving)

    def _full(self, number: int) -> list[int]:
        if self._missing[number]:
            return []
        edge, is_write, _ = self._accesses[number][self._done[number]]
        return [edge] if is_write else []

    def _advance(self, number: int) -> list[int]:
        """Take the accesses of a task until one must wait; return the neighbours that may go on."""
        if self._missing[number]:
            return []
        task, delay, woken = self._tasks[number], self._delay[number], dict[int, None]()
        accesses = self._accesses[number]
        last_input = task.inputs[-1] if task.inputs else -1
        place = self._done[number]
        while place < len(accesses):
            edge, is_write, cycle = accesses[place]
            if edge >= 0:
                mine, awaited = (self._put, self._get) if is_write else (self._get, self._put)
                element = len(mine[edge]) - (self._capacity[edge] if is_write else 0)
                if element >= len(awaited[edge]):
                    break
                if element >= 0:
                    delay = max(delay, awaited[edge][element] - cycle)
                mine[edge].append(delay + cycle)
                neighbour = (self._reader if is_write else self._writer).get(edge)
                if neighbour is not None:
                    woken[neighbour] = None
            if is_write and self._first[number] == _NEVER_YET:
                self._first[number] = delay + cycle
            if self._start[number] == _NEVER_YET and not is_write and edge == last_input:
                self._start[number] = delay
            place += 1
        self._done[number], self._delay[number] = place, delay
        return list(woken)


def _listed(task: GangTask, program: _Program) -> list[tuple[int, bool, int]]:
    """Return the accesses of a task in order: edge (-1: memory), whether it writes, cycle."""
    listed: list[tuple[int, bool, int]] = [(-1, False, 0)] * program.length
    if not listed:
        return listed
    for edges, at, cycles, is_write in (
        (task.inputs, program.read_at, program.read_cycle, False),
        (task.outputs, program.write_at, program.write_cycle, True),
    ):
        for edge, positions in zip(edges or (-1,), at.tolist(), strict=True):
            for position, cycle in zip(positions, cycles.tolist(), strict=True):
                listed[position] = (edge, is_write, cycle)
    return listed
