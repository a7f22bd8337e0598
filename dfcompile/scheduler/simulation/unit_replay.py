"""Replays one streaming unit, stretch by stretch, and leaps over what repeats."""

from dataclasses import dataclass

import numpy as np

from dfcompile.canonical_dag.dag import Int64
from dfcompile.scheduler.simulation.occupancy import Traffic, peak_occupancy
from dfcompile.scheduler.simulation.program import Program, task_program
from dfcompile.scheduler.simulation.relaxation import relax
from dfcompile.scheduler.simulation.repetition import Repetition, find_period, find_repetition
from dfcompile.scheduler.simulation.result import NEVER
from dfcompile.scheduler.simulation.stepping import FINISHED, NOT_STARTED, step
from dfcompile.scheduler.simulation.stretch import LONG_AGO, StreamingUnit, Stretch

_FIRST_ELEMENTS = 64  # of the busiest task, in the first stretch
_MOST_ELEMENTS = 8192
_TRIES = 3  # stretches of one length before longer ones are tried
_FEWEST_STRETCHES = 4  # below, leaping cannot pay


@dataclass(frozen=True, slots=True)
class UnitTimes:
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


def replay_unit(unit: StreamingUnit, release: tuple[int, ...], *, details: bool) -> UnitTimes:
    """Replay one unit.

    Args:
        unit: the tasks.
        release: cycle from which on each node may run, or ``NEVER``.
        details: whether to find stalls and peaks too; they are 0 without.
    """
    replay = _UnitReplay(unit, release, details=details)
    return replay.until_stuck() if NEVER in release else replay.run()


