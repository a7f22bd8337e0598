"""How far a unit has got: the state between two stretches."""

import numpy as np

from dfcompile.canonical_dag.dag import Int64
from dfcompile.scheduler.simulation.access_sequence import AccessSequence, Place, task_sequence
from dfcompile.scheduler.simulation.repetition import NO_REPETITION, Repetition
from dfcompile.scheduler.simulation.stretch import LONG_AGO, StreamingUnit, Stretch


class Progress:
    """Where each task is in its sequence and when, and what the FIFOs hold.

    Attributes:
        clock: time at which each task goes on.
        place: where it is.
    """

    def __init__(self, unit: StreamingUnit, release: tuple[int, ...]) -> None:
        """Begin with the first accesses, not before each task is released."""
        self.clock = list(release)
        self.place = tuple(Place(0, 0) for _ in unit.nodes)
        self._unit = unit
        self._history = [
            np.full(unit.capacity[edge] if unit.is_bounded(edge) else 0, LONG_AGO, dtype=np.int64)
            for edge in range(len(unit.edges))
        ]
        self._pending = [np.zeros(0, dtype=np.int64) for _ in unit.edges]
        self._sequences: dict[tuple[int, int, int, int, int, int, bool, bool], AccessSequence] = {}

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
        return Stretch(sequences, list(self.clock), sent, counts[0], gets, counts[1])

    def move_on(
        self, stretch: Stretch, ends: list[int], places: tuple[Place, ...], found: Repetition = NO_REPETITION
    ) -> None:
        """Go to the end of a stretch and its repetitions.

        Args:
            stretch: from here on, with all times.
            ends: time at which each task ends it.
            places: where each task is then, after all repetitions.
            found: the repetitions.
        """
        unit, count = self._unit, found.count
        cycles = [end - begin for end, begin in zip(ends, stretch.clock, strict=True)]
        self.clock = [end + count * lasts for end, lasts in zip(ends, cycles, strict=True)]
        self.place = places
        for edge, past in enumerate(stretch.past):
            self._pending[edge] = stretch.sent[edge][len(stretch.arrivals(edge)) :].copy()
            lasts = cycles[unit.target[edge]]
            if not past:
                continue
            if edge in found.young:
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
            whole = unit.reads[node], unit.writes[node]
            gets, puts = bool(unit.inputs[node]), bool(unit.outputs[node])
            key = (*whole, *_from_the_beginning(whole, begin, end), gets, puts)
            sequence = self._sequences.get(key) or known.get(key)
            if sequence is None:
                sequence = task_sequence(Place(*whole), Place(*key[2:4]), Place(*key[4:6]), gets=gets, puts=puts)
            self._sequences[key] = sequence
            found.append(sequence)
        return found


def _from_the_beginning(whole: tuple[int, int], begin: Place, end: Place) -> tuple[int, int, int, int]:
    """Return the reads and writes before and after a stretch, or those after one from the beginning that is alike.

    Where reads and writes are even the sequence begins anew: (4, 2) to (6, 3) is as (0, 0) to (2, 1).
    """
    if begin.reads * whole[1] == begin.writes * whole[0]:
        return 0, 0, end.reads - begin.reads, end.writes - begin.writes
    return begin.reads, begin.writes, end.reads, end.writes


def _continued(times: Int64, count: int) -> Int64:
    """Return times with room for more behind them."""
    longer = np.empty(len(times) + count, dtype=np.int64)
    longer[: len(times)] = times
    return longer


def _last(times: Int64, count: int) -> Int64:
    return times[len(times) - count :].copy()
