"""When every element of a gang moves: the least solution of its (max, +) recurrences.

A task with I reads and O writes (a source reads, a sink writes as often as it does the other) has a fixed sequence. In
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
from math import gcd

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
class _AccessSequence:
    """Cycles of a task's accesses to streams, and their positions among all of these, per input and output.

    Accesses to memory never wait: of a task without input streams, or without output streams, only the cycles of the
    first and the last write are kept, and how many reads come before the first.
    """

    read_cycle: Int64
    write_cycle: Int64
    read_at: Int64
    write_at: Int64
    length: int
    first_cycle: int
    last_cycle: int
    reads_before_first: int


def _sequence(reads: int, writes: int, inputs: int, outputs: int) -> _AccessSequence:
    read = np.arange(reads if inputs else 0, dtype=np.int64)
    write = np.arange(1, (writes if outputs else 0) + 1, dtype=np.int64)
    common = gcd(reads, writes) or 1
    part, share = max(reads // common, 1), max(writes // common, 1)
    # Whole multiples apart: products of two large numbers would not fit.
    written_before = read * (share // part) + read * (share % part) // part
    read_before = write * (part // share) - (-write * (part % share) // share)
    awaited = -(-reads // max(writes, 1))
    return _AccessSequence(
        read_cycle=np.maximum(read, written_before),
        write_cycle=np.maximum(write, read_before),
        read_at=(read * inputs + written_before * outputs) + np.arange(inputs, dtype=np.int64)[:, None],
        write_at=(read_before * inputs + (write - 1) * outputs) + np.arange(outputs, dtype=np.int64)[:, None],
        length=len(read) * inputs + len(write) * outputs,
        first_cycle=max(1, awaited) if reads else 0,
        last_cycle=max(reads, writes),
        reads_before_first=awaited,
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
        known: dict[tuple[int, int, int, int], _AccessSequence] = {}
        self._sequences = []
        for task in tasks:
            key = (task.reads, task.writes, len(task.inputs), len(task.outputs))
            if key not in known:
                known[key] = _sequence(*key)
            self._sequences.append(known[key])

    def by_sweeps(self) -> TaskTimes | None:
        """Raise whole sequences, forwards and backwards in turn; give up where single elements go to and fro."""
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
        task, sequence = self._tasks[number], self._sequences[number]
        begin = max(task.release, *(self._last[other] for other in task.awaits), 0)
        if not sequence.length:
            self._start[number], self._first[number] = begin, begin + sequence.first_cycle
            self._end(number, begin + sequence.last_cycle, late)
            return
        delay = np.full(sequence.length, _NEVER_YET, dtype=np.int64)
        for edge, at in zip(task.inputs, sequence.read_at, strict=True):
            delay[at] = self._put[edge] - sequence.read_cycle
        for edge, at in zip(task.outputs, sequence.write_at, strict=True):
            room = self._capacity[edge]
            if room < task.writes:
                delay[at[room:]] = self._get[edge][:-room] - sequence.write_cycle[room:]
        delay[0] = max(int(delay[0]), begin)
        np.maximum.accumulate(delay, out=delay)
        for edge, at in zip(task.inputs, sequence.read_at, strict=True):
            np.add(delay[at], sequence.read_cycle, out=self._get[edge])
            if edge in self._relayed:
                continue
            room, writer = self._capacity[edge], self._writer[edge]
            if room < task.reads and not late[writer]:
                late[writer] = bool((self._get[edge][:-room] > self._put[edge][room:]).any())
        for edge, at in zip(task.outputs, sequence.write_at, strict=True):
            np.add(delay[at], sequence.write_cycle, out=self._put[edge])
            reader = self._reader.get(edge)
            if reader is not None:
                late[reader] = late[reader] or bool((self._put[edge] > self._get[edge]).any())
        self._start[number] = int(delay[len(task.inputs) - 1]) if task.inputs else begin
        before_first = sequence.write_at[0, 0] if task.outputs else sequence.reads_before_first * len(task.inputs) - 1
        self._first[number] = int(delay[before_first]) + sequence.first_cycle
        self._end(number, int(delay[-1]) + sequence.last_cycle, late)

    def _end(self, number: int, last: int, late: list[bool]) -> None:
        if last > self._last[number]:
            self._last[number] = last
            for other in self._awaited_by[number]:
                late[other] = True

    def by_steps(self) -> TaskTimes:
        """Take one access at a time, each task as far as it gets: always ends, also in a deadlock."""
        steps = _Steps(self._tasks, self._sequences, self._capacity, self._writer, self._reader, self._relayed)
        return steps.run(self._awaited_by)


class _Steps:
    """How far each task is, and all accesses so far."""

    def __init__(
        self,
        tasks: list[GangTask],
        sequences: list[_AccessSequence],
        capacity: dict[int, int],
        writer: dict[int, int],
        reader: dict[int, int],
        relayed: Mapping[int, Int64],
    ) -> None:
        self._tasks, self._capacity, self._writer, self._reader = tasks, capacity, writer, reader
        self._accesses = [_listed(task, sequence) for task, sequence in zip(tasks, sequences, strict=True)]
        self._sequences = sequences
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
                sequence = self._sequences[number]
                self._last[number] = self._delay[number] + sequence.last_cycle
                if not sequence.length:
                    self._first[number] = self._delay[number] + sequence.first_cycle
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
        delay, woken = self._delay[number], dict[int, None]()
        accesses = self._accesses[number]
        started, emitted = self._marks(number)
        if self._start[number] == _NEVER_YET and not started:
            self._start[number] = delay
        place = self._done[number]
        while place < len(accesses):
            edge, is_write, cycle = accesses[place]
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
            place += 1
            if place == started:
                self._start[number] = delay
            if place == emitted:
                self._first[number] = delay + self._sequences[number].first_cycle
        self._done[number], self._delay[number] = place, delay
        return list(woken)

    def _marks(self, number: int) -> tuple[int, int]:
        """Return after how many accesses a task has started, and has written its first element."""
        task, sequence = self._tasks[number], self._sequences[number]
        if task.outputs:
            return len(task.inputs), int(sequence.write_at[0, 0]) + 1
        return len(task.inputs), sequence.reads_before_first * len(task.inputs)


def _listed(task: GangTask, sequence: _AccessSequence) -> list[tuple[int, bool, int]]:
    """Return the accesses of a task in order: edge, whether it writes, cycle."""
    listed: list[tuple[int, bool, int]] = [(-1, False, 0)] * sequence.length
    for edges, at, cycles, is_write in (
        (task.inputs, sequence.read_at, sequence.read_cycle, False),
        (task.outputs, sequence.write_at, sequence.write_cycle, True),
    ):
        for edge, positions in zip(edges, at.tolist(), strict=True):
            for position, cycle in zip(positions, cycles.tolist(), strict=True):
                listed[position] = (edge, is_write, cycle)
    return listed
