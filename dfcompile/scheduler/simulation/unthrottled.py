"""Replays a unit whose FIFOs are never full: task by task, each once.

Without a full FIFO no task ever waits for a reader. So if the ends and elements that tasks wait for lead one way, each
task is replayed when all before it have been, and what it wrote is forgotten when the last of its readers has been: the
cost is that of one visit per task, and memory does not hold the whole traffic. FIFOs that hold what is in flight then
are never full either: with them each access is in the same cycle.
"""

import numpy as np

from dfcompile.canonical_dag.dag import Int64
from dfcompile.scheduler.simulation.access_sequence import AccessSequence, Place, Rows, sequence_of
from dfcompile.scheduler.simulation.replay import UnitTimes
from dfcompile.scheduler.simulation.stretch import StreamingUnit, later

_KEPT_SEQUENCES = 512  # tasks of one rate go through the same accesses
_KEPT_ACCESSES = 4096  # of each such sequence
_SEARCHED = 512  # elements of a FIFO


def _most_held(puts: Int64, free: Int64) -> int:
    """Return the most elements that are in a FIFO at a time, at least 1.

    With p places an element is written when that of the one p before it is free again. How many some elements need,
    evenly spread, is searched for: those between need fewer than that distance more. How many all need is found by
    halving: to compare all elements takes less time than to search for each of them.

    Args:
        puts: cycle in which each element is written, ascending.
        free: first cycle in which its place may be written again, ascending.
    """
    distance = max(len(puts) // _SEARCHED, 1)
    held = puts.searchsorted(free[::distance]) - np.arange(0, len(puts), distance)
    most = int(np.maximum.reduce(held, initial=1)) + distance - 1
    too_few = most - distance
    while most - too_few > 1:
        half = (too_few + most) // 2
        written = puts[half:]
        too_few, most = (too_few, half) if bool((free[: len(written)] <= written).all()) else (half, most)
    return most


def runs_in_turn(unit: StreamingUnit) -> bool:
    """Return whether each node comes after all whose ends or elements it waits for."""
    streams = all(source < target for source, target in zip(unit.source, unit.target, strict=True))
    return streams and all(other < node for node, others in enumerate(unit.waits) for other in others)


def replay_unthrottled(unit: StreamingUnit, release: tuple[int, ...], *, details: bool) -> UnitTimes | None:
    """Replay a unit as if its FIFOs were never full; return ``None`` if one of them would be.

    Args:
        unit: the tasks, in turn.
        release: cycle from which on each node may run.
        details: whether to find stalls and peaks too; they are 0 without.
    """
    replaying = _Replaying(unit, details=details or bool(unit.bounded))
    replaying.run(release)
    if any(replaying.peak[edge] > unit.capacity[edge] for edge in unit.bounded):
        return None
    nothing = (0,) * len(unit.edges)
    read_stall, peak = (tuple(replaying.read_stall), tuple(replaying.peak)) if details else (nothing, nothing)
    return UnitTimes(tuple(replaying.start), tuple(replaying.end), read_stall, nothing, peak, ())


class _Replaying:
    """The traffic that is still to be read, and the times and sums so far: of `UnitTimes`."""

    def __init__(self, unit: StreamingUnit, *, details: bool) -> None:
        self._unit, self._details = unit, details
        self._written: list[Int64 | None] = [None for _ in unit.nodes]
        self._readers = [len(outputs) for outputs in unit.outputs]
        self._sequences: dict[tuple[int, int, Rows, bool, bool], AccessSequence] = {}
        self.start, self.end = [0] * len(unit.nodes), [0] * len(unit.nodes)
        self.read_stall, self.peak = [0] * len(unit.edges), [0] * len(unit.edges)  # peak: delays no write

    def run(self, release: tuple[int, ...]) -> None:
        unit, end, written, readers = self._unit, self.end, self._written, self._readers
        waits, filling, inputs, source = unit.waits, unit.filling, unit.inputs, unit.source
        for node, first in enumerate(release):
            awaited = max([first, *[end[other] for other in waits[node]]]) if waits[node] else first
            self._visit(node, awaited + filling[node])
            for edge in inputs[node]:
                readers[source[edge]] -= 1
                if not readers[source[edge]]:
                    written[source[edge]] = None  # its last reader has been

    def _visit(self, node: int, clock: int) -> None:
        """Find when a task accesses its FIFOs: reads wait in rows, one of each input, and for what is written."""
        sequence, inputs = self._sequence(node), self._unit.inputs[node]
        self.start[node], self.end[node] = clock, clock + sequence.cycles + self._unit.draining[node]
        if not inputs:
            if self._readers[node]:
                self._written[node] = clock + sequence.put_waits
            return
        largest = np.empty(len(sequence.get_waits) + 1, dtype=np.int64)  # from the clock on, of all delays up to each
        largest[0] = clock
        rows: list[Int64] = []
        for edge in inputs:
            delay = largest[1:] if edge == inputs[-1] else np.empty_like(sequence.get_waits)
            np.subtract(self._written_to(edge), sequence.get_waits, out=delay)
            if shift := self._unit.forward[edge] - self._unit.read_at[edge]:
                delay += shift
            if rows:
                np.maximum(rows[-1], delay, out=delay)
            rows.append(delay)
        np.maximum.accumulate(largest, out=largest)
        if len(largest) > 1:
            self.start[node] = int(largest[1])
        self.end[node] = int(largest[-1]) + sequence.cycles + self._unit.draining[node]
        if self._readers[node]:
            self._written[node] = largest[sequence.gets_before] + sequence.put_waits
        if self._details and len(largest) > 1:
            self._account(node, clock, sequence, (rows, largest))

    def _account(self, node: int, clock: int, sequence: AccessSequence, delays: tuple[list[Int64], Int64]) -> None:
        """Add up the stalls of a task's reads, and find how full its FIFOs get."""
        rows, largest = delays
        first_before, sum_before = clock, int(np.add.reduce(largest[:-1]))
        hop = self._unit.hop_cycles
        for place, edge in enumerate(self._unit.inputs[node]):
            is_last = place == len(rows) - 1
            delay = largest[1:] if is_last else np.maximum(largest[:-1], rows[place])
            first, total = int(delay[0]), int(np.add.reduce(delay))
            # What a task waits for its first elements comes before its start.
            self.read_stall[edge] += total - sum_before - (first - first_before)
            first_before, sum_before = first, total
            free = delay + sequence.get_waits
            free += self._unit.read_at[edge] + (hop or 1)
            self.peak[edge] = _most_held(self._written_to(edge), free)

    def _sequence(self, node: int) -> AccessSequence:
        unit = self._unit
        gets, puts = bool(unit.inputs[node]), bool(unit.outputs[node])
        key = (unit.reads[node], unit.writes[node], unit.rows[node], gets, puts)
        found = self._sequences.get(key)
        if found is None:
            whole = Place(unit.reads[node], unit.writes[node])
            found = sequence_of(whole, Place(0, 0), whole, unit.rows[node], gets=gets, puts=puts)
            if max(whole.reads, whole.writes) <= _KEPT_ACCESSES and len(self._sequences) < _KEPT_SEQUENCES:
                self._sequences[key] = found
        return found

    def _written_to(self, edge: int) -> Int64:
        written = self._written[self._unit.source[edge]]
        assert written is not None
        return later(written, self._unit.write_at[edge])
