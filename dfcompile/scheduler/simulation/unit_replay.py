"""Replays one streaming unit, stretch by stretch, and leaps over what repeats; of tasks that are alike, one for all."""

from itertools import chain, pairwise
from operator import add
from typing import TypeAlias

from dfcompile.scheduler.simulation.access_sequence import Place
from dfcompile.scheduler.simulation.access_times import relax, step
from dfcompile.scheduler.simulation.plan import ends_come_in_turn
from dfcompile.scheduler.simulation.progress import Progress, cut, find_period, find_repetition
from dfcompile.scheduler.simulation.replay import FINISHED, NEVER, NOT_STARTED, UnitTimes
from dfcompile.scheduler.simulation.stretch import PeakMeter, StreamingUnit, Stretch, stalls
from dfcompile.scheduler.simulation.unthrottled import replay_unthrottled, runs_in_turn

Cycles: TypeAlias = tuple[int, ...]  # from which on each node may run


def without_twins(unit: StreamingUnit, release: Cycles) -> tuple[StreamingUnit, Cycles, tuple[int, ...]]:
    """Leave out all but the first of tasks that do the same at the same times.

    Twins have one streamed edge, to or from the same neighbour, who reads or writes their edges one after the other;
    they have the same volumes, pipelines and FIFOs, and wait for the same. Then times that suit one of them suit
    both: what the neighbour exchanges with the second it may exchange in the instant in which it did so with the
    first. These are all times, as there is one solution if nothing is stuck; and the whole unit is stuck only if this
    one is, since a circle of waits goes through it as well.

    Args:
        unit: the tasks.
        release: cycle from which on each of them may run.

    Returns:
        The unit of those that stand for others or for themselves, from when on each of them may run, and the number in
        it of the task that stands for each task of the whole unit.
    """
    node, edge = list(range(len(unit.nodes))), list(range(len(unit.edges)))
    # Whether a task has no other streamed edge.
    is_last = [len(inputs) + len(outputs) == 1 for inputs, outputs in zip(unit.inputs, unit.outputs, strict=True)]
    turns = (unit.capacity, unit.read_at, unit.write_at)
    for rows, neighbour in ((unit.inputs, unit.source), (unit.outputs, unit.target)):
        for before, after in chain.from_iterable(pairwise(row) for row in rows if len(row) > 1):
            one, other = neighbour[before], neighbour[after]
            if not (is_last[one] and is_last[other] and all(turn[before] == turn[after] for turn in turns)):
                continue
            if _are_alike(unit, release, one, other):
                node[other], edge[after] = node[one], edge[before]
    nodes = [number for number, first in enumerate(node) if number == first]
    if len(nodes) == len(node):
        return unit, release, tuple(node)
    place = {number: place for place, number in enumerate(nodes)}
    by = tuple(place[first] for first in node)
    edges = [number for number, first in enumerate(edge) if number == first]
    return _unit_of(unit, nodes, edges, by), tuple(release[number] for number in nodes), by


def _are_alike(unit: StreamingUnit, release: tuple[int, ...], one: int, other: int) -> bool:
    """Whether two tasks with the same neighbour, and no other one, have the same volumes, pipelines and waits."""
    return (
        unit.reads[one] == unit.reads[other]
        and unit.writes[one] == unit.writes[other]
        and unit.rows[one] == unit.rows[other]
        and unit.filling[one] == unit.filling[other]
        and unit.draining[one] == unit.draining[other]
        and release[one] == release[other]
        and unit.waits[one] == unit.waits[other]
    )


