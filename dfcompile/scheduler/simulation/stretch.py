"""A streaming unit, and the stretch of the access sequences of its tasks that is being simulated.

From when accesses are follows how long a task waits at each FIFO, and how full a FIFO gets.
"""

from collections.abc import Hashable, Iterable, Iterator
from functools import cached_property
from math import gcd
from typing import Literal

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag.dag import Int64
from dfcompile.scheduler.simulation.access_sequence import AccessSequence, Place, Rows, numbers
from dfcompile.scheduler.simulation.replay import FINISHED, NEVER, NO_EDGE, NOT_STARTED, Wait, WaitReason

LONG_AGO = -(2**62)  # before any time; far enough from the limit that waits can be subtracted
_NOTHING = np.zeros(0, dtype=np.int64)


class StreamingUnit(Struct, frozen=True, eq=False, dict=True):
    """Tasks that exchange elements through FIFOs, directly or by way of each other.

    Nodes and edges are numbered within the unit; a node comes after those that it reads from or waits for.

    Attributes:
        nodes: the tasks, as numbered in the graph.
        edges: the streamed edges, as numbered in the graph.
        reads: elements that each node reads from every input; of a source those it writes.
        writes: elements that each node writes to every output; of a sink those it reads.
        source: writing node of each edge; a node writes its edges in their order.
        target: reading node of each edge; a node reads its edges in their order.
        capacity: elements that the FIFO of each edge holds.
        waits: nodes of the unit that must have ended before each node starts.
        rows: of each node.
        read_at: cycles of a row before the one in which each edge is read.
        write_at: likewise, before the one in which it is written.
        forward: cycles from the write of an element of each edge until it can be read.
        hop_cycles: from the read of an element until its place can be taken.
        filling: cycles from when each node may run until it can access a FIFO: of its pipeline, backwards in time.
        draining: cycles from the last access of each node until it has ended: of its pipeline.
    """

    nodes: tuple[int, ...]
    edges: tuple[int, ...]
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    source: tuple[int, ...]
    target: tuple[int, ...]
    capacity: tuple[int, ...]
    waits: tuple[tuple[int, ...], ...]
    rows: tuple[Rows, ...]
    read_at: tuple[int, ...]
    write_at: tuple[int, ...]
    forward: tuple[int, ...]
    hop_cycles: int
    filling: tuple[int, ...]
    draining: tuple[int, ...]

    @cached_property
    def inputs(self) -> tuple[tuple[int, ...], ...]:
        """Streamed input edges of each node."""
        return _rows(len(self.nodes), enumerate(self.target))

    @cached_property
    def outputs(self) -> tuple[tuple[int, ...], ...]:
        """Streamed output edges of each node."""
        return _rows(len(self.nodes), enumerate(self.source))

    @cached_property
    def followers(self) -> tuple[tuple[int, ...], ...]:
        """The nodes that wait for the end of each node."""
        return _rows(len(self.nodes), ((node, other) for node, waits in enumerate(self.waits) for other in waits))

    @cached_property
    def rounds(self) -> int:
        """The largest number of equal parts into which every volume can be cut; 1 where nodes wait for ends."""
        return 1 if any(self.waits) else max(gcd(*self.reads, *self.writes), 1)

    @property
    def shape(self) -> Hashable:
        """What its times depend on, whichever nodes and edges of the graph it has."""
        rows = self.rows, self.read_at, self.write_at
        hardware = self.forward, self.hop_cycles, self.filling, self.draining
        return self.reads, self.writes, self.source, self.target, self.capacity, self.waits, rows, hardware

    @property
    def whole(self) -> tuple[Place, ...]:
        """Where each node ends."""
        return tuple(Place(reads, writes) for reads, writes in zip(self.reads, self.writes, strict=True))

    @property
    def volume(self) -> list[int]:
        """Elements that travel on each edge."""
        return [self.writes[source] for source in self.source]

    @property
    def bounded(self) -> list[int]:
        """The edges whose FIFO can ever be full for its writer."""
        sizes = zip(self.capacity, self.volume, strict=True)
        return [edge for edge, (capacity, volume) in enumerate(sizes) if capacity < volume]

    @property
    def held(self) -> int:
        """Places in all FIFOs that can be full."""
        return sum(self.capacity[edge] for edge in self.bounded)


def _rows(count: int, pairs: Iterable[tuple[int, int]]) -> tuple[tuple[int, ...], ...]:
    """Return the first numbers of pairs by their second, which are below a count."""
    rows: list[list[int]] = [[] for _ in range(count)]
    for value, row in pairs:
        rows[row].append(value)
    return tuple(map(tuple, rows))


