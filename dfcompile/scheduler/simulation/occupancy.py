"""The accesses of a task to its FIFOs, how long it waits at each of them, and how full a FIFO gets."""

from typing import Literal

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag.dag import Int64
from dfcompile.scheduler.simulation.stretch import Stretch

_NOTHING = np.zeros(0, dtype=np.int64)


class PeakMeter:
    """Finds the smallest capacity that is known to delay no write of a FIFO's traffic, from stretches of it in turn.

    A write finds a place in it if it holds all elements that have been written and not yet read. An element is read
    after it is written, so for every element that has been read it is known how many were there when it was written;
    the other writes are kept until it is.

    Attributes:
        peak: the capacity that suffices so far; 0 without traffic.
    """

    def __init__(self, capacity: int, *, hand_over: bool) -> None:
        """Begin with an empty FIFO.

        Args:
            capacity: of the FIFO.
            hand_over: whether an element that is read in an instant may leave its place to one written in that
                instant. Not so where tasks also wait for the end of one another: the read might await that write.
        """
        self.peak = 0
        self._capacity = capacity
        self._side: Literal["left", "right"] = "right" if hand_over else "left"
        self._puts, self._reads = _NOTHING, _NOTHING  # those still needed
        self._ahead = 0  # of writes that have been looked at before reads that no other write can wait for
        self._left_out = 0

    def add(self, puts: Int64, reads: Int64) -> None:
        """Take in the times of the next writes and of the next reads."""
        self.peak = max(self.peak, min(len(puts), 1))
        if self._capacity == 1:
            return
        puts = np.concatenate([self._puts, puts - self._left_out])
        reads = np.concatenate([self._reads, reads - self._left_out])
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
            lag = int(reads[-1] - puts[0])
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
