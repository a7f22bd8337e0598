"""Progress of a simulated unit: its state between two stretches, where a stretch may end, how often it repeats."""

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag.dag import Int64
from dfcompile.scheduler.simulation.access_sequence import AccessSequence, Place, Rows, sequence_of
from dfcompile.scheduler.simulation.replay import NEVER
from dfcompile.scheduler.simulation.stretch import LONG_AGO, StreamingUnit, Stretch

_MOST_SWEEPS = 100


class Repetition(Struct, frozen=True):
    """How often the stretch after this one repeats it, so that it need not be simulated.

    Attributes:
        count: number of repetitions; in each, accesses of a task are later by the time the stretch lasts at that task.
        unsettled: edges whose last ``capacity`` reads do not all repeat those of the stretch before. The count is so
            small that no write of theirs waits for a place in the FIFO.
    """

    count: int
    unsettled: tuple[int, ...]


NO_REPETITION = Repetition(0, ())


class Progress:
    """Position of each task in its access sequence, its time, and the recent accesses to each FIFO.

    Attributes:
        clock: time from which each task continues.
        place: reads and writes that each task has done.
    """

    def __init__(self, unit: StreamingUnit, release: tuple[int, ...]) -> None:
        """Start before the first access of each task, at its release."""
        starts = zip(release, unit.filling, strict=True)
        self.clock = [NEVER if cycle == NEVER else cycle + filling for cycle, filling in starts]
        self.place = tuple(Place(0, 0) for _ in unit.nodes)
        self._unit = unit
        self._history, self._pending = ([np.zeros(0, dtype=np.int64) for _ in unit.edges] for _ in range(2))
        for edge in unit.bounded:
            self._history[edge] = np.full(unit.capacity[edge], LONG_AGO, dtype=np.int64)
        self._sequences: dict[tuple[Place, tuple[Place, Place], Rows, bool, bool], AccessSequence] = {}

    def stretch(self, places: tuple[Place, ...]) -> Stretch:
        """Return the stretch from here to other places, whose times are to be simulated."""
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
            stretch: the stretch that begins here, with its times.
            ends: time at which each task ends it.
            places: of each task after all repetitions.
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
            if edge in repetition.unsettled:
                repeated = [stretch.reads(edge) + lasts * number for number in range(1, count + 1)]
                self._history[edge] = _last(np.concatenate([stretch.gets[edge], *repeated]), past)
            else:
                self._history[edge] = _last(stretch.gets[edge], past) + count * lasts

    def _stretch_sequences(self, places: tuple[Place, ...]) -> list[AccessSequence]:
        """Return the access sequences of a stretch; equal ones are one object, also across successive stretches."""
        unit = self._unit
        known, self._sequences = self._sequences, {}
        sequences = []
        for node, (begin, end) in enumerate(zip(self.place, places, strict=True)):
            whole, span = Place(unit.reads[node], unit.writes[node]), (begin, end)
            # Where reads and writes are in proportion the sequence starts anew: (4, 2) to (6, 3) is (0, 0) to (2, 1).
            if begin.reads * whole.writes == begin.writes * whole.reads:
                span = Place(0, 0), Place(end.reads - begin.reads, end.writes - begin.writes)
            gets, puts = bool(unit.inputs[node]), bool(unit.outputs[node])
            key = (whole, span, unit.rows[node], gets, puts)
            sequence = self._sequences.get(key) or known.get(key)
            if sequence is None:
                sequence = sequence_of(whole, *span, unit.rows[node], gets=gets, puts=puts)
            self._sequences[key] = sequence
            sequences.append(sequence)
        return sequences


def _continued(times: Int64, count: int) -> Int64:
    """Return times followed by room for ``count`` more, not yet set."""
    longer = np.empty(len(times) + count, dtype=np.int64)
    longer[: len(times)] = times
    return longer


def _last(times: Int64, count: int) -> Int64:
    return times[len(times) - count :].copy()