def _unit_of(unit: StreamingUnit, nodes: list[int], edges: list[int], by: tuple[int, ...]) -> StreamingUnit:
    """Return the part of a unit that has some of its nodes and edges; other nodes are ended by those in their place."""
    source, target = (tuple(by[ends[edge]] for edge in edges) for ends in (unit.source, unit.target))
    of_nodes = (unit.nodes, unit.reads, unit.writes, unit.filling, unit.draining)
    own, reads, writes, filling, draining = (tuple(column[node] for node in nodes) for column in of_nodes)
    of_edges = (unit.edges, unit.capacity, unit.read_at, unit.write_at, unit.forward)
    numbers, capacity, read_at, write_at, forward = (tuple(column[edge] for edge in edges) for column in of_edges)
    return StreamingUnit(
        nodes=own,
        edges=numbers,
        reads=reads,
        writes=writes,
        source=source,
        target=target,
        capacity=capacity,
        waits=tuple(tuple(dict.fromkeys(by[other] for other in unit.waits[node])) for node in nodes),
        rows=tuple(unit.rows[node] for node in nodes),
        read_at=read_at,
        write_at=write_at,
        forward=forward,
        hop_cycles=unit.hop_cycles,
        filling=filling,
        draining=draining,
    )


_FIRST_ELEMENTS = 64  # of the busiest task, in the first stretch
_MOST_ELEMENTS = 8192
_TRIES = 3  # stretches of one length before longer ones are tried
_FEWEST_STRETCHES = 4  # below, leaping cannot pay
_PART_ELEMENTS = 2**20  # of all tasks, in a stretch that is no whole round
_PART_HELD = 2  # at least so many for each place in a FIFO: places are remembered from stretch to stretch
_MOST_ROUND_ELEMENTS = 2**24  # of all tasks, in a round that is replayed as one stretch


def replay_unit(unit: StreamingUnit, release: tuple[int, ...], *, details: bool) -> UnitTimes:
    """Replay one unit.

    Args:
        unit: the tasks.
        release: cycle from which on each node may run, or ``NEVER``.
        details: whether to find stalls and peaks too; they are 0 without.
    """
    if not details and NEVER not in release:
        # Which of several edges a task waits at, twins do not share: details are those of the whole unit.
        few, begins, by = without_twins(unit, release)
        times = _replayed(few, begins, details=False)
        if not times.stuck:
            nothing = (0,) * len(unit.edges)
            start, end = (tuple(found[number] for number in by) for found in (times.start, times.end))
            return UnitTimes(start, end, nothing, nothing, nothing, ())
    return _replayed(unit, release, details=details)


def _replayed(unit: StreamingUnit, release: tuple[int, ...], *, details: bool) -> UnitTimes:
    if any(unit.waits) and NEVER not in release and runs_in_turn(unit):
        times = replay_unthrottled(unit, release, details=details)
        if times is not None:
            return times
    return _UnitReplay(unit, release, details=details).run()