def wait_cycle(unit: StreamingUnit, stuck: tuple[int, ...], tasks: int) -> tuple[Wait, ...]:
    """Follow the waits from the first stuck node of a unit until they close.

    Args:
        unit: in a deadlock.
        stuck: where each node is stuck, as of `UnitTimes`.
        tasks: nodes of the graph; barriers come after them.
    """
    place: dict[int, int] = {}
    node = next(number for number, edge in enumerate(stuck) if edge != FINISHED)
    while node not in place:
        place[node] = len(place)
        node = _awaited(unit, node, stuck)[0]
    cycle = [each for each, number in place.items() if number >= place[node] and unit.nodes[each] < tasks]
    reasons = (_awaited(unit, each, stuck)[1:] for each in cycle)
    links = zip(cycle, reasons, [*cycle[1:], cycle[0]], strict=True)
    return tuple(Wait(unit.nodes[each], why, unit.nodes[after], edge) for each, (why, edge), after in links)


def _awaited(unit: StreamingUnit, node: int, stuck: tuple[int, ...]) -> tuple[int, WaitReason, int]:
    """Return which node would have to go on for a stuck one of a unit, why, and over which edge of the graph."""
    edge = stuck[node]
    if edge == NOT_STARTED:
        return next(other for other in unit.waits[node] if stuck[other] != FINISHED), WaitReason.END, NO_EDGE
    if unit.target[edge] == node:
        return unit.source[edge], WaitReason.ELEMENT, unit.edges[edge]
    return unit.target[edge], WaitReason.PLACE, unit.edges[edge]


class Stretch(Struct, eq=False):
    """The accesses of all tasks of a unit between two places of each, and when each takes place.

    No access of a stretch awaits one after it. Elements written before it may be read in it.

    Attributes:
        unit: whose accesses these are.
        sequences: of each node.
        clock: time at which each node begins the stretch, or ``NEVER``.
        sent: times of the writes on each edge: of those that are not read before the stretch, then of those in it.
        pending: number of the former.
        gets: of a bounded FIFO the times of the last ``capacity`` reads before the stretch, then of all edges those
            in the stretch, shape [edges][past + elements].
        past: number of the former.
    """

    unit: StreamingUnit
    sequences: list[AccessSequence]
    clock: list[int]
    sent: list[Int64]
    pending: list[int]
    gets: list[Int64]
    past: list[int]

    def puts(self, edge: int) -> Int64:
        """Times of the writes on an edge in the stretch (a view), shape [elements]."""
        return self.sent[edge][self.pending[edge] :]

    def reads(self, edge: int) -> Int64:
        """Times of the reads of an edge in the stretch (a view), shape [elements]."""
        return self.gets[edge][self.past[edge] :]

    def arrivals(self, edge: int) -> Int64:
        """Times from which the elements read in the stretch can be read (may be a view), shape [elements]."""
        return later(self.sent[edge][: len(self.gets[edge]) - self.past[edge]], self.unit.forward[edge])

    def frees(self, edge: int) -> Int64:
        """Times from which a bounded FIFO has the place for each write (may be a view), shape [elements]."""
        return later(self.gets[edge][self.pending[edge] : len(self.sent[edge])], self.unit.hop_cycles)

    def first_start(self, node: int) -> int:
        """Return when a node has its first elements, as of `UnitTimes`; ``NEVER`` if not in this stretch."""
        inputs = self.unit.inputs[node]
        if not inputs:
            return self.clock[node]
        return int(self.reads(inputs[-1])[0]) - self.unit.read_at[inputs[-1]] if self.sequences[node].reads else NEVER

    def end(self, node: int) -> int:
        """Return when a node ends the stretch."""
        sequence, delay = self.sequences[node], self.clock[node]
        if sequence.reads:
            last = int(sequence.get_waits[-1])
            read_at = self.unit.read_at
            delay = max(delay, *(int(self.reads(edge)[-1]) - last - read_at[edge] for edge in self.unit.inputs[node]))
        if sequence.writes:
            last = int(sequence.put_waits[-1])
            write_at = self.unit.write_at
            delay = max(delay, *(int(self.puts(edge)[-1]) - last - write_at[edge] for edge in self.unit.outputs[node]))
        return delay + sequence.cycles

    def ends(self) -> list[int]:
        """Return when each node ends the stretch."""
        return [self.end(node) for node in range(len(self.unit.nodes))]

    def accesses(self, node: int) -> Iterator[tuple[int, bool, Int64, Int64]]:
        """Yield each FIFO of a node, whether it is read, the places of these accesses among all, and their waits."""
        sequence, inputs, outputs = self.sequences[node], self.unit.inputs[node], self.unit.outputs[node]
        read_at = np.arange(sequence.reads) * len(inputs) + numbers(sequence.puts_before) * len(outputs)
        write_at = numbers(sequence.gets_before) * len(inputs) + np.arange(sequence.writes) * len(outputs)
        for place, edge in enumerate(inputs):
            yield edge, True, read_at + place, later(sequence.get_waits, self.unit.read_at[edge])
        for place, edge in enumerate(outputs):
            yield edge, False, write_at + place, later(sequence.put_waits, self.unit.write_at[edge])


