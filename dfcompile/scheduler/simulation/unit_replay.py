"""Replays one streaming unit, stretch by stretch, and leaps over what repeats."""

from msgspec import Struct

from dfcompile.records import replace
from dfcompile.scheduler.simulation.access_sequence import Place
from dfcompile.scheduler.simulation.cuts import cut
from dfcompile.scheduler.simulation.occupancy import PeakMeter
from dfcompile.scheduler.simulation.progress import Progress
from dfcompile.scheduler.simulation.relaxation import relax
from dfcompile.scheduler.simulation.repetition import find_period, find_repetition
from dfcompile.scheduler.simulation.result import NEVER
from dfcompile.scheduler.simulation.stalls import stalls
from dfcompile.scheduler.simulation.stepping import FINISHED, NOT_STARTED, step
from dfcompile.scheduler.simulation.stretch import StreamingUnit, Stretch
from dfcompile.scheduler.simulation.turns import ends_come_in_turn
from dfcompile.scheduler.simulation.twins import without_twins
from dfcompile.scheduler.simulation.unthrottled import replay_unthrottled, runs_in_turn

_FIRST_ELEMENTS = 64  # of the busiest task, in the first stretch
_MOST_ELEMENTS = 8192
_TRIES = 3  # stretches of one length before longer ones are tried
_FEWEST_STRETCHES = 4  # below, leaping cannot pay
_PART_ELEMENTS = 2**20  # of all tasks, in a stretch that is no whole round
_PART_HELD = 2  # at least so many for each place in a FIFO: places are remembered from stretch to stretch
_MOST_ROUND_ELEMENTS = 2**24  # of all tasks, in a round that is replayed as one stretch


class UnitTimes(Struct, frozen=True):
    """When the tasks of a unit run, and where they wait.

    Attributes:
        start: cycle of each node's first read (of a node without streamed inputs: from which on it may run).
        end: cycle in which each node has ended.
        read_stall: cycles after its start that the reader of each edge waited for elements.
        write_stall: cycles that the writer of each edge waited for a place.
        peak: most elements in the FIFO of each edge.
        stuck: of a deadlock, where each node is stuck: an edge, ``FINISHED`` or ``NOT_STARTED``; else empty. Starts and
            ends that do not happen are ``NEVER`` then, stalls and peaks 0.
    """

    start: tuple[int, ...]
    end: tuple[int, ...]
    read_stall: tuple[int, ...]
    write_stall: tuple[int, ...]
    peak: tuple[int, ...]
    stuck: tuple[int, ...]

    def later(self, cycles: int) -> "UnitTimes":
        """Return the times of a unit of which every node may run so many cycles later."""
        start, end = (
            tuple(NEVER if time == NEVER else time + cycles for time in times) for times in (self.start, self.end)
        )
        return replace(self, start=start, end=end)


def replay_unit(unit: StreamingUnit, release: tuple[int, ...], *, details: bool) -> UnitTimes:
    """Replay one unit.

    Args:
        unit: the tasks.
        release: cycle from which on each node may run, or ``NEVER``.
        details: whether to find stalls and peaks too; they are 0 without.
    """
    if not details and NEVER not in release:
        # Which of several edges a task waits at, twins do not share: details are those of the whole unit.
        represented = without_twins(unit, release)
        times = _replayed(represented.unit, represented.release, details=False)
        if not times.stuck:
            nothing = tuple(0 for _ in unit.edges)
            start, end = represented.spread(times.start), represented.spread(times.end)
            return UnitTimes(start, end, nothing, nothing, nothing, ())
    return _replayed(unit, release, details=details)


def _replayed(unit: StreamingUnit, release: tuple[int, ...], *, details: bool) -> UnitTimes:
    if any(unit.waits) and NEVER not in release and runs_in_turn(unit):
        found = _if_never_full(unit, release, details=details)
        if found is not None:
            return found
    return _UnitReplay(unit, release, details=details).run()


