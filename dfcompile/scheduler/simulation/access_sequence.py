"""The accesses of one task to its FIFOs: their order, and the cycles between them if no other task delays it."""

from math import gcd
from typing import TypeAlias

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag.dag import Int64

_NOTHING = np.zeros(0, dtype=np.int64)

Counts: TypeAlias = slice | Int64  # one number per access; consecutive numbers are a slice, which needs no memory


class Place(Struct, frozen=True):
    """How far a task has got in its sequence: after so many reads of each input and writes to each output."""

    reads: int
    writes: int


class Rows(Struct, frozen=True):
    """Cycles beyond the first of a row of reads, one of each input in turn, and of a row of writes."""

    reads: int = 0
    writes: int = 0


ONE_CYCLE = Rows()


class AccessSequence(Struct, frozen=True, eq=False):
    """A stretch of the reads and writes of one task.

    In each cycle the task first writes one element to each output in turn if one is due. Then, if no more are due, it
    reads one element of each input in turn. An access takes place ``waits`` cycles after the stretch began, or later if
    the access before it was late. In a row of several cycles, the waits are those of its first access; a row of reads
    begins in the last cycle of the writes before it.

    Attributes:
        reads: of each input FIFO; 0 if the task has none.
        writes: to each output FIFO; 0 if the task has none.
        cycles: that the stretch takes if nothing is late.
        get_waits: cycles before each read, shape [reads].
        put_waits: cycles before each write, shape [writes].
        puts_before: writes of the stretch before each read, shape [reads].
        gets_before: reads of the stretch before each write, shape [writes].
    """

    reads: int
    writes: int
    cycles: int
    get_waits: Int64
    put_waits: Int64
    puts_before: Counts
    gets_before: Counts


def sequence_of(
    whole: Place, begin: Place, end: Place, rows: Rows = ONE_CYCLE, *, gets: bool = True, puts: bool = True
) -> AccessSequence:
    """Return a stretch of the access sequence of a task that reads and writes as evenly as whole elements allow.

    With I reads and O writes in the whole run write j (from 1) needs ``ceil(j * I / O)`` reads, and before read i
    (from 0) ``floor(i * O / I)`` elements have been written. Waits are counted from those before the first read of the
    stretch to those before the first read after it.

    Args:
        whole: I and O of the whole run, at least 1; both 0 for a node that does nothing.
        begin: where the stretch begins.
        end: where it ends.
        rows: cycles of the task's rows.
        gets: whether the task reads FIFOs.
        puts: whether it writes to FIFOs.
    """
    common = gcd(whole.reads, whole.writes)
    if not common:
        return AccessSequence(0, 0, 0, _NOTHING, _NOTHING, _NOTHING, _NOTHING)
    reads, writes = whole.reads // common, whole.writes // common
    due, due_at_end = begin.reads * writes // reads, end.reads * writes // reads  # writes before the next read
    offset = max(begin.reads, due)  # waits before the stretch, if each row takes one cycle
    cycles = max(end.reads, due_at_end) - offset
    cycles += rows.reads * (end.reads - begin.reads) + rows.writes * (due_at_end - due)
    read = np.arange(end.reads - begin.reads if gets else 0, dtype=np.int64)
    write = np.arange(end.writes - begin.writes if puts else 0, dtype=np.int64)
    if reads == writes:
        ahead = begin.reads - begin.writes  # reads that are not yet written: 0 or 1
        counts = slice(ahead, ahead + len(read)), slice(1 - ahead, 1 - ahead + len(write))
        get_waits, put_waits = read, write + (1 - ahead)
        if rows != ONE_CYCLE:
            put_waits = rows.reads * put_waits + rows.writes * (put_waits - 1) + put_waits
            get_waits = (1 + rows.reads + rows.writes) * read
        return AccessSequence(len(read), len(write), cycles, get_waits, put_waits, *counts)
    # Counted from the beginning of the stretch, with quotients and remainders apart: else products would overflow.
    written, remainder = divmod(begin.reads * writes, reads)
    puts_before = read * (writes // reads) + (remainder + read * (writes % reads)) // reads + (written - begin.writes)
    needed, remainder = divmod((begin.writes + 1) * reads + writes - 1, writes)
    gets_before = write * (reads // writes) + (remainder + write * (reads % writes)) // writes + (needed - begin.reads)
    get_waits, put_waits = read, gets_before + (begin.reads - offset)
    if writes >= reads:
        get_waits, put_waits = puts_before + (begin.writes - offset), write + (begin.writes + 1 - offset)
    if rows != ONE_CYCLE:
        get_waits = get_waits + rows.reads * read + rows.writes * (puts_before + (begin.writes - due))
        put_waits = put_waits + rows.reads * gets_before + rows.writes * (write + (begin.writes - due))
    return AccessSequence(len(read), len(write), cycles, get_waits, put_waits, puts_before, np.maximum(gets_before, 0))


def numbers(counts: Counts) -> Int64:
    """Return counts as an array."""
    return np.arange(counts.start, counts.stop, dtype=np.int64) if isinstance(counts, slice) else counts
