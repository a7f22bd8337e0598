"""How full a FIFO gets."""

from dataclasses import dataclass

import numpy as np

from dfcompile.canonical_dag.dag import Int64


@dataclass(frozen=True, slots=True, eq=False)
class Traffic:
    """A stretch of the traffic through one FIFO, repeated a number of times.

    Repetition k takes place ``k * write_cycles`` later at the writer and ``k * read_cycles`` later at the reader.
    """

    puts: Int64
    reads: Int64
    repetitions: int
    write_cycles: int
    read_cycles: int


def peak_occupancy(traffic: list[Traffic], capacity: int, *, hand_over: bool) -> int:
    """Return the smallest capacity that is known to delay no write of a FIFO's traffic.

    Args:
        traffic: all of it, in order.
        capacity: of the FIFO.
        hand_over: whether an element that is read in an instant may leave its place to one written in that instant.
            Not so where tasks also wait for the end of one another: the read might itself await that write.
    """
    if not traffic:
        return 0
    puts, reads = (np.concatenate(times) for times in _expanded(traffic))
    number = np.arange(len(puts), dtype=np.int64)
    gone = np.minimum(np.searchsorted(reads, puts, side="right" if hand_over else "left"), number)
    return min(int((number + 1 - gone).max()), capacity)


def _expanded(traffic: list[Traffic]) -> tuple[list[Int64], list[Int64]]:
    """Return the times of writes and reads, less repetitions that can add nothing.

    Where writer and reader keep pace, every repetition after the last read of what was written before looks the same.
    """
    puts: list[Int64] = []
    reads: list[Int64] = []
    left_out = 0
    for part in traffic:
        kept = part.repetitions
        if part.write_cycles == part.read_cycles and kept > 1:
            lag = int(part.reads[-1] - part.puts[0])
            kept = min(kept, 3 + lag // part.write_cycles)
        repetition = np.arange(kept, dtype=np.int64)[:, None]
        puts.append((part.puts - left_out + repetition * part.write_cycles).ravel())
        reads.append((part.reads - left_out + repetition * part.read_cycles).ravel())
        left_out += (part.repetitions - kept) * part.write_cycles
    return puts, reads
