"""Every mapping of a few tasks: all orders on all elements, all sets of streams, and all that SRAM may hold meanwhile.

A configuration runs some kernels. Of its tasks each set of edges that may stream does; tasks are put on processing
elements one after another, each as early as what it waits for and its element allow, in every order and on every
element. FIFOs are as large as what is in flight. Of what is in memory, every choice of what SRAM holds is tried.
Configurations follow one another in every way. What cannot be faster than a given time is left out by its work, by the
tasks that follow one another, and by what it moves at least; nothing here asks what chooses.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

import numpy as np
import pytest

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.dag import Bool
from dfcompile.dfmodel_backend import Overlap, System, TaskModel
from dfcompile.dfmodel_backend.attained import mapping, stores
from dfcompile.dfmodel_backend.attained.footprints import Fetches, Spans
from dfcompile.dfmodel_backend.attained.holding import KEPT, ROLLING, SHARED, Wholes
from dfcompile.dfmodel_backend.attained.mapping import TaskMapping
from dfcompile.dfmodel_backend.attained.stores import NOT_HELD
from dfcompile.dfmodel_backend.attained.task_model import TaskConfiguration
from dfcompile.options import Effort, Timing
from dfcompile.records import replace
from dfcompile.scheduler import Schedule, ScheduleOptions
from dfcompile.scheduler.bounds.precedence import released
from dfcompile.scheduler.fifo import fifo_room
from dfcompile.scheduler.listing.list_schedule import FREE, ListSchedule, ListScheduler, planned_schedule
from dfcompile.scheduler.options import QUICK_PARTITION
from dfcompile.scheduler.simulation import simulate
from dfcompile.scheduler.simulation.simulator import replay_of, with_times_of

_ROUNDING = 1e-9  # of times
_SCHEDULE = 10  # times as long as a choice of what is held
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


def model_of(dag: CanonicalDag, system: System) -> TaskModel:
    """Return the tasks of a DAG on one chip, as ``dfcompile MODEL`` maps them."""
    scheduling = ScheduleOptions(system.accelerator.cores, "best", timing=Timing.STEADY, effort=Effort.QUICK)
    planning = replace(scheduling, partition=QUICK_PARTITION)
    return TaskModel(dag, system, scheduling, planning, Overlap.PERFECT_OVERLAP)


def faster_mapping(model: TaskModel, time_s: float, looks: Looks) -> TaskMapping | None:
    """Return the fastest mapping that takes less than a time; ``None`` if none does.

    Args:
        model: a few tasks on one chip.
        time_s: in seconds.
        looks: how much may be looked at.

    Raises:
        TooManyError: that is not enough.
    """
    everything = (1 << model.units.count) - 1
    limit_ns, best = time_s * 1e9 * (1 - _ROUNDING), None
    for sets in _chains(model, 0, everything):
        # The least of all but one configuration leaves the most time for that one.
        least = [_least_ns(model, units) for units in sets]
        if sum(least) >= limit_ns:
            continue
        found: list[TaskConfiguration] = []
        for units, own in zip(sets, least, strict=True):
            others = sum(each.time_ns for each in found) + sum(least[len(found) + 1 :])
            configuration = _Configurations(model, units, looks).fastest(limit_ns - others, own)
            if configuration is None:
                break
            found.append(configuration)
        if len(found) == len(sets):
            limit_ns, best = sum(each.time_ns for each in found), tuple(found)
    return None if best is None else _mapped(model, best)


def _chains(model: TaskModel, done: int, everything: int) -> Iterator[tuple[int, ...]]:
    """Yield all ways to run sets of kernels one after another, each behind what it reads."""
    if done == everything:
        yield ()
        return
    left = everything & ~done
    units = left
    while units:
        needed = [model.units.predecessors[unit] for unit in model.units.members(units)]
        if all(not before & ~(done | units) for before in needed):
            yield from ((units, *rest) for rest in _chains(model, done | units, everything))
        units = (units - 1) & left


def _least_ns(model: TaskModel, units: int) -> float:
    """Return what the tasks of a set of kernels take at least: their work, or what comes from outside or leaves."""
    part, dag = model.units.part(units, model.machine_dag), model.dag
    cores, ghz = model.system.accelerator.cores, model.system.accelerator.frequency_ghz
    tails = ListScheduler(part.dag, cores).left()
    cycles = max(-(-int(part.dag.work.sum()) // cores), *tails, 0)
    source, target = dag.edge_source[part.edge], dag.edge_target[part.edge]
    size = dag.edge_distinct[part.edge] * dag.edge_element_bytes[part.edge]
    is_given = dag.is_buffer[source] & (np.bincount(dag.edge_target, minlength=dag.nodes_count)[source] == 0)
    given: dict[int, int] = {}
    for node, moved in zip(source[is_given].tolist(), size[is_given].tolist(), strict=True):
        given[node] = max(given.get(node, 0), moved)
    leaves = dag.is_buffer[target] & (np.bincount(dag.edge_source, minlength=dag.nodes_count)[target] == 0)
    moved = sum(given.values()) + int(size[leaves].sum())
    return max(cycles / ghz, moved / model.system.dram_gb_per_s)


def _mapped(model: TaskModel, configurations: tuple[TaskConfiguration, ...]) -> TaskMapping:
    """Return the mapping of configurations that follow one another."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mapping, "fastest_chain", lambda _: (configurations, False))
        return mapping.map_tasks(model)