class _UnitReplay:
    """The way through a unit, and the sums so far."""

    def __init__(self, unit: StreamingUnit, release: tuple[int, ...], *, details: bool) -> None:
        self._unit, self._details = unit, details
        self._ends_come_in_turn = ends_come_in_turn(unit)
        self._progress = Progress(unit, release)
        self._start = [NEVER] * len(unit.nodes)
        self._stalls = ([0] * len(unit.edges), [0] * len(unit.edges))  # of readers and of writers
        hand_over = not any(unit.waits)
        self._meters = [PeakMeter(capacity, unit.hop_cycles, hand_over=hand_over) for capacity in unit.capacity]
        self._busiest = max(*unit.reads, *unit.writes) // unit.rounds  # elements per round of the busiest task
        first_size = -(-_FIRST_ELEMENTS // max(self._busiest, 1))
        repeats = unit.rounds >= _FEWEST_STRETCHES * first_size
        self._first_size = first_size if repeats else unit.rounds
        elements = sum(unit.volume)
        self._parts = -(-elements // max(_PART_ELEMENTS, _PART_HELD * unit.held))
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
            ends = stretch.ends()
            self._account(stretch, ends, 0)
            self._progress.move_on(stretch, ends, places)
        return self._times()

    def _run_in_rounds(self) -> UnitTimes:
        """Replay stretches of whole rounds, and leap over those that repeat the ones before."""
        rounds = self._unit.rounds
        size, tries = self._first_size, 0
        done = 0
        before: Stretch | None = None
        while done < rounds:
            length = min(size, rounds - done)
            stretch = self._progress.stretch(self._after(done + length))
            if not self._simulate(stretch):
                return self._until_stuck()
            done += length
            ends = stretch.ends()
            repetition = find_repetition(before, stretch, ends, (rounds - done) // length)
            self._account(stretch, ends, repetition.count)
            done += repetition.count * length
            self._progress.move_on(stretch, ends, self._after(done), repetition)
            before = None if repetition.count or rounds - done < size else stretch
            tries = 0 if repetition.count else tries + 1
            if tries == _TRIES:
                size, tries, before = self._next_size(stretch, length), 0, None
        return self._times()

    def _until_stuck(self, part: int = 1) -> UnitTimes:
        """Replay a unit that has a deadlock from where it is as far as it gets.

        After each round all FIFOs are as empty as in the beginning: if rounds are replayed, a deadlock happens in the
        first stretch or never.
        """
        span = 1
        while True:
            places = self._after_span(part, span)
            stretch = self._progress.stretch(places)
            stuck = step(stretch)
            if FINISHED not in stuck or places == self._unit.whole:
                break
            span *= 2  # a task that has not ended may go on
        for node, place in enumerate(stuck):
            if self._start[node] == NEVER and place != NOT_STARTED:
                self._start[node] = max(stretch.first_start(node), NEVER)
        ended = map(add, stretch.ends(), self._unit.draining)
        end = [end if place == FINISHED else NEVER for end, place in zip(ended, stuck, strict=True)]
        nothing = (0,) * len(self._unit.edges)
        return UnitTimes(tuple(self._start), tuple(end), nothing, nothing, nothing, tuple(stuck))

    def _after_span(self, part: int, span: int) -> tuple[Place, ...]:
        if self._in_parts:
            return cut(self._unit, min(part - 1 + span, self._parts), self._parts)
        return self._after(min(self._first_size * span, self._unit.rounds))

    def _times(self) -> UnitTimes:
        read_stall, write_stall = map(tuple, self._stalls)
        peak = tuple(meter.peak for meter in self._meters)
        end = tuple(map(add, self._progress.clock, self._unit.draining))
        return UnitTimes(tuple(self._start), end, read_stall, write_stall, peak, ())

    def _next_size(self, stretch: Stretch, rounds: int) -> int:
        """Return a longer stretch, a multiple of the period that shows in the last one."""
        longer = rounds * 2
        if longer * self._busiest > _MOST_ELEMENTS:
            longer = rounds
        period = find_period(stretch, rounds)
        return -(-longer // period) * period

    def _after(self, rounds: int) -> tuple[Place, ...]:
        """Return how far all tasks are after a number of rounds."""
        whole = self._unit.rounds
        return tuple(Place(end.reads // whole * rounds, end.writes // whole * rounds) for end in self._unit.whole)

    def _simulate(self, stretch: Stretch) -> bool:
        """Fill in the access times; return whether there are any, or a deadlock."""
        if self._ends_come_in_turn and relax(stretch):
            return True
        return all(place == FINISHED for place in step(stretch))

    def _account(self, stretch: Stretch, ends: list[int], repetitions: int) -> None:
        unit = self._unit
        for node in range(len(unit.nodes)):
            starts = self._start[node] == NEVER
            if starts:
                self._start[node] = stretch.first_start(node)
            if self._details:
                for edge, cycles in stalls(stretch, node, starts=starts).items():
                    self._stalls[0 if unit.target[edge] == node else 1][edge] += cycles * (1 + repetitions)
        if not self._details:
            return
        lasting = [end - begin for end, begin in zip(ends, stretch.clock, strict=True)]
        for edge, meter in enumerate(self._meters):
            lasts = lasting[unit.source[edge]], lasting[unit.target[edge]]
            meter.add_repeated(stretch.puts(edge), stretch.reads(edge), 1 + repetitions, lasts)
