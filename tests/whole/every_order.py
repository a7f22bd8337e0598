"""Every mapping of a few tasks: all orders on all elements, all sets of streams, and all that SRAM may hold meanwhile.

A configuration runs some kernels. Of its tasks each set of edges that may stream does; tasks are put on processing
elements one after another, each as early as what it waits for and its element allow, in every order and on every
element. FIFOs are as large as what is in flight. Of what is in memory, every choice of what SRAM holds is tried.
Configurations follow one another in every way. What cannot be faster than a given time is left out by its work, by the
tasks that follow one another, and by what it moves at least; nothing here asks what chooses.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import product

import numpy as np
import pytest

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.dag import Bool
from dfcompile.canonical_dag.part import DagPart
from dfcompile.dfmodel_backend import System, TaskModel
from dfcompile.dfmodel_backend.attained import mapping, stores
from dfcompile.dfmodel_backend.attained.footprints import Fetches, Spans
from dfcompile.dfmodel_backend.attained.holding import Wholes
from dfcompile.dfmodel_backend.attained.mapping import TaskMapping
from dfcompile.dfmodel_backend.attained.task_model import TaskConfiguration
from dfcompile.dfmodel_backend.check.task_mappings import check_task_mapping
from dfcompile.records import replace
from dfcompile.scheduler import Schedule, ScheduleOptions
from dfcompile.scheduler.bounds.precedence import released
from dfcompile.scheduler.fifo import fifo_room
from dfcompile.scheduler.listing.list_schedule import FREE, ListSchedule, ListScheduler, planned_schedule
from dfcompile.scheduler.simulation import simulate
from dfcompile.scheduler.simulation.simulator import replay_of, with_times_of
from tests.whole.brute_force import BruteForce, least_time, tasks_of
from tests.whole.every_holding import BestHolding, Looks, TooManyError

_ROUNDING = 1e-9  # of times
_MOST_WAYS = 3_000  # of a model whose tasks are looked at
_MOST_TASKS = 8  # of a way whose orders are tried
_SCHEDULE = 10  # times as long as a choice of what is held


def faster_order(ways: BruteForce, system: System, time_s: float, looks: Looks) -> tuple[TaskMapping | None, bool]:
    """Return the fastest mapping of a few tasks that takes less than a time, if one does, and whether these are all.

    Args:
        ways: to lower and divide a model.
        system: machine of one chip.
        time_s: in seconds.
        looks: how much may be looked at.

    Raises:
        VerificationError: a mapping is none, as its checker says.
    """
    best, is_all = None, True
    for number, each in enumerate(ways.shortest_first(system, time_s)):
        if number == _MOST_WAYS:
            return best, False
        lowered = ways.lowered(each)
        if lowered is None or least_time(*lowered, system) >= time_s * (1 - _ROUNDING):
            continue
        model = tasks_of(ways.dag(each), system)
        if least_moved(model) / system.dram_gb_per_s >= time_s * 1e9 * (1 - _ROUNDING):
            continue
        if model.dag.tasks_count > _MOST_TASKS:
            is_all = False
            continue
        try:
            found = faster_mapping(model, time_s, looks)
        except TooManyError:
            return best, False
        if found is not None:
            check_task_mapping(model.dag, system, model.overlap, found)
            best, time_s = found, found.time_s
    return best, is_all


def least_moved(model: TaskModel) -> int:
    """Return bytes that every mapping moves.

    What a kernel touches of a buffer is held whole; or, if SRAM is too small for that, its different reads come once
    each and its writes leave. A read that has to have more at hand than SRAM holds takes some of that twice: all that
    it asks for counts.
    """
    dag, table, room = model.dag, model.stores, model.sram_bytes
    moved = dict.fromkeys(np.flatnonzero(dag.is_buffer).tolist(), 0)
    left = moved.copy()
    for unit in range(model.units.count):
        edges = model.units.part(1 << unit, model.machine_dag).edge
        for node in moved:
            place = table.buffer[node]
            reads = edges[(dag.edge_source[edges] == node) & dag.is_computational[dag.edge_target[edges]]]
            writes = edges[(dag.edge_target[edges] == node) & dag.is_computational[dag.edge_source[edges]]]
            written, everywhere = int(table.edge_bytes[writes].sum()), int(table.written_bytes[place])
            touched = written + int(table.edge_bytes[reads].sum())
            is_held = min(touched, everywhere or touched, int(table.whole_bytes[place])) <= room
            least = {_footprint(model, edge): _least_read(model, edge) for edge in reads.tolist()}
            if not is_held:
                moved[node] = max(moved[node], sum(least.values()))
            elif not everywhere:
                moved[node] = max(moved[node], *table.distinct_bytes[reads].tolist(), 0)
            if not is_held or table.is_result[place]:
                left[node] += written
    return sum(moved.values()) + sum(left.values())


def _footprint(model: TaskModel, edge: int) -> tuple[object, ...]:
    """Return what tells the elements of a read: equal ones may come together."""
    dag, table = model.dag, model.stores
    source = dag.edge_source[edge]
    if not dag.is_buffer[source] or table.distinct_bytes[edge] == table.whole_bytes[table.buffer[source]]:
        return ()  # everything
    columns = dag.edge_first, dag.edge_order, dag.edge_volume, dag.edge_distinct
    return tuple(int(column[edge]) for column in columns)


def _least_read(model: TaskModel, edge: int) -> int:
    table = model.stores
    is_once = min(table.reused_bytes[edge], table.distinct_bytes[edge]) <= model.sram_bytes
    return int((table.distinct_bytes if is_once else table.edge_bytes)[edge])


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
    limit_ns = time_s * 1e9 * (1 - _ROUNDING)
    best: tuple[TaskConfiguration, ...] | None = None
    for sets in _chains(model, 0, everything):
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
            alike = tasks_alike(self._model, self._part, streamed)
            orders = Orders(self._part.dag, self._model.scheduling, streamed, self._looks, alike)
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
        return self._model._fits(self._part, found)

    def _held(self, found: Schedule, limit_ns: float) -> TaskConfiguration:
        """Return the configuration of a schedule that moves least."""
        limits = int(np.ceil(limit_ns * self._model.system.dram_gb_per_s)), self._looks

        def hold(wholes: Wholes, fetches: Fetches, fifos: Spans, room: float) -> BestHolding:
            return BestHolding(wholes, fetches, fifos, room, limits)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(stores, "hold", hold)
            return self._model._configured(self._units, self._part, found)


def tasks_alike(model: TaskModel, part: DagPart, streamed: Bool) -> dict[int, int]:
    """Return of tasks the one before it that may change places with it: nothing else tells them apart.

    They read the same, or what nobody else reads; and what they write goes to the same place.
    """
    dag, own = model.dag, part.dag
    edges = list(zip(own.edge_source.tolist(), own.edge_target.tolist(), part.edge.tolist(), strict=True))
    known = [_footprint(model, edge) for _, _, edge in edges]
    readers = Counter((source, footprint) for (source, _, _), footprint in zip(edges, known, strict=True))
    told: dict[int, list[object]] = {node: [] for node in np.flatnonzero(own.is_computational).tolist()}
    for number, ((source, target, edge), footprint) in enumerate(zip(edges, known, strict=True)):
        is_alone = bool(footprint) and readers[source, footprint] == 1
        sizes = int(dag.edge_volume[edge]), int(dag.edge_distinct[edge]), int(dag.edge_element_bytes[edge])
        column = *sizes, int(dag.edge_order[edge]), bool(streamed[number]), int(own.edge_volume[number])
        if target in told:
            told[target].append(("reads", source, () if is_alone else footprint, is_alone, column))
        if source in told:
            told[source].append(("writes", target, column))
    last = dict[object, int]()
    alike = dict[int, int]()
    for node, each in told.items():
        scope = int(dag.node_scope[part.node[node]])
        key = scope, int(own.volume_in[node]), int(own.volume_out[node]), tuple(sorted(map(repr, each)))
        if key in last:
            alike[node] = last[key]
        last[key] = node
    return alike


class Orders:
    """All orders of tasks on processing elements, in which each begins as soon as it can where it is."""

    def __init__(
        self, dag: CanonicalDag, options: ScheduleOptions, streamed: Bool, looks: Looks, alike: Mapping[int, int]
    ) -> None:
        """Say what is ordered.

        Args:
            dag: a few tasks.
            options: P.
            streamed: which edges stream, shape [edges].
            looks: how many orders may be looked at.
            alike: of tasks the one that comes before it, as it makes no difference which of them does.
        """
        self._alike = alike
        self._dag, self._options, self._streamed, self._looks = dag, options, streamed, looks
        self._scheduler = ListScheduler(dag, options.pes, streamed, options.hardware)
        self._task: list[bool] = dag.is_computational.tolist()
        self._work: list[int] = options.hardware.cycles(dag).tolist()
        self._left = self._scheduler.left()
        self._start, self._end = [0] * dag.nodes_count, [0] * dag.nodes_count
        self._before = [FREE] * dag.nodes_count
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
            columns = self._sequence.copy(), self._before.copy(), self._start.copy(), self._end.copy()
            yield ListSchedule(*columns, cycles=max(self._end, default=0))
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
        ready = [node for node in ready if self._alike.get(node, node) in placed or node not in self._alike]
        memory = [node for node in ready if not self._task[node]]
        for node in memory[:1] or ready:
            is_task = self._task[node]
            places = min(len(last) + 1, self._options.pes) if is_task else 1  # those that nobody has used are alike
            for place in range(places):
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