def later(times: Int64, cycles: int) -> Int64:
    """Return times so many cycles later; these times themselves where there are none."""
    return times + cycles if cycles else times


class PeakMeter:
    """Finds the smallest capacity that is known to delay no write of a FIFO's traffic, from stretches of it in turn.

    A write finds a place in it if it holds all elements that have been written and not yet read. An element is read
    after it is written, so for every element that has been read it is known how many were there when it was written;
    the other writes are kept until it is.

    Attributes:
        peak: the capacity that suffices so far; 0 without traffic.
    """

    def __init__(self, capacity: int, hop_cycles: int = 0, *, hand_over: bool) -> None:
        """Begin with an empty FIFO.

        Args:
            capacity: of the FIFO.
            hop_cycles: of the FIFO.
            hand_over: whether an element that is read in an instant may leave its place to one written in that
                instant. Not so where tasks also wait for the end of one another: the read might await that write.
        """
        self.peak = 0
        self._capacity, self._hop_cycles = capacity, hop_cycles
        self._side: Literal["left", "right"] = "right" if hand_over or hop_cycles else "left"
        self._puts, self._reads = _NOTHING, _NOTHING  # those still needed
        self._ahead = 0  # of writes that have been looked at before reads that no other write can wait for
        self._left_out = 0

    def add(self, puts: Int64, reads: Int64) -> None:
        """Take in the times of the next writes and of the next reads."""
        self.peak = max(self.peak, min(len(puts), 1))
        if self._capacity == 1:
            return
        puts = np.concatenate([self._puts, puts - self._left_out])
        reads = np.concatenate([self._reads, reads + (self._hop_cycles - self._left_out)])  # when places are there
        known = len(reads) - self._ahead
        self._puts = puts[known:].copy()
        free = np.searchsorted(reads, puts[:known], side=self._side)  # so many have been read by then
        held = self._ahead + np.arange(1, known + 1) - free
        self.peak = min(int(held.max(initial=self.peak)), self._capacity)
        gone = int(free.max(initial=0))
        self._reads, self._ahead = reads[gone:].copy(), self._ahead + known - gone

    def add_repeated(self, puts: Int64, reads: Int64, repetitions: int, cycles: tuple[int, int]) -> None:
        """Take in a stretch and its repetitions, each later than the one before by ``cycles`` of writer and reader.

        Where writer and reader keep pace, every repetition after the last read of what was written before looks the
        same: such are left out.
        """
        if repetitions == 1 or self._capacity == 1:
            self.add(puts, reads)
            return
        writing, reading = cycles
        kept = repetitions
        if writing == reading:
            lag = int(reads[-1] - puts[0]) + self._hop_cycles
            kept = min(kept, 3 + lag // writing)
        repetition = np.arange(kept, dtype=np.int64)[:, None]
        self.add((puts + repetition * writing).ravel(), (reads + repetition * reading).ravel())
        self._left_out += (repetitions - kept) * writing


class Accesses(Struct, frozen=True, eq=False):
    """All accesses of one task to its FIFOs, in the order in which it makes them.

    Attributes:
        time: when each takes place, shape [accesses].
        wait: cycles that it waited for an element or a place, shape [accesses].
        edge: of the FIFO, as numbered in the unit, shape [accesses].
        places: of each FIFO, by its edge, which of the accesses are to it, element by element, shape [elements].
    """

    time: Int64
    wait: Int64
    edge: Int64
    places: dict[int, Int64]


def accesses_of_task(stretch: Stretch, node: int) -> Accesses:
    """Return all accesses of a task in a stretch whose times are known."""
    fifos = list(stretch.accesses(node))
    time, delay, edge = (np.empty(sum(len(at) for _, _, at, _ in fifos), dtype=np.int64) for _ in range(3))
    for number, is_read, at, waits in fifos:
        times = stretch.reads(number) if is_read else stretch.puts(number)
        time[at], delay[at], edge[at] = times, times - waits, number
    waited = np.diff(delay, prepend=stretch.clock[node])
    return Accesses(time, waited, edge, {number: at for number, _, at, _ in fifos})


def stalls(stretch: Stretch, node: int, *, starts: bool) -> dict[int, int]:
    """Return by how much the accesses to each FIFO of a task delay it in a stretch, by edge.

    Args:
        stretch: with all times.
        node: the task.
        starts: whether the first reads of the stretch are its first: before them it has not started.
    """
    accesses = accesses_of_task(stretch, node)
    if starts:
        for edge in stretch.unit.inputs[node]:
            accesses.wait[accesses.places[edge][:1]] = 0
    return {edge: int(accesses.wait[places].sum()) for edge, places in accesses.places.items()}
