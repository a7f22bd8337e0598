"""Idle gaps of processing elements, indexed so that a task finds the earliest one that fits."""

from bisect import bisect_left, bisect_right, insort
from typing import TypeAlias

import numpy as np

from dfcompile.canonical_dag.dag import Int64

_CHUNK = 64
_FIRST_CAPACITY = 64  # chunks


Gap: TypeAlias = tuple[int, int, int]  # start, end and element of an idle interval ``[start, end)``, in cycles


class GapIndex:
    """Gaps in order of their start, in chunks with a limit to their latest end and one to their longest gap.

    In a chunk whose gaps all start in time, one that ends late enough fits; in a chunk whose gaps all start later, one
    that is long enough. So a search compares two columns with a number each, and besides the chunk that it finds looks
    into the one in between. With G gaps that is O(G / chunk) comparisons by NumPy, some microseconds for a million
    gaps. A limit that is too high since a gap was taken is lowered where it misleads a search.
    """

    def __init__(self) -> None:
        self._chunks: list[list[Gap]] = []
        self._first: list[tuple[int, ...]] = []  # each chunk's first gap, or one that was it
        self._latest_end: Int64 = np.zeros(_FIRST_CAPACITY, dtype=np.int64)
        self._longest: Int64 = np.zeros(_FIRST_CAPACITY, dtype=np.int64)
        self._end_of_all = 0  # no gap ends later

    def add(self, start: int, end: int, pe: int) -> None:
        """Add an idle interval of a processing element; an empty one is ignored."""
        if start >= end:
            return
        gap = (start, end, pe)
        if end > self._end_of_all:
            self._end_of_all = end
        if not self._chunks:
            self._open_chunk(0, [gap])
            return
        position = max(bisect_right(self._first, gap) - 1, 0)
        chunk = self._chunks[position]
        insort(chunk, gap)
        if gap < self._first[position]:
            self._first[position] = gap
        if end > self._latest_end[position]:
            self._latest_end[position] = end
        if end - start > self._longest[position]:
            self._longest[position] = end - start
        if len(chunk) > _CHUNK:
            self._open_chunk(position + 1, chunk[_CHUNK // 2 :])
            del chunk[_CHUNK // 2 :]
            self._summarise(position)

    def take(self, ready: int, duration: int, latest: int) -> Gap | None:
        """Take out the gap in which ``duration`` cycles can begin earliest, from ``ready`` to ``latest``.

        Among the gaps that allow a begin at ``ready`` the one with the earliest start is taken; among these the one
        that ends first, then that of the lowest processing element.
        """
        if ready + duration > self._end_of_all:
            return None
        begun = bisect_left(self._first, (ready + 1,))  # chunks whose first gap is open at ``ready``
        found = self._search(self._latest_end, (0, begun), ready, duration)
        if found is None and latest > ready:
            found = self._search(self._longest, (begun, bisect_left(self._first, (latest + 1,))), ready, duration)
        if found is None:
            return None
        position, place = found
        chunk = self._chunks[position]
        if chunk[place][0] > latest:
            return None
        gap = chunk.pop(place)
        if not chunk:
            self._close_chunk(position)
        return gap

    def _search(self, limits: Int64, chunks: tuple[int, int], ready: int, duration: int) -> tuple[int, int] | None:
        """Return the chunk of the first gap that fits, and its place there.

        Args:
            limits: latest end or longest gap of chunks, whichever decides.
            chunks: the range that is searched.
            ready: as `take` has it.
            duration: as `take` has it.
        """
        wanted = ready + duration
        least = wanted if limits is self._latest_end else duration
        position, end = chunks
        while position < end:
            enough = limits[position:end] >= least
            step = int(enough.argmax())
            if not enough[step]:
                return None
            position += step
            if self._longest[position] >= duration:
                for place, (start, stop, _) in enumerate(self._chunks[position]):
                    if stop >= wanted and stop - start >= duration:
                        return position, place
                self._summarise(position)
            position += 1
        return None

    def _summarise(self, position: int) -> None:
        chunk = self._chunks[position]
        self._latest_end[position] = max([end for _, end, _ in chunk])
        self._longest[position] = max([end - start for start, end, _ in chunk])

    def _open_chunk(self, position: int, chunk: list[Gap]) -> None:
        count = len(self._chunks)
        if count == len(self._longest):
            self._latest_end, self._longest = (np.resize(column, 2 * count) for column in self._columns())
        for column in self._columns():
            column[position + 1 : count + 1] = column[position:count]
        self._chunks.insert(position, chunk)
        self._first.insert(position, chunk[0])
        self._summarise(position)

    def _close_chunk(self, position: int) -> None:
        count = len(self._chunks)
        for column in self._columns():
            column[position : count - 1] = column[position + 1 : count]
        del self._chunks[position], self._first[position]

    def _columns(self) -> tuple[Int64, Int64]:
        return self._latest_end, self._longest
