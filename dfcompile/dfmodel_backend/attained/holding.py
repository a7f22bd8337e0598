"""What of the data of a configuration SRAM holds, so that least is moved."""

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag.dag import Bool, Int8, Int64
from dfcompile.dfmodel_backend.attained.footprints import Fetches, Spans, sums
from dfcompile.dfmodel_backend.columns import Column
from dfcompile.distinct import distinct

_GRID = 4096  # cycles at which what is held may change while it is chosen; between them the most counts
_FEW = 64  # spans that are put in one by one if they do not fit together
_LARGEST_FIRST = 10_000  # spans: of more, what is large is put in slowly, one by one
KEPT = 0  # all elements are, from the start of the first task to the end of the last
ROLLING = 1  # what the tasks need again, or the last has yet to read
SHARED = 2  # what the last task has yet to read: what it reads again is fetched again


class Wholes(Struct, frozen=True, eq=False):
    """What may be held whole from its first access to its last: arrays, and what single tasks make.

    Attributes:
        spans: from first access to last, all that is written and fetched.
        is_array: whether each is an array, shape [wholes].
        moved: bytes of DRAM traffic if it is held, shape [wholes].
        written: bytes that are written to DRAM if it is not, shape [wholes].
    """

    spans: Spans
    is_array: Bool
    moved: Int64
    written: Int64


def hold(wholes: Wholes, fetches: Fetches, fifos: Spans, room: float) -> "Holding":
    """Choose what SRAM holds: first what saves most DRAM traffic per byte and cycle, as long as there is room.

    Tasks share streams first, as that takes little. Then comes what is fetched, and as a whole arrays whose parts
    overlap or that are made here, and what tasks make; then what may stay from one fetch to the next. If there is not
    room for all, two other orders are tried as well: arrays as a whole after all that; and, unless there is much, what
    saves most comes first, whatever it takes: small things first may leave too little room for it.

    Args:
        wholes: what may be held whole, by number of keeper.
        fetches: of it.
        fifos: what FIFOs take.
        room: bytes of SRAM.
    """
    first = Holding(wholes, fetches, fifos, room)
    if first.moved <= first.least:
        return first
    ways = [first]
    if len(fetches.size) + len(wholes.moved) <= _LARGEST_FIRST:
        ways.append(Holding(wholes, fetches, fifos, room, is_largest_first=True))
    if (first.wanted & wholes.is_array & ~first.is_whole).any():
        ways.append(Holding(wholes, fetches, fifos, room, are_arrays_first=False))
    return min(ways, key=lambda held: held.moved)