class _Configurations:
    """All configurations of a set of kernels."""

    def __init__(self, model: TaskModel, units: int, looks: Looks) -> None:
        self._model, self._units, self._looks = model, units, looks
        self._part = model.units.part(units, model.machine_dag)

    def fastest(self, limit_ns: float, enough_ns: float) -> TaskConfiguration | None:
        """Return the fastest that takes less than a time, or one that takes no longer than what is enough."""
        best = None
        for streamed in self._streams():
            orders = Orders(self._part.dag, self._model.scheduling, streamed, self._looks)
            for found in orders.within(self._cycles(limit_ns)):
                if found.makespan_cycles > self._cycles(limit_ns) or not self._fits(found):
                    continue
                configuration = self._held(found, limit_ns)
                if configuration.time_ns < limit_ns:
                    best, limit_ns = configuration, configuration.time_ns
                    if limit_ns <= enough_ns * (1 + _ROUNDING):
                        return best
        return best

    def _cycles(self, limit_ns: float) -> int:
        """Return the most cycles that take less than a time."""
        return int(np.ceil(limit_ns * self._model.system.accelerator.frequency_ghz - _ROUNDING)) - 1

    def _streams(self) -> Iterator[Bool]:
        edges = np.flatnonzero(self._part.dag.between_tasks)
        for chosen in product((True, False), repeat=len(edges)):
            streamed = np.zeros(self._part.dag.edges_count, dtype=np.bool_)
            streamed[edges[list(chosen)]] = True
            yield streamed

    def _fits(self, found: Schedule) -> bool:
        return self._model._fits(self._part, found)  # noqa: SLF001  # of what it asks itself

    def _held(self, found: Schedule, limit_ns: float) -> TaskConfiguration:
        """Return the configuration of a schedule that moves least."""
        most = int(np.ceil(limit_ns * self._model.system.dram_gb_per_s))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(stores, "hold", lambda *data: BestHolding(*data, (most, self._looks)))
            return self._model._configured(self._units, self._part, found)  # noqa: SLF001


class Orders:
    """All orders of tasks on processing elements, in which each begins as soon as it can where it is."""

    def __init__(self, dag: CanonicalDag, options: ScheduleOptions, streamed: Bool, looks: Looks) -> None:
        """Say what is ordered.

        Args:
            dag: a few tasks.
            options: P.
            streamed: which edges stream, shape [edges].
            looks: how many orders may be looked at.
        """
        self._dag, self._options, self._streamed, self._looks = dag, options, streamed, looks
        self._scheduler = ListScheduler(dag, options.pes, streamed, options.hardware)
        self._task, self._work = dag.is_computational.tolist(), options.hardware.cycles(dag).tolist()
        self._left = self._scheduler.left()
        self._start, self._end, self._before = [0] * dag.nodes_count, [0] * dag.nodes_count, [FREE] * dag.nodes_count
        self._sequence: list[int] = []

    def within(self, most_cycles: int) -> Iterator[Schedule]:
        """Yield all schedules that may take so many cycles at most, with the times and FIFOs of their replays."""
        seen = set[tuple[object, ...]]()
        for listed in self._completed(0, [], most_cycles):
            key = tuple(listed.before), tuple(listed.start)
            if key in seen:
                continue
            seen.add(key)
            self._looks.take(_SCHEDULE)
            order = listed.sequence, listed.elements(self._task)
            times = np.array(listed.start, dtype=np.int64), np.array(listed.end, dtype=np.int64)
            planned = planned_schedule(self._dag, self._options, order, times, self._streamed)
            replay = simulate(self._dag, replay_of(planned))
            capacity = fifo_room(self._streamed, replay.peak)
            yield with_times_of(self._dag, replace(planned, fifo_capacity=capacity), replay)

    def _completed(self, now: int, last: list[int], most: int) -> Iterator[ListSchedule]:
        """Yield what becomes of some tasks that are placed, of which the last starts now.

        Args:
            now: the cycle.
            last: the last task on each element in use.
            most: cycles.
        """
        placed = set(self._sequence)
        if len(placed) == self._dag.nodes_count:
            sequence, start, end = self._sequence.copy(), self._start.copy(), self._end.copy()
            yield ListSchedule(sequence, self._before.copy(), start, end, max(end, default=0))
            return
        left = [node for node in range(self._dag.nodes_count) if node not in placed]
        free = [self._end[node] for node in last] + [0] * (self._options.pes - len(last))
        room = sum(max(most - max(cycle, now), 0) for cycle in free)
        if any(now + self._left[node] > most for node in left if self._task[node]):
            return
        if sum(self._work[node] for node in left) > room:
            return
        awaited = self._scheduler.ahead.awaited
        ready = [node for node in left if all(other in placed for other, _, _ in awaited[node])]
        memory = [node for node in ready if not self._task[node]]
        for node in memory[:1] or ready:
            is_task = self._task[node]
            choices = range(min(len(last) + 1, self._options.pes)) if is_task else [len(last)]
            for place in choices:
                before = last[place] if is_task and place < len(last) else FREE
                known = self._end[before] if before != FREE else 0
                start, least = released(awaited[node], self._start, self._end, (known, 0))
                if is_task and start < now:
                    continue
                end = max(start + self._work[node], least) if is_task else start
                if start + self._left[node] > most or end > most:
                    continue
                self._start[node], self._end[node], self._before[node] = start, end, before
                self._sequence.append(node)
                behind = [*last[:place], node, *last[place + 1 :]] if is_task else last
                yield from self._completed(start if is_task else now, behind, most)
                self._sequence.pop()


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
        self._best: tuple[_Option, ...] = ()
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
            may_stay = ((False, True) if at < last and held[at] and held[at + 1] else (False,) for at in range(last + 1))
            if any(way == SHARED and not 0 < data.window[fetch] for way, fetch in zip(ways, fetches, strict=True)):
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