def cut(unit: StreamingUnit, part: int, parts: int) -> tuple[Place, ...]:
    """Return how far each task can get if none may go beyond a fraction of its sequence.

    A task can read elements that have been written, and write to places that have been freed. Places start at the
    fraction and are lowered until that holds for all tasks: the result, the largest such places, is unique.

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
            # In a FIFO that is never full, this is at least the number of all writes.
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
    """Return how far a sequence, which ends at ``whole``, gets with limits to its reads and writes."""
    if not whole.reads:
        return whole
    # Read i (from 0) comes after ``i * whole.writes // whole.reads`` writes.
    reads = min(reads, -(-(writes + 1) * whole.reads // whole.writes), whole.reads)
    return Place(reads, min(writes, reads * whole.writes // whole.reads))


def find_repetition(before: Stretch | None, stretch: Stretch, ends: list[int], most: int) -> Repetition:
    """Return how often a stretch will be repeated, at most ``most`` times.

    A stretch repeats the one before if all accesses of each task are later by the time the stretch lasts at that task.
    The next stretch then repeats it too, until an access would overtake one that it must wait for. Only an access of a
    faster task can overtake one of a slower task. None waits for it yet, or the faster task would be as slow: how many
    repetitions are left follows from the shortest time between the two accesses.
    """
    if before is None or most < 1:
        return NO_REPETITION
    cycles = [end - begin for end, begin in zip(ends, stretch.clock, strict=True)]
    count = most
    unsettled = []
    for edge, (source, target) in enumerate(zip(stretch.unit.source, stretch.unit.target, strict=True)):
        writing, reading = cycles[source], cycles[target]
        puts, reads = stretch.puts(edge), stretch.reads(edge)
        if not (_later_by(puts, before.puts(edge), writing) and _later_by(reads, before.reads(edge), reading)):
            return NO_REPETITION
        if stretch.past[edge]:
            if _later_by(stretch.gets[edge], before.gets[edge], reading):
                count = min(count, _repeats_until_wait(stretch.frees(edge), reading, puts, writing, most))
            else:
                unsettled.append(edge)
                count = min(count, _repeats_while_unsettled(stretch, edge, writing))
        arrival = puts + stretch.unit.forward[edge]
        count = min(count, _repeats_until_wait(arrival, writing, reads, reading, most))
    return Repetition(count, tuple(unsettled)) if count > 0 else NO_REPETITION


def find_period(stretch: Stretch, rounds: int) -> int:
    """Return the period, in rounds, of the times in the second half of a stretch; 1 if they have none."""
    puts = [stretch.puts(edge) for edge in range(len(stretch.sent))]
    first_puts = np.stack([times[:: len(times) // rounds] for times in puts], axis=1)
    gaps = np.diff(first_puts, axis=0)[rounds // 2 :]  # [rounds - 1 - rounds // 2][edges]
    if len(gaps) < 2:
        return 1
    like_last = np.flatnonzero((gaps[:-1] == gaps[-1]).all(axis=1))
    periods: list[int] = (len(gaps) - 1 - like_last[::-1]).tolist()
    return next((period for period in periods if np.array_equal(gaps[period:], gaps[:-period])), 1)


def _later_by(times: Int64, earlier: Int64, cycles: int) -> bool:
    return int(times[-1]) - int(earlier[-1]) == cycles and bool((times - earlier == cycles).all())


def _repeats_until_wait(awaited: Int64, awaited_cycles: int, access: Int64, cycles: int, most: int) -> int:
    """Return how often accesses can be repeated before one would overtake the access that it waits for."""
    if awaited_cycles <= cycles:
        return most
    return int((access - awaited).min()) // (awaited_cycles - cycles)


def _repeats_while_unsettled(stretch: Stretch, edge: int, writing: int) -> int:
    """Return how often the writes of an edge can be repeated into places that are freed by the end of this stretch.

    If all of these are free before the writer begins the next stretch, it waits for none; else 0.
    """
    puts = stretch.puts(edge)
    nothing_awaited = bool((stretch.frees(edge) < puts).all())
    if nothing_awaited and int(stretch.reads(edge)[-1]) + stretch.unit.hop_cycles <= int(puts[0]) + writing:
        return stretch.past[edge] // len(puts)
    return 0
