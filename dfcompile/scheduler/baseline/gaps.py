"""Idle gaps of processing elements, indexed so that a task finds the earliest one that fits."""

from bisect import bisect_right, insort
from typing import NamedTuple

_CHUNK = 256


class Gap(NamedTuple):
    """An idle interval ``[start, end)`` of a processing element, in cycles."""

    start: int
    end: int
    pe: int


class GapIndex:
    """Gaps in order of their start, in chunks that know their latest end and their longest gap.

    A search skips chunks without a fitting gap: with G gaps it takes O(G / chunk + chunk) steps, an insertion
    the same.
    """

    def __init__(self) -> None:
        self._chunks: list[list[Gap]] = []
        self._first: list[int] = []  # start of each chunk's first gap
        self._latest_end: list[int] = []
        self._longest: list[int] = []

    def add(self, gap: Gap) -> None:
        """Add a gap; an empty one is ignored."""
        if gap.start >= gap.end:
            return
        if not self._chunks:
            self._chunks.append([gap])
            self._first.append(gap.start)
            self._latest_end.append(gap.end)
            self._longest.append(gap.end - gap.start)
            return
        position = max(bisect_right(self._first, gap.start) - 1, 0)
        chunk = self._chunks[position]
        insort(chunk, gap)
        if len(chunk) > _CHUNK:
            self._chunks[position : position + 1] = [chunk[: _CHUNK // 2], chunk[_CHUNK // 2 :]]
            for column in (self._first, self._latest_end, self._longest):
                column.insert(position, 0)
            self._summarise(position)
            self._summarise(position + 1)
            return
        self._first[position] = chunk[0].start
        self._latest_end[position] = max(self._latest_end[position], gap.end)
        self._longest[position] = max(self._longest[position], gap.end - gap.start)

    def remove(self, gap: Gap) -> None:
        """Remove a gap that is there."""
        position = max(bisect_right(self._first, gap.start) - 1, 0)
        while gap not in self._chunks[position]:
            position -= 1  # equal starts may span chunks
        chunk = self._chunks[position]
        chunk.remove(gap)
        if chunk:
            self._first[position] = chunk[0].start
            if gap.end == self._latest_end[position] or gap.end - gap.start == self._longest[position]:
                self._summarise(position)
            return
        for column in (self._chunks, self._first, self._latest_end, self._longest):
            del column[position]

    def find(self, ready: int, duration: int) -> Gap | None:
        """Return the gap in which ``duration`` cycles can begin earliest, not before ``ready``.

        Among the gaps that allow a begin at ``ready`` the one with the earliest start is taken.
        """
        for position, chunk in enumerate(self._chunks):
            if self._latest_end[position] < ready + duration or self._longest[position] < duration:
                continue
            for gap in chunk:
                if max(gap.start, ready) + duration <= gap.end:
                    return gap
        return None

    def _summarise(self, position: int) -> None:
        chunk = self._chunks[position]
        self._first[position] = chunk[0].start
        self._latest_end[position] = max([end for _, end, _ in chunk])
        self._longest[position] = max([end - start for start, end, _ in chunk])
