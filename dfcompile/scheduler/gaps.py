"""Idle intervals of processing elements, in which tasks are put that come later."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable
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
        self._limits: Int64 = np.zeros((2, _FIRST_CAPACITY), dtype=np.int64)  # latest end, longest gap of each chunk
        self._end_of_all = 0  # no gap ends later

    @classmethod
    def of(cls, gaps: Iterable[Gap]) -> "GapIndex":
        """Return an index of many gaps; empty ones are ignored."""
        found, ordered = cls(), sorted(gap for gap in gaps if gap[0] < gap[1])
        size = _CHUNK // 2  # half full, as chunks are that were split
        found._chunks = [ordered[at : at + size] for at in range(0, len(ordered), size)]
        found._first = [chunk[0] for chunk in found._chunks]
        found._limits = np.zeros((2, max(len(found._chunks), _FIRST_CAPACITY)), dtype=np.int64)
        for position in range(len(found._chunks)):
            found._summarise(position)
        found._end_of_all = max((end for _, end, _ in ordered), default=0)
        return found

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
        if end > self._limits[0, position]:
            self._limits[0, position] = end
        if end - start > self._limits[1, position]:
            self._limits[1, position] = end - start
        if len(chunk) > _CHUNK:
            self._open_chunk(position + 1, chunk[_CHUNK // 2 :])
            del chunk[_CHUNK // 2 :]
            self._summarise(position)

    def book(self, ready: int, duration: int, latest: int, most: int) -> list[tuple[int, int]]:
        """Book ``duration`` cycles in each of some gaps, to begin from ``ready`` to ``latest``.

        Among the gaps that allow a begin at ``ready`` the one with the earliest start is taken; among these the one
        that ends first, then that of the lowest processing element. If there is none, the first later one is. Gaps that
        begin before the first one is used up are taken together: what is left of these comes after them.

        Returns:
            For each of up to ``most`` gaps the cycle in which its cycles begin, and its processing element.
        """
        booked: list[tuple[int, int]] = []
        while len(booked) < most and (found := self._find(ready, duration, latest)) is not None:
            position, place = found
            if len(booked) == most - 1:
                taken = [self._take(position, place)]
            else:
                end = min(max(self._chunks[position][place][0], ready) + duration, latest + 1)
                taken = self._take_before(end, position, (ready, duration), most - len(booked))
            for start, stop, pe in taken:
                begin = max(start, ready)
                self.add(start, begin, pe)
                self.add(begin + duration, stop, pe)
                booked.append((begin, pe))
        return booked

    def _take(self, position: int, place: int) -> Gap:
        """Take out one gap."""
        chunk, limits = self._chunks[position], self._limits
        gap = chunk.pop(place)
        if not chunk:
            self._remove_chunks([position])
        elif gap[1] == limits[0, position] or gap[1] - gap[0] == limits[1, position]:
            self._summarise(position)
        return gap

    def _take_before(self, end: int, position: int, asked: tuple[int, int], most: int) -> list[Gap]:
        """Take out the first gaps that fit of those that start before a cycle, up to so many.

        Args:
            end: that cycle.
            position: of the first chunk that has any.
            asked: ``ready`` and ``duration``, as `book` has them.
            most: of them.
        """
        ready, duration = asked
        limits = self._limits[:, position : bisect_left(self._first, (end,))]
        taken, empty = list[Gap](), list[int]()
        for at in (position + np.flatnonzero((limits[0] >= ready + duration) & (limits[1] >= duration))).tolist():
            chunk = self._chunks[at]
            fit = [gap for gap in chunk if gap[0] < end and gap[1] >= ready + duration and gap[1] - gap[0] >= duration][
                : most - len(taken)
            ]
            if len(fit) == len(chunk):
                empty.append(at)
            elif fit:
                gone = set(fit)
                chunk[:] = [gap for gap in chunk if gap not in gone]
                self._summarise(at)
            taken += fit
            if len(taken) == most:
                break
        self._remove_chunks(empty)
        return taken

    def _find(self, ready: int, duration: int, latest: int) -> tuple[int, int] | None:
        """Return the chunk of the gap that `book` takes first, and its place there."""
        if ready + duration > self._end_of_all:
            return None
        begun = bisect_left(self._first, (ready + 1,))  # chunks whose first gap is open at ``ready``
        found = self._search(0, (0, begun), ready, duration)
        if found is None and latest > ready:
            found = self._search(1, (begun, bisect_left(self._first, (latest + 1,))), ready, duration)
        return found if found is not None and self._chunks[found[0]][found[1]][0] <= latest else None

    def _search(self, limit: int, chunks: tuple[int, int], ready: int, duration: int) -> tuple[int, int] | None:
        """Return the chunk of the first gap that fits, and its place there.

        Args:
            limit: of chunks that decides: 0 the latest end, 1 the longest gap.
            chunks: the range that is searched.
            ready: as `book` has it.
            duration: as `book` has it.
        """
        wanted = ready + duration
        limits, least = self._limits[limit], duration if limit else wanted
        position, end = chunks
        while position < end:
            enough = limits[position:end] >= least
            step = int(enough.argmax())
            if not enough[step]:
                return None
            position += step
            if self._limits[1, position] >= duration:
                for place, (start, stop, _) in enumerate(self._chunks[position]):
                    if stop >= wanted and stop - start >= duration:
                        return position, place
                self._summarise(position)
            position += 1
        return None

    def _summarise(self, position: int) -> None:
        chunk = self._chunks[position]
        ends, lengths = [end for _, end, _ in chunk], [end - start for start, end, _ in chunk]
        self._limits[:, position] = max(ends), max(lengths)

    def _open_chunk(self, position: int, chunk: list[Gap]) -> None:
        count = len(self._chunks)
        if count == self._limits.shape[1]:
            self._limits = np.concatenate([self._limits, self._limits], axis=1)
        self._limits[:, position + 1 : count + 1] = self._limits[:, position:count]
        self._chunks.insert(position, chunk)
        self._first.insert(position, chunk[0])
        self._summarise(position)

    def _remove_chunks(self, positions: list[int]) -> None:
        for position in reversed(positions):
            count = len(self._chunks)
            self._limits[:, position : count - 1] = self._limits[:, position + 1 : count]
            del self._chunks[position], self._first[position]
