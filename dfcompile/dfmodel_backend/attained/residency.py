"""What SRAM holds while a configuration runs, from which cycle to which, and what that saves in DRAM traffic."""

from collections.abc import Iterator

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag.dag import Bool, Int64
from dfcompile.distinct import distinct

_GRID = 2048  # cycles at which what is held may change while it is chosen; between them the most counts
_TRIES = 4096  # to put in some of many spans: some tenths of a second
_LOOKS = 16  # tries after which those that do not fit any more are left out


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


def sums(row: Int64, values: Int64 | Bool, count: int) -> Int64:
    """Return the sum of the values of each row, shape [count]."""
    found = np.zeros(count, dtype=np.int64)
    np.add.at(found, row, values)
    return found


class Room:
    """Bytes of SRAM that are left, cycle by cycle of a grid."""

    def __init__(self, taken: Spans, wanted: Spans, room: float) -> None:
        """Begin with what is taken in any case.

        Args:
            taken: by FIFOs.
            wanted: all that may be put in.
            room: bytes of SRAM.
        """
        both = Spans.joined(taken, wanted)
        cycles, place = np.unique(np.concatenate([both.begin, both.end, [0]]), return_inverse=True)
        if len(cycles) > _GRID:  # those stay at which most begins or ends, in bytes and cycles
            weight = np.append(np.tile(both.size * (both.end - both.begin).astype(float), 2), np.inf)
            heaviest = np.argsort(-np.bincount(place, weight), kind="stable")[: _GRID - 1]
            cycles = distinct(np.append(cycles[heaviest], cycles[-1]))
        self._cycles = cycles
        self._left = np.full(len(cycles), room)
        self._left = self._left - self._change(taken, np.arange(len(taken.size)))

    def _places(self, spans: Spans) -> tuple[Int64, Int64]:
        """Return the first place of the grid that each span touches, and the one behind its last."""
        first = np.searchsorted(self._cycles, spans.begin, side="right") - 1
        return np.maximum(first, 0), np.searchsorted(self._cycles, spans.end, side="left")

    def _change(self, spans: Spans, which: Int64) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        first, behind = self._places(spans.take(which))
        change = np.zeros(len(self._cycles) + 1, dtype=np.int64)
        some = spans.size[which]
        np.add.at(change, first, some)
        np.add.at(change, np.maximum(behind, first), -some)
        return np.cumsum(change[:-1])

    def release(self, spans: Spans, which: Int64) -> None:
        """Give back what some spans took."""
        self._left = self._left + self._change(spans, which)

    def put(self, spans: Spans, order: Int64, instead: tuple[Spans, Int64] | None = None) -> Bool:
        """Put in spans one after another where they fit; return whether each is in.

        What fits together is put in together: twice as many each time, half as many where they do not fit.

        Args:
            spans: shape [spans].
            order: numbers of those that are put in.
            instead: what is in and leaves if a span is put in, ordered by the number of that span; and for each span
                the place of its first one, then the end, shape [spans + 1].
        """
        is_in = np.zeros(len(spans.size), dtype=np.bool_)
        size, looked = max(len(order), 1), 0
        freed = np.zeros(len(spans.size), dtype=np.int64)
        if instead is not None:
            freed[order] = np.diff(np.append(0, np.cumsum(instead[0].size))[instead[1]])[order]
        for number in range(_TRIES):
            some = order[:size]
            if not len(some):
                break
            change = self._change(spans, some)
            if instead is not None:
                change -= self._change(instead[0], _ranges(instead[1][some], instead[1][some + 1]))
            if (change <= self._left).all():
                self._left = self._left - change
                is_in[some] = True
                order, size = order[size:], 2 * size
                continue
            size = -(-len(some) // 2)
            if len(some) == 1:
                order = order[1:]
            if number >= looked:  # now and then: it looks at all of them
                fits = self._least_left(spans, order) + freed[order] >= spans.size[order]
                order, looked = order[fits], number + _LOOKS
        return is_in

    def _least_left(self, spans: Spans, which: Int64) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """Return the least that is left while each span lasts: of two runs of a power of two that cover it."""
        first, behind = self._places(spans.take(which))
        length = np.maximum(behind - first, 1)
        level = np.frexp(length)[1] - 1
        found = np.empty(len(which))
        for number, runs in enumerate(_runs(self._left)):
            at = np.flatnonzero(level == number)
            last = np.maximum(first[at] + length[at] - (1 << number), first[at])
            found[at] = np.minimum(runs[first[at]], runs[np.minimum(last, len(runs) - 1)])
        return found


def _ranges(first: Int64, behind: Int64) -> Int64:
    """Return the numbers of several ranges, one after another."""
    count = behind - first
    found: Int64 = np.arange(count.sum()) + np.repeat(first - np.cumsum(count) + count, count)
    return found


def _runs(
    values: np.ndarray[tuple[int], np.dtype[np.float64]],
) -> Iterator[np.ndarray[tuple[int], np.dtype[np.float64]]]:
    """Yield the least of every 1, 2, 4 … neighbours."""
    runs, reach = values, 1
    while True:
        yield runs
        if len(runs) <= reach:
            return
        runs = np.minimum(runs[:-reach], runs[reach:])
        reach *= 2
