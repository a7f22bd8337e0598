"""How full a FIFO gets, and how long tasks wait at it."""

from itertools import pairwise

import numpy as np

from dfcompile.canonical_dag.dag import Int64
from dfcompile.scheduler.simulation.stretch import Stretch

_NOTHING = np.zeros(0, dtype=np.int64)


class PeakMeter:
    """Finds the smallest capacity that is known to delay no write of a FIFO's traffic, from stretches of it in turn.

    Capacity c delays no write if element j is written when element j - c has been read, for all j. It is tried on
    the writes whose read j - c is known; the others are kept until it is.
    """

    def __init__(self, capacity: int, *, hand_over: bool) -> None:
        """Begin with an empty FIFO.

        Args:
            capacity: of the FIFO.
            hand_over: whether an element that is read in an instant may leave its place to one written in that
                instant. Not so where tasks also wait for the end of one another: the read might await that write.
        """
        self._capacity = capacity
        self._side: int = 0 if hand_over else 1  # cycles that must lie between
        self._peak = 0
        self._puts, self._reads = _NOTHING, _NOTHING  # those still needed
        self._put, self._read = 0, 0  # their first numbers
        self._last_put = 0
        self._left_out = 0

    @property
    def peak(self) -> int:
        """The capacity that suffices so far; 0 without traffic."""
        return min(self._peak, self._capacity)

    def add(self, puts: Int64, reads: Int64) -> None:
        """Take in the times of the next writes and of the next reads."""
        if len(puts):
            self._peak = max(self._peak, 1)
            self._last_put = int(puts[-1]) - self._left_out
        if self._capacity == 1:
            return
        self._puts = np.concatenate([self._puts, puts - self._left_out])
        self._reads = np.concatenate([self._reads, reads - self._left_out])
        if self._is_full(self._peak):
            self._enlarge()
        self._drop()

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

    def _is_full(self, capacity: int) -> bool:
        """Whether a capacity delays a write whose read is known."""
        first = max(self._put, self._read + capacity)
        end = min(self._put + len(self._puts), self._read + len(self._reads) + capacity)
        if first >= end:
            return False
        written = self._puts[first - self._put : end - self._put]
        read = self._reads[first - capacity - self._read : end - capacity - self._read]
        return bool((read + self._side > written).any())

    def _enlarge(self) -> None:
        """Set the smallest capacity that delays nothing."""
        step = 1
        while self._is_full(self._peak + step):
            step *= 2
        low, high = self._peak + step // 2, self._peak + step  # full, not full
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._is_full(middle) else (low, middle)
        self._peak = high

    def _drop(self) -> None:
        """Drop writes that have been tried, and reads that no write to be tried can wait for."""
        settled = min(self._put + len(self._puts), self._read + len(self._reads) + self._peak)
        if settled > self._put:
            self._puts, self._put = self._puts[settled - self._put :].copy(), settled
        earliest = self._puts[0] if len(self._puts) else self._last_put
        gone = int(np.searchsorted(self._reads, earliest, side="left" if self._side else "right"))
        if gone:
            self._reads, self._read = self._reads[gone:].copy(), self._read + gone


def stalls(stretch: Stretch, node: int, end: int, *, starts: bool) -> dict[int, int]:
    """Return by how much the accesses to each FIFO of a task delay it in a stretch, by edge.

    Args:
        stretch: with all times.
        node: the task.
        end: time at which it ends the stretch.
        starts: whether the first reads of the stretch are its first: before them it has not started.
    """
    unit, sequence, clock = stretch.unit, stretch.sequences[node], stretch.clock[node]
    reads = [stretch.reads(edge) for edge in unit.inputs[node]]
    puts = [stretch.puts(edge) for edge in unit.outputs[node]]
    read_stalls, put_stalls = _beyond_the_first(reads), _beyond_the_first(puts)
    # All stalls together are known; those at the first places of the rows are what is left.
    rest = end - clock - sequence.cycles - sum(read_stalls) - sum(put_stalls)
    if sequence.writes and not sequence.reads:
        put_stalls[0] = rest
    elif sequence.reads:
        at_first_put = _at_first_put(stretch, node, reads, puts) if sequence.writes else 0
        read_stalls[0] = rest - at_first_put
        if sequence.writes:
            put_stalls[0] = at_first_put
    if starts and sequence.reads:
        before = clock
        for place, times in enumerate(reads):
            first = int(times[0]) - int(sequence.get_waits[0])
            read_stalls[place] -= first - before
            before = first
    return dict(zip((*unit.inputs[node], *unit.outputs[node]), (*read_stalls, *put_stalls), strict=True))


def _beyond_the_first(row: list[Int64]) -> list[int]:
    """Return how much later each column of a row is than the one before it, in sum; 0 for the first."""
    return [0 for _ in row[:1]] + [int((later - before).sum()) for before, later in pairwise(row)]


def _at_first_put(stretch: Stretch, node: int, reads: list[Int64], puts: list[Int64]) -> int:
    """Return how much writes to the first output delay a task beyond the access before each of them."""
    if not any(stretch.past[edge] for edge in stretch.unit.outputs[node]):
        return 0
    sequence, clock = stretch.sequences[node], stretch.clock[node]
    read_before = np.concatenate([[clock], reads[-1] - sequence.get_waits])
    put_before = np.concatenate([[clock], puts[-1][:-1] - sequence.put_waits[:-1]])
    before = np.maximum(put_before, read_before[sequence.gets_before])
    return int((puts[0] - sequence.put_waits - before).sum())
