"""Everything that SRAM may hold while a configuration runs: all choices are looked at, for the one that moves least."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

import numpy as np

from dfcompile.dfmodel_backend.attained.footprints import Fetches, Spans
from dfcompile.dfmodel_backend.attained.holding import KEPT, ROLLING, SHARED, Wholes
from dfcompile.dfmodel_backend.attained.stores import NOT_HELD

_Span: TypeAlias = tuple[int, int, int]  # bytes from one cycle to before another


class TooManyError(Exception):
    """There are more mappings than may be looked at."""


@dataclass
class Looks:
    """How much may be looked at yet: a choice of what is held counts once, a schedule ten times."""

    left: int

    def take(self, count: int) -> None:
        """Take some.

        Raises:
            TooManyError: so much is not left.
        """
        if self.left < count:
            raise TooManyError
        self.left -= count


@dataclass(frozen=True)
class _Option:
    """What may be done with reads of the same elements, or with all of an array.

    Attributes:
        moved: bytes.
        spans: that SRAM holds.
        states: of each fetch: its number, whether it is held, whether its tasks share a stream, whether it stays for
            the next.
    """

    moved: int
    spans: tuple[_Span, ...]
    states: tuple[tuple[int, bool, bool, bool], ...] = ()


@dataclass(frozen=True)
class _Keeper:
    """What may be held of an array, or of what a task makes.

    Attributes:
        number: of it.
        whole: if it is held whole.
        written: bytes that are written to DRAM otherwise.
        reads: then, of each of its footprints.
    """

    number: int
    whole: _Option
    written: int
    reads: tuple[tuple[_Option, ...], ...]

    @property
    def least(self) -> int:
        """Bytes that are moved at least."""
        return min(self.whole.moved, self.written + sum(options[0].moved for options in self.reads))


class BestHolding:
    """What SRAM holds so that least is moved, as `Holding` says it; found by looking at all choices."""

    def __init__(self, wholes: Wholes, fetches: Fetches, fifos: Spans, room: float, limits: tuple[int, Looks]) -> None:
        """Look for what moves less than some bytes; if nothing does nothing is held.

        Args:
            wholes: what may be held whole, by number of keeper.
            fetches: of it.
            fifos: what FIFOs take.
            room: bytes of SRAM.
            limits: the bytes, and how much may be looked at.
        """
        self._fetches, self._fifos, self._room = fetches, _spans(fifos), room
        self._least_moved, self._looks = limits
        self._keepers = tuple(self._of(wholes, number) for number in range(len(wholes.moved)))
        least = [each.least for each in self._keepers]
        self._rest = [sum(least[number:]) for number in range(len(least) + 1)]
        cycles = sorted({end for one in self._all_spans() for end in one[:2]})
        self._cell = {cycle: number for number, cycle in enumerate(cycles)}
        self._load = [0] * (len(cycles) + 1)
        self._put(self._fifos, 1)
        self._best = tuple[_Option, ...]()
        self._try((), 0, 0)
        self.is_whole = np.zeros(len(wholes.moved), dtype=np.bool_)
        self.is_held, self.is_shared, self.stays = np.zeros((3, len(fetches.size)), dtype=np.bool_)
        for option in self._best:
            for keeper in self._keepers:
                self.is_whole[keeper.number] |= option is keeper.whole
            for fetch, *state in option.states:
                self.is_held[fetch], self.is_shared[fetch], self.stays[fetch] = state
        stays = self.stays.copy()
        stays[1:] |= self.stays[:-1]
        is_kept = self.is_held & (stays | (fetches.rolling == fetches.distinct))
        self.way = np.where(self.is_shared, SHARED, np.where(is_kept, KEPT, ROLLING)).astype(np.int8)
        self.peak = _peak([*self._fifos, *(span for option in self._best for span in option.spans)])
        moved = np.where(self.is_held, fetches.distinct, np.where(self.is_shared, fetches.once, fetches.size))
        moved[1:][self.stays[:-1]] = 0
        self.moved_by_fetch = np.where(self.is_whole[fetches.keeper], 0, moved)

    def _of(self, wholes: Wholes, number: int) -> _Keeper:
        (span,) = _spans(wholes.spans.take(np.array([number])))
        own = np.flatnonzero(self._fetches.keeper == number)
        footprints = self._fetches.footprint[own]
        chains = [own[footprints == footprint].tolist() for footprint in dict.fromkeys(footprints.tolist())]
        reads = tuple(tuple(sorted(self._options(chain), key=lambda option: option.moved)) for chain in chains)
        return _Keeper(number, _Option(int(wholes.moved[number]), (span,)), int(wholes.written[number]), reads)

    def _options(self, fetches: list[int]) -> Iterator[_Option]:
        """Yield what may be done with fetches of the same elements, in order of time."""
        data, last = self._fetches, len(fetches) - 1
        for ways in product((NOT_HELD, KEPT, SHARED), repeat=len(fetches)):
            held = [way == KEPT for way in ways]
            may_stay = (
                (False, True) if at < last and held[at] and held[at + 1] else (False,) for at in range(last + 1)
            )
            if any(way == SHARED and not data.window[fetch] > 0 for way, fetch in zip(ways, fetches, strict=True)):
                continue
            for stays in product(*may_stay):
                moved, spans = 0, list[_Span]()
                for at, (fetch, way) in enumerate(zip(fetches, ways, strict=True)):
                    begin, end = int(data.begin[fetch]), int(data.end[fetch])
                    was_there = at > 0 and stays[at - 1]
                    if way == NOT_HELD:
                        moved += int(data.size[fetch])
                    elif way == SHARED:
                        moved += int(data.once[fetch])
                        spans.append((begin, end, int(data.window[fetch])))
                    elif was_there:
                        first, ended, size = spans[-1]
                        spans[-1] = first, max(ended, end), size
                    else:
                        moved += int(data.distinct[fetch])
                        size = data.distinct[fetch] if stays[at] else data.rolling[fetch]
                        spans.append((begin, end, int(size)))
                states = zip(fetches, held, (way == SHARED for way in ways), stays, strict=True)
                yield _Option(moved, tuple(spans), tuple(states))

    def _all_spans(self) -> Iterator[_Span]:
        yield from self._fifos
        for keeper in self._keepers:
            for option in (keeper.whole, *(option for options in keeper.reads for option in options)):
                yield from option.spans

    def _put(self, spans: Sequence[_Span], times: int) -> None:
        for begin, end, size in spans:
            for cell in range(self._cell[begin], self._cell[end]):
                self._load[cell] += times * size

    def _try(self, taken: tuple[_Option, ...], moved: int, number: int) -> None:
        """Look at all choices for keepers from one on."""
        self._looks.take(1)
        if moved + self._rest[number] >= self._least_moved:
            return
        if number == len(self._keepers):
            self._least_moved, self._best = moved, taken
            return
        keeper = self._keepers[number]
        for option in self._fitting((keeper.whole,)):
            self._try((*taken, option), moved + option.moved, number + 1)
        self._try_reads(taken, moved + keeper.written, number, 0)

    def _try_reads(self, taken: tuple[_Option, ...], moved: int, number: int, read: int) -> None:
        """Look at all choices for reads of a keeper from one on."""
        reads = self._keepers[number].reads
        rest = sum(options[0].moved for options in reads[read:]) + self._rest[number + 1]
        if moved + rest >= self._least_moved:
            return
        if read == len(reads):
            self._try(taken, moved, number + 1)
            return
        for option in self._fitting(reads[read]):
            self._try_reads((*taken, option), moved + option.moved, number, read + 1)

    def _fitting(self, options: Sequence[_Option]) -> Iterator[_Option]:
        """Yield the options that there is room for; while one is looked at it is put in."""
        for option in options:
            self._put(option.spans, 1)
            if max(self._load) <= self._room:
                yield option
            self._put(option.spans, -1)


def _spans(spans: Spans) -> list[_Span]:
    return list(zip(spans.begin.tolist(), spans.end.tolist(), spans.size.tolist(), strict=True))


def _peak(spans: Sequence[_Span]) -> int:
    return Spans(*np.array(spans, dtype=np.int64).reshape(-1, 3).T).peak
