"""Every access of a streaming unit: when it takes place, and how long it waited for its neighbour."""

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag.dag import Int64
from dfcompile.errors import VerificationError
from dfcompile.scheduler.simulation.access_sequence import Counts, Place, numbers
from dfcompile.scheduler.simulation.progress import Progress
from dfcompile.scheduler.simulation.relaxation import relax
from dfcompile.scheduler.simulation.stepping import FINISHED, step
from dfcompile.scheduler.simulation.stretch import StreamingUnit, Stretch
from dfcompile.scheduler.simulation.turns import ends_come_in_turn


class Accesses(Struct, frozen=True, eq=False):
    """All accesses of one task to its FIFOs, in the order in which it makes them.

    Attributes:
        time: when each takes place, shape [accesses].
        wait: cycles that it waited for an element or a place, shape [accesses].
        edge: of the FIFO, as numbered in the unit, shape [accesses].
        row: which element of the FIFO it is, from 0, shape [accesses].
    """

    time: Int64
    wait: Int64
    edge: Int64
    row: Int64


class FollowedUnit(Struct, frozen=True, eq=False):
    """A streaming unit whose accesses are all known.

    Attributes:
        unit: the tasks.
        stretch: from their first access to their last.
    """

    unit: StreamingUnit
    stretch: Stretch

    def end(self, node: int) -> int:
        """Return when a task of the unit ends."""
        return self.stretch.end(self.unit, node)

    def start(self, node: int) -> int:
        """Return when a task has read its first element of every streamed input, or may run if it has none."""
        inputs = self.unit.inputs[node]
        if not inputs or not self.stretch.sequences[node].reads:
            return self.stretch.clock[node]
        return int(self.stretch.reads(inputs[-1])[0])

    def accesses(self, node: int) -> Accesses:
        """Return all accesses of a task of the unit."""
        unit, stretch = self.unit, self.stretch
        sequence, inputs, outputs = stretch.sequences[node], unit.inputs[node], unit.outputs[node]
        read, write = np.arange(sequence.reads), np.arange(sequence.writes)
        read_at = read * len(inputs) + numbers(sequence.puts_before) * len(outputs)
        write_at = numbers(sequence.gets_before) * len(inputs) + write * len(outputs)
        length = sequence.reads * len(inputs) + sequence.writes * len(outputs)
        time, delay, edge, row = np.empty((4, length), dtype=np.int64)
        for place, number in enumerate(inputs):
            at, times = read_at + place, stretch.reads(number)
            time[at], delay[at], edge[at], row[at] = times, times - sequence.get_waits, number, read
        for place, number in enumerate(outputs):
            at, times = write_at + place, stretch.puts(number)
            time[at], delay[at], edge[at], row[at] = times, times - sequence.put_waits, number, write
        return Accesses(time, np.diff(delay, prepend=stretch.clock[node]), edge, row)

    def place_of_read(self, edge: int, row: int) -> int:
        """Return which of its reader's accesses takes an element from a FIFO."""
        node = self.unit.target[edge]
        sequence = self.stretch.sequences[node]
        before = row * len(self.unit.inputs[node]) + _at(sequence.puts_before, row) * len(self.unit.outputs[node])
        return before + self.unit.inputs[node].index(edge)

    def place_of_write(self, edge: int, row: int) -> int:
        """Return which of its writer's accesses puts an element into a FIFO."""
        node = self.unit.source[edge]
        sequence = self.stretch.sequences[node]
        before = _at(sequence.gets_before, row) * len(self.unit.inputs[node]) + row * len(self.unit.outputs[node])
        return before + self.unit.outputs[node].index(edge)


def follow_unit(unit: StreamingUnit, release: tuple[int, ...]) -> FollowedUnit:
    """Find all accesses of a unit, however many repeat.

    Args:
        unit: the tasks.
        release: cycle from which on each node may run.

    Raises:
        VerificationError: it ends in a deadlock.
    """
    places = tuple(Place(reads, writes) for reads, writes in zip(unit.reads, unit.writes, strict=True))
    stretch = Progress(unit, release).stretch(places)
    if not (ends_come_in_turn(unit) and relax(unit, stretch)):
        stuck = step(unit, stretch)
        if any(place != FINISHED for place in stuck):
            raise VerificationError(f"unit of node {unit.nodes[0]}: a deadlock")
    return FollowedUnit(unit, stretch)


def _at(counts: Counts, place: int) -> int:
    return counts.start + place if isinstance(counts, slice) else int(counts[place])
