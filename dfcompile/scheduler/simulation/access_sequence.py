"""The accesses of one task: their order, and the waits between them, whatever others do."""

from math import gcd
from typing import TypeAlias

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag.dag import Int64

_NOTHING = np.zeros(0, dtype=np.int64)

Counts: TypeAlias = slice | Int64  # numbers 0, 1, … one after another as a slice: taking these copies nothing


class Place(Struct, frozen=True):
    """How far a task has got in its sequence: after so many reads of each input and writes to each output."""

    reads: int
    writes: int


class Rows(Struct, frozen=True):
    """Cycles after its first that a row of a task's reads takes, one of each input, and one of its writes."""

    reads: int = 0
    writes: int = 0


ONE_CYCLE = Rows()


class AccessSequence(Struct, frozen=True, eq=False):
    """A stretch of the reads and writes of one task.

    In each cycle the task first writes one element to all outputs in turn if one is due, then, unless more are due,
    reads one element from all inputs in turn. An access takes place ``waits`` cycles after the stretch began, or later:
    each waits for the one before. Of a row that takes several cycles these are the waits of its first accesses; a row
    of reads begins in the last cycle of the writes before.

    Attributes:
        reads: how many of each input FIFO; 0 without.
        writes: how many to each output FIFO; 0 without.
        cycles: waits over the whole stretch.
        get_waits: waits before each read of a FIFO; of a task without input FIFOs empty, shape [reads].
        put_waits: waits before each write to a FIFO; of a task without output FIFOs empty, shape [writes].
        puts_before: writes to FIFOs of the stretch before each read, shape [reads].
        gets_before: reads of FIFOs of the stretch before each write, shape [writes].
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
        whole: I and O, at least 1; both 0 for a node that does nothing.
        begin: where the stretch begins.
        end: where it ends.
        rows: of the task.
        gets: whether the task reads FIFOs.
        puts: whether it writes to FIFOs.
    """
    common = gcd(whole.reads, whole.writes)
    if not common:
        return AccessSequence(0, 0, 0, _NOTHING, _NOTHING, _NOTHING, _NOTHING)
    reads, writes = whole.reads // common, whole.writes // common
    offset = max(begin.reads, begin.reads * writes // reads)
    cycles = max(end.reads, end.reads * writes // reads) - offset
    due = begin.reads * writes // reads  # writes before the first read of the stretch
    cycles += rows.reads * (end.reads - begin.reads) + rows.writes * (end.reads * writes // reads - due)
    read = np.arange(end.reads - begin.reads if gets else 0, dtype=np.int64)
    write = np.arange(end.writes - begin.writes if puts else 0, dtype=np.int64)
    if reads == writes:
        ahead = begin.reads - begin.writes  # of the reads: 0 or 1
        before = slice(ahead, ahead + len(read)), slice(1 - ahead, 1 - ahead + len(write))
        get_waits, put_waits = read, write + (1 - ahead)
        if rows != ONE_CYCLE:
            put_waits = rows.reads * put_waits + rows.writes * (put_waits - 1) + put_waits
            get_waits = (1 + rows.reads + rows.writes) * read
        return AccessSequence(len(read), len(write), cycles, get_waits, put_waits, *before)
    # Counted from the beginning of the stretch and without whole multiples: products of large numbers would not fit.
    written, rest = divmod(begin.reads * writes, reads)
    puts_before = read * (writes // reads) + (rest + read * (writes % reads)) // reads + (written - begin.writes)
    needed, rest = divmod((begin.writes + 1) * reads + writes - 1, writes)
    gets_before = write * (reads // writes) + (rest + write * (reads % writes)) // writes + (needed - begin.reads)
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
