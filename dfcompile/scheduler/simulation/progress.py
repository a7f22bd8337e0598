"""How far a unit has got: the state between two stretches, where one may end, and how often it will be repeated."""

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag.dag import Int64
from dfcompile.scheduler.simulation.access_sequence import AccessSequence, Place, Rows, sequence_of
from dfcompile.scheduler.simulation.replay import NEVER
from dfcompile.scheduler.simulation.stretch import LONG_AGO, StreamingUnit, Stretch

_MOST_SWEEPS = 100


class Repetition(Struct, frozen=True):
    """How the stretches that follow one repeat it.

    Attributes:
        count: how many of them do: each is as many cycles later as the stretch itself lasts at the same task.
        young: edges whose FIFO has not had ``capacity`` reads that repeat: none of its places will be awaited in
            these stretches.
    """

    count: int
    young: tuple[int, ...]


NO_REPETITION = Repetition(0, ())


class Progress:
    """Where each task is in its sequence and when, and what the FIFOs hold.

    Attributes:
        clock: time at which each task goes on.
        place: where it is.
    """

    def __init__(self, unit: StreamingUnit, release: tuple[int, ...]) -> None:
        """Begin with the first accesses, not before each task is released."""
        begins = zip(release, unit.filling, strict=True)
        self.clock = [NEVER if cycle == NEVER else cycle + filling for cycle, filling in begins]
        self.place = tuple(Place(0, 0) for _ in unit.nodes)
        self._unit = unit
        self._history, self._pending = ([np.zeros(0, dtype=np.int64) for _ in unit.edges] for _ in range(2))
        for edge in unit.bounded:
            self._history[edge] = np.full(unit.capacity[edge], LONG_AGO, dtype=np.int64)
        self._sequences: dict[tuple[Place, tuple[Place, Place], Rows, bool, bool], AccessSequence] = {}

    def stretch(self, places: tuple[Place, ...]) -> Stretch:
        """Return the stretch from here to other places, its times still to be found."""
        unit = self._unit
        sequences = self._stretch_sequences(places)
        sent, gets = [], []
        for edge, (history, pending) in enumerate(zip(self._history, self._pending, strict=True)):
            writes, reads = sequences[unit.source[edge]].writes, sequences[unit.target[edge]].reads
            sent.append(_continued(pending, writes))
            gets.append(_continued(history, reads))
        counts = [[len(times) for times in columns] for columns in (self._pending, self._history)]
        return Stretch(unit, sequences, list(self.clock), sent, counts[0], gets, counts[1])

    def move_on(
        self, stretch: Stretch, ends: list[int], places: tuple[Place, ...], repetition: Repetition = NO_REPETITION
    ) -> None:
        """Go to the end of a stretch and its repetitions.

        Args:
            stretch: from here on, with all times.
            ends: time at which each task ends it.
            places: where each task is then, after all repetitions.
            repetition: how often the stretch is repeated.
        """
        unit, count = self._unit, repetition.count
        cycles = [end - begin for end, begin in zip(ends, stretch.clock, strict=True)]
        self.clock = [end + count * lasts for end, lasts in zip(ends, cycles, strict=True)]
        self.place = places
        for edge, past in enumerate(stretch.past):
            self._pending[edge] = stretch.sent[edge][len(stretch.arrivals(edge)) :].copy()
            lasts = cycles[unit.target[edge]]
            if not past:
                continue
            if edge in repetition.young:
                repeated = [stretch.reads(edge) + lasts * number for number in range(1, count + 1)]
                self._history[edge] = _last(np.concatenate([stretch.gets[edge], *repeated]), past)
            else:
                self._history[edge] = _last(stretch.gets[edge], past) + count * lasts

    def _stretch_sequences(self, places: tuple[Place, ...]) -> list[AccessSequence]:
        """Return the sequences of a stretch; equal ones are one, and those of the stretch before are used again."""
        unit = self._unit
        known, self._sequences = self._sequences, {}
        found = []
        for node, (begin, end) in enumerate(zip(self.place, places, strict=True)):
            whole, span = Place(unit.reads[node], unit.writes[node]), (begin, end)
            # Where reads and writes are even the sequence begins anew: (4, 2) to (6, 3) is as (0, 0) to (2, 1).
            if begin.reads * whole.writes == begin.writes * whole.reads:
                span = Place(0, 0), Place(end.reads - begin.reads, end.writes - begin.writes)
            gets, puts = bool(unit.inputs[node]), bool(unit.outputs[node])
            key = (whole, span, unit.rows[node], gets, puts)
            sequence = self._sequences.get(key) or known.get(key)
            if sequence is None:
                sequence = sequence_of(whole, *span, unit.rows[node], gets=gets, puts=puts)
            self._sequences[key] = sequence
            found.append(sequence)
        return found


def _continued(times: Int64, count: int) -> Int64:
    """Return times with room for more behind them."""
    longer = np.empty(len(times) + count, dtype=np.int64)
    longer[: len(times)] = times
    return longer


def _last(times: Int64, count: int) -> Int64:
    return times[len(times) - count :].copy()


