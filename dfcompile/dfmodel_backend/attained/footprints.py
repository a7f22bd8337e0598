"""Reads of the same elements: what several tasks read at about the same time comes from DRAM once."""

from bisect import bisect_left

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag.dag import Bool, Int64
from dfcompile.dfmodel_backend.columns import equal_rows
from dfcompile.distinct import first_places


class Reads(Struct, frozen=True, eq=False):
    """Reads of a configuration through memory, one per edge.

    Attributes:
        keeper: what they read from: a buffer, or the task that made it, shape [reads].
        place: of the first element, equal in reads of the same elements; negative where it is not known, shape [reads].
        is_all: whether a read has every element of what it reads from, shape [reads].
        is_ordered: whether the order of its elements is known, shape [reads].
        order: number of that order, shape [reads].
        reader: scope of the task that reads, shape [reads].
        begin: cycle in which the task starts, shape [reads].
        end: cycle in which it has ended, shape [reads].
        work: its cycles, shape [reads].
        word: bytes that it reads in a cycle, shape [reads].
        size: bytes that it reads, shape [reads].
        distinct: bytes of the different elements, shape [reads].
        reused: bytes that must be at hand so that a task that reads alone takes none twice, shape [reads].
    """

    keeper: Int64
    place: Int64
    is_all: Bool
    is_ordered: Bool
    order: Int64
    reader: Int64
    begin: Int64
    end: Int64
    work: Int64
    word: Int64
    size: Int64
    distinct: Int64
    reused: Int64


class Fetches(Struct, frozen=True, eq=False):
    """Reads of the same elements by tasks that start while the first of them still runs.

    Ordered by what is read, and by time among those of the same.

    Attributes:
        of_read: number of the fetch of each read, shape [reads].
        footprint: number of what is read, shape [fetches].
        keeper: what it is read from, shape [fetches].
        begin: cycle in which the first task starts, shape [fetches].
        end: cycle in which the last has ended, shape [fetches].
        size: bytes that all tasks read, shape [fetches].
        distinct: bytes of the different elements, shape [fetches].
        once: bytes that one of the tasks reads, shape [fetches].
        window: bytes that the first of the tasks is ahead of the last at most; 0 where they cannot share a stream: they
            are of several scopes, or do not read in one order that is known, shape [fetches].
        rolling: bytes that must be at hand so that no element is fetched twice, at most all of them, shape [fetches].
    """

    of_read: Int64
    footprint: Int64
    keeper: Int64
    begin: Int64
    end: Int64
    size: Int64
    distinct: Int64
    once: Int64
    window: Int64
    rolling: Int64


def fetches_of(reads: Reads) -> Fetches:
    """Return which reads have the same elements at about the same time.

    A task reads an element in each cycle of its work. Of two tasks that read the same elements in the same order one is
    never farther ahead than the cycles from the first start to the last end but for the work.
    """
    footprint = _footprints(reads)
    by_time = np.lexsort((reads.begin, footprint))
    of_read = np.empty(len(footprint), dtype=np.int64)
    of_read[by_time] = _numbered(footprint[by_time], reads.begin[by_time], reads.end[by_time])
    _, one = first_places(of_read)
    fetches = len(one)

    def alike(column: Int64 | Bool) -> Bool:
        same = np.ones(fetches, dtype=np.bool_)
        same[of_read[column != column[one][of_read]]] = False
        return same

    begin, end = reads.begin[one].copy(), reads.end[one].copy()
    np.minimum.at(begin, of_read, reads.begin)
    np.maximum.at(end, of_read, reads.end)
    several = np.bincount(of_read, minlength=fetches) > 1
    shares = several & reads.is_ordered[one] & alike(reads.reader) & alike(reads.order) & alike(reads.size)
    shares &= alike(reads.word) & alike(reads.work) & alike(reads.is_ordered) & alike(reads.place)
    size = np.zeros(fetches, dtype=np.int64)
    np.add.at(size, of_read, reads.size)
    window = np.where(shares, (end - begin - reads.work[one] + 1) * reads.word[one], 0)
    distinct = reads.distinct[one]
    return Fetches(
        of_read=of_read,
        footprint=footprint[one],
        keeper=reads.keeper[one],
        begin=begin,
        end=end,
        size=size,
        distinct=distinct,
        once=reads.size[one],
        window=window,
        rolling=np.where(shares | ~several, np.minimum(reads.reused[one] + window, distinct), distinct),
    )


def _footprints(reads: Reads) -> Int64:
    """Return a number for each read that those of the same elements share, shape [reads]."""
    known = reads.is_all | ((reads.place >= 0) & reads.is_ordered)
    apart = np.where(known, -1, np.arange(len(known)))  # what is not known is like nothing
    partly = known & ~reads.is_all
    keys = (reads.place, reads.order, reads.size, reads.distinct)
    _, number, _ = equal_rows([reads.keeper, apart, *(np.where(partly, key, -1) for key in keys)])
    return number


def _numbered(footprint: Int64, begin: Int64, end: Int64) -> Int64:
    """Return the number of the fetch of each read, ascending; reads are sorted by footprint and begin."""
    is_first = np.ones(len(footprint), dtype=np.bool_)
    is_first[1:] = footprint[1:] != footprint[:-1]
    starts = np.flatnonzero(is_first)
    behind = np.append(starts, len(footprint))[1:]
    longer = begin[behind - 1] >= end[starts]
    cycles, ends = begin.tolist(), end.tolist()
    for at, last in zip(starts[longer].tolist(), behind[longer].tolist(), strict=True):
        while (at := bisect_left(cycles, ends[at], at + 1, last)) < last:
            is_first[at] = True
    return np.cumsum(is_first) - 1
