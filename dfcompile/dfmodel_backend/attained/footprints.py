"""What a configuration reads from memory and when: what several tasks read at about the same time comes once."""

from bisect import bisect_left

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.dag import Bool, Int64
from dfcompile.canonical_dag.part import DagPart
from dfcompile.dfmodel_backend.columns import equal_rows
from dfcompile.distinct import first_places
from dfcompile.scheduler import Schedule

Numbers = npt.NDArray[np.integer]


class Spans(Struct, frozen=True, eq=False):
    """Bytes that SRAM holds from one cycle to before another.

    Attributes:
        begin: shape [spans].
        end: shape [spans].
        size: in bytes, shape [spans].
    """

    begin: Int64
    end: Int64
    size: Int64

    def take(self, which: Bool | Int64) -> "Spans":
        """Return some of them."""
        return Spans(self.begin[which], self.end[which], self.size[which])

    @staticmethod
    def joined(*parts: "Spans") -> "Spans":
        """Return several together."""
        return Spans(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("begin", "end", "size")))

    @property
    def peak(self) -> int:
        """The most bytes that are held at a time."""
        cycles = np.concatenate([self.end, self.begin])  # what ends at a cycle makes room for what begins then
        change = np.concatenate([-self.size, self.size])
        load = np.cumsum(change[np.argsort(cycles, kind="stable")])
        return int(load.max(initial=0))


def fifos_of(dag: CanonicalDag, part: DagPart, found: Schedule) -> Spans:
    """Return what FIFOs take, words as wide as the machine's, from the start of who writes to the end of who reads."""
    edges = np.flatnonzero(found.streamed)
    begin, end = found.start[part.dag.edge_source[edges]], found.last_out[part.dag.edge_target[edges]]
    return Spans(begin, np.maximum(end, begin), found.fifo_capacity[edges] * word_bytes(dag, part, edges))


def word_bytes(dag: CanonicalDag, part: DagPart, edges: Int64) -> Int64:
    """Return the bytes of a word of the machine on some edges of a part."""
    width = -(-dag.edge_volume[part.edge[edges]] // np.maximum(part.dag.edge_volume[edges], 1))
    return np.asarray(width * dag.edge_element_bytes[part.edge[edges]])


def sums(row: Numbers, values: Int64 | Bool, count: int) -> Int64:
    """Return the sum of the values of each row, shape [count]."""
    found = np.zeros(count, dtype=np.int64)
    np.add.at(found, row, values)
    return found


def largest(row: Numbers, values: Int64, count: int) -> Int64:
    """Return the largest value of each row, 0 of those without any, shape [count]."""
    found = np.zeros(count, dtype=np.int64)
    np.maximum.at(found, row, values)
    return found


class MemoryEdges(Struct, frozen=True, eq=False):
    """The edges of a configuration that do not stream, and when they are used.

    Attributes:
        edge: numbers, ascending.
        is_read: whether a task of the configuration reads over it, shape [edges].
        is_written: whether a task of the configuration writes over it, shape [edges].
        reader: cycles in which the reading task starts and has ended, shape [2, edges].
        writer: the same of the writing task; of what is there before 0, shape [2, edges].
        work: cycles of the reading task, shape [edges].
        word_bytes: that it reads in a cycle, shape [edges].
        fifos: of the streams.
    """

    edge: Int64
    is_read: Bool
    is_written: Bool
    reader: Int64
    writer: Int64
    work: Int64
    word_bytes: Int64
    fifos: Spans


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


def fetches_of(dag: CanonicalDag, edges: MemoryEdges, keeper: Int64, is_all: Bool, reused: Int64) -> Fetches:
    """Return which reads have the same elements at about the same time.

    A task reads an element in each cycle of its work. Of two tasks that read the same elements in the same order one is
    never farther ahead than the cycles from the first start to the last end but for the work.

    Args:
        dag: the lowering, with volumes in elements.
        edges: of a configuration; the reads are those over which a task reads.
        keeper: what each read is from: a buffer, or the task that made it, shape [reads].
        is_all: whether a read has every element of what it reads from, shape [reads].
        reused: bytes that must be at hand so that a task that reads alone takes none twice, shape [reads].
    """
    edge, work, word = (column[edges.is_read] for column in (edges.edge, edges.work, edges.word_bytes))
    starts, ends = edges.reader[:, edges.is_read]
    size, distinct = (column[edge] * dag.edge_element_bytes[edge] for column in (dag.edge_volume, dag.edge_distinct))
    is_ordered, order, place = dag.is_ordered[edge], dag.edge_order[edge].astype(np.int64), dag.edge_first[edge]
    is_known = is_all | ((place >= 0) & is_ordered)
    apart = np.where(is_known, -1, np.arange(len(edge)))  # what is not known is like nothing
    partly = is_known & ~is_all
    keys = (np.where(partly, key, -1) for key in (place, order, size, distinct))
    _, footprint, _ = equal_rows([keeper, apart, *keys])
    by_time = np.lexsort((starts, footprint))
    of_read = np.empty(len(edge), dtype=np.int64)
    of_read[by_time] = _numbered(footprint[by_time], starts[by_time], ends[by_time])
    _, one = first_places(of_read)
    fetches = len(one)

    def are_alike(*columns: Int64 | Bool) -> Bool:
        same = np.ones(fetches, dtype=np.bool_)
        for column in columns:
            same[of_read[column != column[one][of_read]]] = False
        return same

    begin, end = starts[one].copy(), ends[one].copy()
    np.minimum.at(begin, of_read, starts)
    np.maximum.at(end, of_read, ends)
    several = np.bincount(of_read, minlength=fetches) > 1
    reader = dag.node_scope[dag.edge_target[edge]].astype(np.int64)
    shares = several & is_ordered[one] & are_alike(reader, order, size, word, work, is_ordered, place)
    window = np.where(shares, (end - begin - work[one] + 1) * word[one], 0)
    each = distinct[one]
    return Fetches(
        of_read=of_read,
        footprint=footprint[one],
        keeper=keeper[one],
        begin=begin,
        end=end,
        size=sums(of_read, size, fetches),
        distinct=each,
        once=size[one],
        window=window,
        rolling=np.where(shares | ~several, np.minimum(reused[one] + window, each), each),
    )


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