def cut(unit: StreamingUnit, part: int, parts: int) -> tuple[Place, ...]:
    """Return how far each task gets if none goes beyond a fraction of its sequence, and all as far as they then can.

    A task can read what has been written and write where places have been freed. From the fraction itself the
    places are lowered until that holds; as all of them may be lowered together, the order does not matter.

    Args:
        unit: the tasks.
        part: numerator of the fraction.
        parts: denominator of the fraction.
    """
    places = [_place(whole, -(-whole.reads * part // parts), whole.writes * part // parts) for whole in unit.whole]
    forward = True
    for _ in range(_MOST_SWEEPS):
        changed = False
        nodes = range(len(places))
        for node in nodes if forward else reversed(nodes):
            reads = min((places[unit.source[edge]].writes for edge in unit.inputs[node]), default=places[node].reads)
            # Where a FIFO is never full, so much is more than all writes.
            freed = (places[unit.target[edge]].reads + unit.capacity[edge] for edge in unit.outputs[node])
            writes = min(freed, default=places[node].writes)
            whole = Place(unit.reads[node], unit.writes[node])
            lowered = _place(whole, min(reads, places[node].reads), min(writes, places[node].writes))
            changed |= lowered != places[node]
            places[node] = lowered
        if not changed:
            return tuple(places)
        forward = not forward
    return unit.whole


def _place(whole: Place, reads: int, writes: int) -> Place:
    """Return how far a sequence gets with limits to its reads and writes."""
    if not whole.reads:
        return whole
    # Read i (from 0) comes after write ``i * writes // reads``.
    reads = min(reads, -(-(writes + 1) * whole.reads // whole.writes), whole.reads)
    return Place(reads, min(writes, reads * whole.writes // whole.reads))


def find_repetition(before: Stretch | None, stretch: Stretch, ends: list[int], most: int) -> Repetition:
    """Return how often a stretch will be repeated, at most ``most`` times.

    If all accesses of a task are later by the same time than in the stretch before, by what the stretch lasts at that
    task, then so they are in the next stretch, until an access would overtake one that it must wait for. That can only
    happen where the slower of two neighbours is awaited by the faster one: an access that waited for the slower one
    would be as slow, so none does yet, and the shortest distance tells for how long.
    """
    if before is None or most < 1:
        return NO_REPETITION
    cycles = [end - begin for end, begin in zip(ends, stretch.clock, strict=True)]
    count = most
    young = []
    for edge, (source, target) in enumerate(zip(stretch.unit.source, stretch.unit.target, strict=True)):
        writing, reading = cycles[source], cycles[target]
        if not _later_by(stretch.puts(edge), before.puts(edge), writing):
            return NO_REPETITION
        if not _later_by(stretch.reads(edge), before.reads(edge), reading):
            return NO_REPETITION
        if stretch.past[edge]:
            if _later_by(stretch.gets[edge], before.gets[edge], reading):
                count = min(count, _lasting(stretch.frees(edge), reading, stretch.puts(edge), writing, most))
            else:
                young.append(edge)
                count = min(count, _lasting_while_young(stretch, edge, writing))
        there = stretch.puts(edge) + stretch.unit.forward[edge]
        count = min(count, _lasting(there, writing, stretch.reads(edge), reading, most))
    return Repetition(count, tuple(young)) if count > 0 else NO_REPETITION


def find_period(stretch: Stretch, rounds: int) -> int:
    """Return after how many rounds the times in the second half of a stretch repeat; 1 if they do not."""
    puts = [stretch.puts(edge) for edge in range(len(stretch.sent))]
    first_puts = np.stack([times[:: len(times) // rounds] for times in puts], axis=1)
    gaps = np.diff(first_puts, axis=0)[rounds // 2 :]  # [rounds - 1 - rounds // 2][edges]
    if len(gaps) < 2:
        return 1
    alike = np.flatnonzero((gaps[:-1] == gaps[-1]).all(axis=1))
    periods: list[int] = (len(gaps) - 1 - alike[::-1]).tolist()
    return next((period for period in periods if np.array_equal(gaps[period:], gaps[:-period])), 1)


def _later_by(times: Int64, earlier: Int64, cycles: int) -> bool:
    return int(times[-1]) - int(earlier[-1]) == cycles and bool((times - earlier == cycles).all())


def _lasting(awaited: Int64, awaited_cycles: int, access: Int64, cycles: int, most: int) -> int:
    """How often an access can be repeated before it overtakes the one that it waits for."""
    if awaited_cycles <= cycles:
        return most
    return int((access - awaited).min()) // (awaited_cycles - cycles)


def _lasting_while_young(stretch: Stretch, edge: int, writing: int) -> int:
    """How often a write can be repeated while the places that it takes are those freed up to this stretch.

    All of those are free before the next stretch begins at the writer, so whatever their times, none is awaited.
    """
    puts = stretch.puts(edge)
    nothing_awaited = bool((stretch.frees(edge) < puts).all())
    if nothing_awaited and int(stretch.reads(edge)[-1]) + stretch.unit.hop_cycles <= int(puts[0]) + writing:
        return stretch.past[edge] // len(puts)
    return 0