class _UnitReplay:
    """The state between two stretches, and the sums so far."""

    def __init__(self, unit: StreamingUnit, release: tuple[int, ...], *, details: bool) -> None:
        self._unit = unit
        self._details = details
        self._clock = list(release)
        self._history = [
            np.full(unit.capacity[edge] if unit.is_bounded(edge) else 0, LONG_AGO, dtype=np.int64)
            for edge in range(len(unit.edges))
        ]
        self._programs: dict[tuple[int, int, int, int], Program] = {}
        self._start: list[int] = []
        self._read_stall = [0] * len(unit.edges)
        self._write_stall = [0] * len(unit.edges)
        self._traffic: list[list[Traffic]] = [[] for _ in unit.edges]

    def run(self) -> UnitTimes:
        rounds = self._unit.rounds
        size, tries = self._first_size(), 0
        done = 0
        before: Stretch | None = None
        while done < rounds:
            stretch = self._stretch(min(size, rounds - done))
            if not self._simulate(stretch):
                return self.until_stuck()
            done += stretch.rounds
            ends = self._ends(stretch)
            found = find_repetition(self._unit, before, stretch, ends, (rounds - done) // stretch.rounds)
            self._account(stretch, ends, found.count)
            self._move_on(stretch, ends, found)
            done += found.count * stretch.rounds
            before = None if found.count else stretch
            tries = 0 if found.count else tries + 1
            if tries == _TRIES:
                size, tries, before = self._next_size(stretch), 0, None
        return UnitTimes(
            tuple(self._start),
            tuple(self._clock),
            tuple(self._read_stall),
            tuple(self._write_stall),
            self._peaks(),
            (),
        )

    def _peaks(self) -> tuple[int, ...]:
        hand_over = not any(self._unit.waits)
        return tuple(
            peak_occupancy(traffic, capacity, hand_over=hand_over)
            for traffic, capacity in zip(self._traffic, self._unit.capacity, strict=True)
        )

    def _busiest(self) -> int:
        """Elements per round of the busiest task."""
        return max(*self._unit.reads, *self._unit.writes) // self._unit.rounds

    def _first_size(self) -> int:
        size = -(-_FIRST_ELEMENTS // max(self._busiest(), 1))
        return size if self._unit.rounds >= _FEWEST_STRETCHES * size else self._unit.rounds

    def _next_size(self, stretch: Stretch) -> int:
        """Return a longer stretch, a multiple of the period that shows in the last one."""
        longer = stretch.rounds * 2
        if longer * self._busiest() > _MOST_ELEMENTS:
            longer = stretch.rounds
        period = find_period(stretch)
        return -(-longer // period) * period

    def _stretch(self, rounds: int) -> Stretch:
        unit = self._unit
        programs = [self._program(node, rounds) for node in range(len(unit.nodes))]
        puts, gets = [], []
        for edge, history in enumerate(self._history):
            volume = unit.volume(edge) // unit.rounds * rounds
            puts.append(np.full(volume, LONG_AGO, dtype=np.int64))
            gets.append(np.concatenate([history, puts[-1]]))
        return Stretch(rounds, programs, list(self._clock), puts, gets, [len(history) for history in self._history])

    def _program(self, node: int, rounds: int) -> Program:
        unit = self._unit
        reads, writes = (volume // unit.rounds * rounds for volume in (unit.reads[node], unit.writes[node]))
        key = (reads, writes, len(unit.inputs[node]), len(unit.outputs[node]))
        if key not in self._programs:
            self._programs[key] = task_program(*key)
        return self._programs[key]

    def _simulate(self, stretch: Stretch) -> bool:
        """Fill in the access times; return whether there are any, or a deadlock."""
        if not any(self._unit.waits) and relax(self._unit, stretch):
            return True
        return all(place == FINISHED for place in step(self._unit, stretch))

    def until_stuck(self) -> UnitTimes:
        """Replay the unit from the beginning as far as it gets.

        After each round all FIFOs are as empty as in the beginning: a deadlock happens in the first stretch or never.
        """
        unit = self._unit
        rounds = min(self._first_size(), unit.rounds)
        stretch = self._stretch(rounds)
        stuck = step(unit, stretch)
        while FINISHED in stuck and rounds < unit.rounds:  # a task that has not ended may go on
            rounds = min(2 * rounds, unit.rounds)
            stretch = self._stretch(rounds)
            stuck = step(unit, stretch)
        ends = self._ends(stretch)
        starts = [NEVER if stuck[node] == NOT_STARTED else start for node, start in enumerate(self._starts(stretch))]
        return UnitTimes(
            tuple(start if start >= 0 else NEVER for start in starts),
            tuple(end if place == FINISHED else NEVER for end, place in zip(ends, stuck, strict=True)),
            tuple(self._read_stall),
            tuple(self._write_stall),
            tuple(0 for _ in unit.edges),
            tuple(stuck),
        )

    def _ends(self, stretch: Stretch) -> list[int]:
        unit = self._unit
        ends = []
        for node, program in enumerate(stretch.programs):
            delay = stretch.clock[node]
            for edge in unit.inputs[node]:
                delay = max(delay, int(stretch.reads(edge)[-1] - program.get_waits[-1]))
            for edge in unit.outputs[node]:
                delay = max(delay, int(stretch.puts[edge][-1] - program.put_waits[-1]))
            ends.append(delay + program.cycles)
        return ends

    def _starts(self, stretch: Stretch) -> list[int]:
        """Return when each node has read its first element of every streamed input; ``LONG_AGO`` if that is never."""
        return [
            int(stretch.reads(inputs[-1])[0]) if inputs else stretch.clock[node]
            for node, inputs in enumerate(self._unit.inputs)
        ]

    def _account(self, stretch: Stretch, ends: list[int], repetitions: int) -> None:
        unit = self._unit
        first = not self._start
        if first:
            self._start = self._starts(stretch)
        if not self._details:
            return
        for node, program in enumerate(stretch.programs):
            later = np.diff(stretch.delays(node, unit), prepend=stretch.clock[node])
            if first:
                later[: len(unit.inputs[node])] = 0  # until the first elements are there a task has not started
            for edge, position in zip(unit.inputs[node], program.gets, strict=True):
                self._read_stall[edge] += int(later[position].sum()) * (1 + repetitions)
            for edge, position in zip(unit.outputs[node], program.puts, strict=True):
                self._write_stall[edge] += int(later[position].sum()) * (1 + repetitions)
        cycles = [end - begin for end, begin in zip(ends, stretch.clock, strict=True)]
        for edge, traffic in enumerate(self._traffic):
            writer, reader = unit.source[edge], unit.target[edge]
            reads = stretch.reads(edge)
            traffic.append(Traffic(stretch.puts[edge], reads, 1 + repetitions, cycles[writer], cycles[reader]))

    def _move_on(self, stretch: Stretch, ends: list[int], found: Repetition) -> None:
        unit, count = self._unit, found.count
        cycles = [end - begin for end, begin in zip(ends, stretch.clock, strict=True)]
        self._clock = [end + count * lasts for end, lasts in zip(ends, cycles, strict=True)]
        for edge, past in enumerate(stretch.past):
            lasts = cycles[unit.target[edge]]
            if not past:
                continue
            if edge in found.young:
                repeated = [stretch.reads(edge) + lasts * number for number in range(1, count + 1)]
                self._history[edge] = _last(np.concatenate([stretch.gets[edge], *repeated]), past)
            else:
                self._history[edge] = _last(stretch.gets[edge], past) + count * lasts


def _last(times: Int64, count: int) -> Int64:
    return times[len(times) - count :]