class Holding:
    """What SRAM holds.

    Attributes:
        wanted: which of `Wholes` are worth holding, shape [wholes].
        is_whole: which of them are held, shape [wholes].
        is_held: whether what each fetch brings is, until its last task has read it, shape [fetches].
        is_shared: whether the tasks of each fetch share a stream instead, shape [fetches].
        stays: whether what a fetch brings is held until the next of the same elements, which needs none then,
            shape [fetches].
        way: of each fetch that is held or shared `KEPT`, `ROLLING` or `SHARED`, shape [fetches].
        peak: the most bytes that are held at a time, FIFOs included.
        moved_by_fetch: bytes of DRAM traffic, shape [fetches].
        moved: bytes of DRAM traffic of all.
        least: what that would be with room for everything.
    """

    def __init__(
        self,
        wholes: Wholes,
        fetches: Fetches,
        fifos: Spans,
        room: float,
        *,
        are_arrays_first: bool = True,
        is_largest_first: bool = False,
    ) -> None:
        """Choose.

        Args:
            wholes: what may be held whole, by number of keeper.
            fetches: of it.
            fifos: what FIFOs take.
            room: bytes of SRAM.
            are_arrays_first: arrays as a whole come together with what is fetched of others, else if there is room
                after that.
            is_largest_first: what saves most comes first, else what saves most per byte and cycle.
        """
        self._wholes, self._fetches, self._is_largest_first = wholes, fetches, is_largest_first
        self._spans, self._rolling, self._windows = (
            Spans(fetches.begin, fetches.end, size) for size in (fetches.distinct, fetches.rolling, fetches.window)
        )
        self._next = np.flatnonzero(fetches.footprint[1:] == fetches.footprint[:-1])
        self._can_share = (fetches.window > 0) & (fetches.window < fetches.rolling)
        self._room = Room(fifos, Spans.joined(wholes.spans, self._spans), room)
        self.is_shared, self.is_held, self.stays = np.zeros((3, len(fetches.size)), dtype=np.bool_)
        self.is_whole = np.zeros(len(wholes.moved), dtype=np.bool_)
        is_first = np.ones(len(fetches.size), dtype=np.bool_)
        is_first[self._next + 1] = False
        least = sums(fetches.keeper[is_first], fetches.distinct[is_first], len(self.is_whole))
        best = np.minimum(np.where(self._can_share, fetches.once, fetches.size), fetches.distinct)
        # What each whole saves against the best of its fetches.
        self._whole_saves = sums(fetches.keeper, best, len(self.is_whole)) + wholes.written - wholes.moved
        self.wanted: Bool = (least + wholes.written > wholes.moved) & (self._whole_saves > 0)
        self.least = int(np.where(self.wanted, wholes.moved, least + wholes.written).sum())
        tried = self.wanted & (are_arrays_first | ~wholes.is_array)
        self._put(~tried[fetches.keeper], np.flatnonzero(tried))
        left = tried & ~self.is_whole
        if left.any():
            self._put(left[fetches.keeper], np.zeros(0, dtype=np.int64))
        self._put_links()
        if not are_arrays_first:
            self._put_wholes_instead(self._by_worth(self._whole_saves, wholes.spans, self.wanted & wholes.is_array))
        self.way: Int8 = np.where(self.is_shared, SHARED, np.where(self._is_kept(), KEPT, ROLLING)).astype(np.int8)
        self.peak = Spans.joined(fifos, wholes.spans.take(self.is_whole), self._taken()[0]).peak
        self.moved_by_fetch = np.where(self.is_whole[fetches.keeper], 0, self._moved_each())
        of_wholes = np.where(self.is_whole, wholes.moved, wholes.written)
        self.moved = int(self.moved_by_fetch.sum()) + int(of_wholes.sum())

    def _put(self, which: Bool, wholes: Int64) -> None:
        """Share streams of some fetches; then hold what they bring, and some wholes, what saves most first."""
        fetches, spans = self._fetches, self._spans
        wants = which & self._can_share
        self.is_shared |= self._room.put(
            self._windows, self._by_worth(fetches.size - fetches.once, self._windows, wants)
        )
        now = np.where(self.is_shared, fetches.once, fetches.size)
        more = Spans(spans.begin, spans.end, fetches.rolling - np.where(self.is_shared, fetches.window, 0))
        both = Spans.joined(more, self._wholes.spans.take(wholes))
        saved = np.concatenate([now - spans.size, self._whole_saves[wholes]])
        wanted = np.append(which & (now > spans.size), np.ones(len(wholes), dtype=np.bool_))
        is_in = self._room.put(both, self._by_worth(saved, both, wanted))
        self.is_held |= is_in[: len(now)]
        self.is_shared &= ~self.is_held
        self.is_whole[wholes] = is_in[len(now) :]

    def _put_wholes_instead(self, order: Int64) -> None:
        """Hold arrays as a whole where that moves less than what is held of them."""
        wholes, keeper, count = self._wholes, self._fetches.keeper, len(self.is_whole)
        moved = sums(keeper, self._moved_each(), count) + wholes.written
        parts, owner = self._taken()
        by_owner = np.argsort(owner, kind="stable")
        starts = np.searchsorted(owner[by_owner], np.arange(count + 1))
        better = order[moved[order] > wholes.moved[order]]
        self.is_whole |= self._room.put(wholes.spans, better, instead=(parts.take(by_owner), starts))
        own = self.is_whole[keeper]
        self.is_shared[own] = self.is_held[own] = self.stays[own] = False

    def _put_links(self) -> None:
        """Let what is fetched stay until it is needed again; what tasks read once is held for that."""
        fetches, spans, before = self._fetches, self._spans, self._next
        now = np.where(self.is_shared, fetches.once, fetches.size)
        able = (self.is_held | (now <= spans.size)) & ~self.is_whole[fetches.keeper]
        wants = able[before] & able[before + 1]
        is_kept = self.is_held & (fetches.rolling == spans.size)
        for is_held in (True, False):  # links between what is held first: they need no more than themselves
            both = is_kept[before] & is_kept[before + 1]
            # Of fetches of the same elements one begins before the one before it has ended, or after.
            gap = np.minimum(spans.end[before], spans.begin[before + 1])
            begin = np.where(is_kept[before], gap, spans.begin[before])
            end = np.where(is_kept[before + 1], spans.begin[before + 1], spans.end[before + 1])
            end = np.maximum(end, np.where(is_kept[before], begin, spans.end[before]))
            links = Spans(begin, end, spans.size[before])
            places = np.flatnonzero(wants & (both == is_held) & ~self.stays[before])
            is_in = self._room.put(links, places[np.argsort((links.end - begin)[places], kind="stable")])
            self.stays[before[is_in]] = True
            ends = distinct(np.concatenate([before[is_in], before[is_in] + 1]))
            self._room.release(self._windows, ends[self.is_shared[ends]])
            self._room.release(self._rolling, ends[self.is_held[ends] & ~is_kept[ends]])
            is_kept[ends] = self.is_held[ends] = True
            self.is_shared[ends] = False

    def _taken(self) -> tuple[Spans, Int64]:
        """Return what fetches take, and of what: those of the same elements that stay are one with the next."""
        kept = self._is_kept()
        shared, rolls, held = (np.flatnonzero(which) for which in (self.is_shared, self.is_held & ~kept, kept))
        is_first = np.ones(len(held), dtype=np.bool_)
        is_first[1:] = ~self.stays[held[:-1]]
        starts = np.flatnonzero(is_first)
        spans = self._spans.take(held)
        if len(held):
            end = np.maximum.reduceat(spans.end, starts)
            spans = Spans(spans.begin[starts], end, spans.size[starts])
        taken = Spans.joined(self._windows.take(shared), self._rolling.take(rolls), spans)
        return taken, self._fetches.keeper[np.concatenate([shared, rolls, held[starts]])]

    def _is_kept(self) -> Bool:
        """Return of which fetches all elements are held: where no less will do, or they stay."""
        stays = self.stays.copy()
        stays[1:] |= self.stays[:-1]
        return np.asarray(self.is_held & (stays | (self._fetches.rolling == self._fetches.distinct)))

    def _moved_each(self) -> Int64:
        fetches = self._fetches
        moved = np.where(self.is_held, fetches.distinct, np.where(self.is_shared, fetches.once, fetches.size))
        moved[1:][self.stays[:-1]] = 0
        return moved

    def _by_worth(self, saved: Int64, spans: Spans, wanted: Bool) -> Int64:
        """Return those that are wanted, first what saves most, or most per byte and cycle."""
        found = np.flatnonzero(wanted)
        worth: Column = saved[found].astype(float)
        if not self._is_largest_first:
            cost = spans.size * np.maximum(spans.end - spans.begin, 1)
            worth = worth / np.maximum(cost[found], 1)
        return found[np.argsort(-worth, kind="stable")]


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
        self._left: Column = np.full(len(cycles), room) - self._change(taken)

    def _places(self, spans: Spans) -> tuple[Int64, Int64]:
        """Return the first place of the grid that each span touches, and the one behind its last."""
        first = np.maximum(np.searchsorted(self._cycles, spans.begin, side="right") - 1, 0)
        return first, np.maximum(np.searchsorted(self._cycles, spans.end, side="left"), first)

    def _change(self, spans: Spans) -> Int64:
        return self._change_at(*self._places(spans), spans.size)

    def _change_at(self, first: Int64, behind: Int64, size: Int64) -> Int64:
        change = np.zeros(len(self._cycles) + 1, dtype=np.int64)
        np.add.at(change, first, size)
        np.add.at(change, behind, -size)
        return np.cumsum(change[:-1])

    def release(self, spans: Spans, which: Int64) -> None:
        """Give back what some spans took."""
        self._left = self._left + self._change(spans.take(which))

    def put(self, spans: Spans, order: Int64, instead: tuple[Spans, Int64] | None = None) -> Bool:
        """Put in spans one after another where they fit; return whether each is in.

        What fits together is put in together: twice as many each time, half as many where they do not fit, and few one
        by one.

        Args:
            spans: shape [spans].
            order: numbers of those that are put in.
            instead: what is in and leaves if a span is put in, ordered by the number of that span; and for each span
                the place of its first one, then the end, shape [spans + 1].
        """
        is_in = np.zeros(len(spans.size), dtype=np.bool_)
        freed = np.zeros(len(spans.size), dtype=np.int64)
        if instead is not None:
            freed[order] = np.diff(np.append(0, np.cumsum(instead[0].size))[instead[1]])[order]
        first, behind = self._places(spans)
        order, at, size = order.copy(), 0, len(order)
        while at < len(order):
            some = order[at : at + size]
            change = self._change_at(first[some], behind[some], spans.size[some])
            if instead is not None:
                change -= self._change(instead[0].take(_ranges(instead[1][some], instead[1][some + 1])))
            if (change <= self._left).all():
                self._left = self._left - change
                is_in[some] = True
                at, size = at + len(some), 2 * size
                continue
            fitting = some[self._least_left(first[some], behind[some]) + freed[some] >= spans.size[some]]
            at += len(some) - len(fitting)
            if len(fitting) > _FEW:
                order[at : at + len(fitting)], size = fitting, -(-len(fitting) // 2)
            else:
                self._put_one_by_one(is_in, fitting, (first, behind, spans.size), instead)
                at, size = at + len(fitting), _FEW
        return is_in

    def _put_one_by_one(
        self, is_in: Bool, some: Int64, spans: tuple[Int64, Int64, Int64], instead: tuple[Spans, Int64] | None
    ) -> None:
        """Put in some spans that fit, given as places of the grid and size, and note which are in."""
        left = self._left
        for number, begin, end, size in zip(some.tolist(), *(column[some].tolist() for column in spans), strict=True):
            if instead is not None:
                leaving = instead[0].take(np.arange(*instead[1][number : number + 2]))
                left = self._left + self._change(leaving)
            if left[begin : max(end, begin + 1)].min() >= size:
                left[begin:end] -= size
                self._left, is_in[number] = left, True

    def _least_left(self, first: Int64, behind: Int64) -> Column:
        """Return the least that is left from a place to another: of two runs of a power of two that cover it."""
        length = np.maximum(behind - first, 1)
        level = np.frexp(length)[1] - 1
        runs = _runs(self._left, int(level.max(initial=0)))
        last = np.maximum(first + length - (1 << level), first)
        least: Column = np.minimum(runs[level, first], runs[level, last])
        return least


def _ranges(first: Int64, behind: Int64) -> Int64:
    """Return the numbers of several ranges, one after another."""
    count = behind - first
    return np.asarray(np.arange(count.sum()) + np.repeat(first - np.cumsum(count) + count, count))


def _runs(values: Column, levels: int) -> Column:
    """Return the least of every 1, 2, 4 … neighbours from each value on, ``[level, value]``."""
    runs = [values]
    for level in range(levels):
        reach = 1 << level
        runs.append(np.minimum(runs[-1], np.append(runs[-1][reach:], np.full(min(reach, len(values)), np.inf))))
    return np.stack(runs)