def _if_never_full(unit: StreamingUnit, release: tuple[int, ...], *, details: bool) -> UnitTimes | None:
    """Replay a unit as if its FIFOs were never full; return ``None`` if one of them would be."""
    bounded = [edge for edge in range(len(unit.edges)) if unit.is_bounded(edge)]
    found = replay_unthrottled(unit, release, details=details or bool(bounded))
    if any(found.peak[edge] > unit.capacity[edge] for edge in bounded):
        return None
    nothing = tuple(0 for _ in unit.edges)
    read_stall, peak = (tuple(found.read_stall), tuple(found.peak)) if details else (nothing, nothing)
    return UnitTimes(tuple(found.start), tuple(found.end), read_stall, nothing, peak, ())


class _UnitReplay:
    """The way through a unit, and the sums so far."""

    def __init__(self, unit: StreamingUnit, release: tuple[int, ...], *, details: bool) -> None:
        self._unit = unit
        self._details = details
        self._ends_come_in_turn = ends_come_in_turn(unit)
        self._progress = Progress(unit, release)
        self._start: list[int | None] = [None for _ in unit.nodes]
        self._stalls = ([0] * len(unit.edges), [0] * len(unit.edges))  # of readers and of writers
        hand_over = not any(unit.waits)
        self._meters = [PeakMeter(capacity, hand_over=hand_over) for capacity in unit.capacity]
        elements = sum(unit.volume(edge) for edge in range(len(unit.edges)))
        held = sum(unit.capacity[edge] for edge in range(len(unit.edges)) if unit.is_bounded(edge))
        self._parts = -(-elements // max(_PART_ELEMENTS, _PART_HELD * held))
        repeats = unit.rounds >= _FEWEST_STRETCHES * -(-_FIRST_ELEMENTS // max(self._busiest(), 1))
        stretch_elements = elements // unit.rounds if repeats else elements
        self._in_parts = hand_over and stretch_elements > (_MOST_ROUND_ELEMENTS if repeats else _PART_ELEMENTS)

    def run(self) -> UnitTimes:
        if NEVER in self._progress.clock:
            return self._until_stuck()
        return self._run_in_parts() if self._in_parts else self._run_in_rounds()

    def _run_in_parts(self) -> UnitTimes:
        """Replay stretches of about equal length, whatever repeats."""
        for part in range(1, self._parts + 1):
            places = cut(self._unit, part, self._parts)
            stretch = self._progress.stretch(places)
            if not self._simulate(stretch):
                return self._until_stuck(part)
            ends = self._ends(stretch)
            self._account(stretch, ends, 0)
            self._progress.move_on(stretch, ends, places)
        return self._times()

    def _run_in_rounds(self) -> UnitTimes:
        """Replay stretches of whole rounds, and leap over those that repeat the ones before."""
        rounds = self._unit.rounds
        size, tries = self._first_size(), 0
        done = 0
        before: Stretch | None = None
        while done < rounds:
            length = min(size, rounds - done)
            stretch = self._progress.stretch(self._after(done + length))
            if not self._simulate(stretch):
                return self._until_stuck()
            done += length
            ends = self._ends(stretch)
            found = find_repetition(self._unit, before, stretch, ends, (rounds - done) // length)
            self._account(stretch, ends, found.count)
            done += found.count * length
            self._progress.move_on(stretch, ends, self._after(done), found)
            before = None if found.count or rounds - done < size else stretch
            tries = 0 if found.count else tries + 1
            if tries == _TRIES:
                size, tries, before = self._next_size(stretch, length), 0, None
        return self._times()

    def _until_stuck(self, part: int = 1) -> UnitTimes:
        """Replay a unit that has a deadlock from where it is as far as it gets.

        After each round all FIFOs are as empty as in the beginning: if rounds are replayed, a deadlock happens in the
        first stretch or never.
        """
        unit = self._unit
        whole = tuple(Place(reads, writes) for reads, writes in zip(unit.reads, unit.writes, strict=True))
        span = 1
        while True:
            places = self._after_span(part, span)
            stretch = self._progress.stretch(places)
            stuck = step(unit, stretch)
            if FINISHED not in stuck or places == whole:
                break
            span *= 2  # a task that has not ended may go on
        ends = self._ends(stretch)
        nothing = tuple(0 for _ in unit.edges)
        return UnitTimes(
            tuple(self._start_until_stuck(stretch, node, place) for node, place in enumerate(stuck)),
            tuple(end if place == FINISHED else NEVER for end, place in zip(ends, stuck, strict=True)),
            nothing,
            nothing,
            nothing,
            tuple(stuck),
        )

    def _after_span(self, part: int, span: int) -> tuple[Place, ...]:
        if self._in_parts:
            return cut(self._unit, min(part - 1 + span, self._parts), self._parts)
        return self._after(min(self._first_size() * span, self._unit.rounds))

    def _start_until_stuck(self, stretch: Stretch, node: int, place: int) -> int:
        start = self._start[node]
        if start is None:
            start = NEVER if place == NOT_STARTED else self._first_start(stretch, node)
        return NEVER if start is None or start < 0 else start

    def _times(self) -> UnitTimes:
        return UnitTimes(
            tuple(NEVER if start is None else start for start in self._start),
            tuple(self._progress.clock),
            tuple(self._stalls[0]),
            tuple(self._stalls[1]),
            tuple(meter.peak for meter in self._meters),
            (),
        )

    def _busiest(self) -> int:
        """Elements per round of the busiest task."""
        return max(*self._unit.reads, *self._unit.writes) // self._unit.rounds

    def _first_size(self) -> int:
        size = -(-_FIRST_ELEMENTS // max(self._busiest(), 1))
        return size if self._unit.rounds >= _FEWEST_STRETCHES * size else self._unit.rounds

    def _next_size(self, stretch: Stretch, rounds: int) -> int:
        """Return a longer stretch, a multiple of the period that shows in the last one."""
        longer = rounds * 2
        if longer * self._busiest() > _MOST_ELEMENTS:
            longer = rounds
        period = find_period(len(self._unit.edges), stretch, rounds)
        return -(-longer // period) * period

    def _after(self, rounds: int) -> tuple[Place, ...]:
        """Return how far all tasks are after a number of rounds."""
        whole = self._unit.rounds
        return tuple(
            Place(reads // whole * rounds, writes // whole * rounds)
            for reads, writes in zip(self._unit.reads, self._unit.writes, strict=True)
        )

    def _simulate(self, stretch: Stretch) -> bool:
        """Fill in the access times; return whether there are any, or a deadlock."""
        if self._ends_come_in_turn and relax(self._unit, stretch):
            return True
        return all(place == FINISHED for place in step(self._unit, stretch))

    def _ends(self, stretch: Stretch) -> list[int]:
        return [stretch.end(self._unit, node) for node in range(len(self._unit.nodes))]

    def _first_start(self, stretch: Stretch, node: int) -> int | None:
        """Return when a node has read its first element of every streamed input, ``None`` if not in this stretch."""
        inputs = self._unit.inputs[node]
        if not inputs:
            return stretch.clock[node]
        return int(stretch.reads(inputs[-1])[0]) if stretch.sequences[node].reads else None

    def _account(self, stretch: Stretch, ends: list[int], repetitions: int) -> None:
        unit = self._unit
        for node, end in enumerate(ends):
            starts = self._start[node] is None
            if starts:
                self._start[node] = self._first_start(stretch, node)
            if self._details:
                found = stalls(unit, stretch, node, end, starts=starts)
                for edge, cycles in found.items():
                    self._stalls[0 if unit.target[edge] == node else 1][edge] += cycles * (1 + repetitions)
        if not self._details:
            return
        lasting = [end - begin for end, begin in zip(ends, stretch.clock, strict=True)]
        for edge, meter in enumerate(self._meters):
            lasts = lasting[unit.source[edge]], lasting[unit.target[edge]]
            meter.add_repeated(stretch.puts(edge), stretch.reads(edge), 1 + repetitions, lasts)
