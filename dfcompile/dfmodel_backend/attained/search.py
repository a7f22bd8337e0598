"""Configurations of a lowering in the least attained time: a shortest path whose arcs are scheduled only when asked.

An arc of the path is a set of kernels. Until it is looked at it costs its lower bound; whenever the shortest path holds
arcs that were not looked at, they are. When it holds none, no chain of configurations is faster. What may be looked at
is limited in tasks to schedule, not in time, so that the result is the same on every machine.
"""

from collections.abc import Callable, Iterable
from itertools import accumulate, pairwise
from operator import or_
from typing import TypeAlias

import numpy as np

from dfcompile.dfmodel_backend.attained.least_costs import LeastCosts
from dfcompile.dfmodel_backend.attained.task_model import TaskConfiguration, TaskModel
from dfcompile.dfmodel_backend.columns import Numbers, members_of, sums_over
from dfcompile.dfmodel_backend.fusion.solvers.path import TIE, PathCosts, least_chain
from dfcompile.dfmodel_backend.kernel_sets import Arcs, DownSets, FusionShape, arcs_within, joined
from dfcompile.distinct import distinct
from dfcompile.errors import InfeasibleError
from dfcompile.host.stages import counted
from dfcompile.options import Effort
from dfcompile.records import replace

MOST_DOWN_SETS = 3000
MOST_ARCS = 30_000


def possible_arcs(shape: FusionShape, may_share: Callable[[int], bool]) -> tuple[Arcs, bool]:
    """Return possible configurations, and whether these are all; else those along a few topological orders.

    Args:
        shape: of a graph whose kernels may be in any configuration.
        may_share: whether a set of kernels may be one configuration; where it may not, no set that holds it may.
    """
    lattice = shape.lattice(MOST_DOWN_SETS)
    if lattice is not None:
        arcs = arcs_within(shape, lattice, may_share, MOST_ARCS)
        if arcs is not None:
            return _shareable(arcs, may_share), True
    return _shareable(_along_orders(shape), may_share), False


def _shareable(arcs: Arcs, may_share: Callable[[int], bool]) -> Arcs:
    """Return the arcs that may be configurations: what was grown has the smallest of those that may not, too."""
    kept = np.array([may_share(units) for units in arcs.sets], dtype=np.bool_)
    if kept.all():
        return arcs
    of_arc, number = kept[arcs.added], np.cumsum(kept) - 1
    return replace(
        arcs,
        before=arcs.before[of_arc],
        after=arcs.after[of_arc],
        added=number[arcs.added[of_arc]],
        sets=tuple(units for units, is_kept in zip(arcs.sets, kept.tolist(), strict=True) if is_kept),
        members=arcs.members[kept],
    )


def _along_orders(shape: FusionShape) -> Arcs:
    """Return configurations along a few orders; the long ones only from the start or to the end.

    Long are those of more than half, a quarter, an eighth … of the kernels: the first with which they are few enough.
    """
    count = len(shape.predecessors)
    lattice = shape.intervals()
    layers = _layers(lattice, count // 2, MOST_ARCS)
    most = count // 2
    while most > len(layers):
        most //= 2
    if not most:
        lattice, most = joined([tuple(range(count))]), 1
        layers = _layers(lattice, 1, 2**62)
    before, after = np.concatenate(layers[:most], axis=1)
    down_sets = tuple(lattice)
    last = len(down_sets) - 1
    sizes = np.array([down_set.bit_count() for down_set in down_sets])
    from_start = np.flatnonzero(sizes > most)
    to_end = np.flatnonzero((count - sizes > most) & (sizes > 0))
    before = np.concatenate([before, np.zeros_like(from_start), to_end])
    after = np.concatenate([after, from_start, np.full_like(to_end, last)])
    order = np.lexsort([before, after])
    before, after = before[order], after[order]
    sets: dict[int, int] = {}
    added = [
        sets.setdefault(down_sets[larger] ^ down_sets[smaller], len(sets))
        for smaller, larger in zip(before.tolist(), after.tolist(), strict=True)
    ]
    masks = tuple(sets)
    return Arcs(down_sets, before, after, np.array(added, np.int64), masks, members_of(masks, count))


def _layers(lattice: DownSets, most: int, most_arcs: int) -> list[Numbers]:
    """Return pairs of down-sets, ``[smaller, larger]``, that differ by one kernel, by two … as far as they are few."""
    number = {down_set: place for place, down_set in enumerate(lattice)}
    steps = [(number[down_set], number[larger]) for down_set in lattice for larger in lattice.larger[down_set]]
    source, target = np.array(steps, np.int64).reshape(-1, 2).T
    starts = np.searchsorted(source, np.arange(len(number) + 1))  # a lattice lists smaller sets first
    layers: list[Numbers] = []
    layer = np.stack([np.arange(len(number))] * 2)
    arcs = 0
    while len(layers) < most:
        begin, width = starts[layer[1]], np.diff(starts)[layer[1]]
        offset = np.arange(width.sum()) - np.repeat(np.cumsum(width) - width, width)
        pairs = np.repeat(layer[0], width) * len(number) + target[np.repeat(begin, width) + offset]
        layer = np.stack(np.divmod(distinct(pairs), len(number)))
        arcs += layer.shape[1]
        if arcs > most_arcs:
            break
        layers.append(layer)
    return layers


# What may be looked at, in tasks; a set of kernels counts for at least so many.
LEAST_TASKS = 60
REPLAYED = 40_000  # if all sets together have no more, each that may be of use is replayed
TINY = 64  # graphs of no more tasks may have
REPLAYED_OF_TINY = 120_000  # as many in all their sets: 2,000 sets of some milliseconds each
PLANNED = 40_000  # otherwise schedules are planned for so many tasks, or for the whole graph so often
PLANNED_TIMES = 3
MANY = 1_000_000  # graphs of more tasks only as a whole, and each kernel alone
SMALL = 1_000  # graphs of more tasks are cut only where they wait for DRAM
REFINED_TIMES = 12  # of these not more of the sets of least bounds than so many times all tasks: bounds are not plans
NEARLY = 1.05  # of the time: mean intervals are as wrong as that
NEAR_ENOUGH = 1.01  # of what every schedule takes: no kernels are parted for less
REPLAYED_TIMES = 2  # and replayed only where the fastest chains need them


# Configurations in order of execution, and whether it is proved that their chain is as fast as any.
FoundChain: TypeAlias = tuple[tuple[TaskConfiguration, ...], bool]
_Possible: TypeAlias = tuple[Arcs, bool]  # as `possible_arcs` gives them


def fastest_chain(model: TaskModel) -> FoundChain:
    """Return the chain of configurations that takes the least time, and whether that is proved.

    Args:
        model: of the lowering on a chip.

    Raises:
        InfeasibleError: DRAM does not hold what must be alive at once.
    """
    units = model.units
    everything = (1 << units.count) - 1
    is_quick = model.scheduling == model.planning or model.scheduling.effort is Effort.QUICK
    most = REPLAYED_OF_TINY if model.dag.tasks_count <= TINY else REPLAYED
    possible: _Possible | None = None
    # Each unit alone is looked at: of many it is known without the other sets that they are too many.
    if is_quick and LEAST_TASKS * units.count + model.dag.tasks_count <= most:
        possible = _possible(model)
        if int(_tasks_of(model, possible[0]).sum()) <= most:
            return _Search(model, possible).proved()
    whole, least = None, LeastCosts(model)
    if everything and units.may_share(everything) and least.fits_dram(0, everything):
        if model.known is not None or model.chosen is not None:
            whole, bound_ns = model.configuration(everything), least.bound_ns()
            if whole.time_ns <= bound_ns * NEAR_ENOUGH:
                return (whole,), whole.time_ns <= bound_ns * (1 + TIE)
        if model.dag.tasks_count > SMALL and _waits_for_tasks(least, everything, whole):
            return (whole or model.configuration(everything),), False
    return _Search(model, possible).planned(whole)


def _waits_for_tasks(least: LeastCosts, everything: int, whole: TaskConfiguration | None) -> bool:
    """Return whether all units as one configuration take no longer for their DRAM traffic, as it is planned.

    More configurations move no less data and keep the cores no busier, but for what the scheduler makes of them.
    """
    model = least.model
    if whole is None:
        members = members_of((0, everything), model.units.count)
        memory_ns = float(least.memory_ns(members, np.array([0]), np.array([1]))[0])
    else:
        memory_ns = whole.memory_ns
    found = model.planned(everything, 0.0)
    return found.time_ns <= model.overlap.time_ns(found.compute_ns, memory_ns, found.network_ns) * (1 + TIE)


def chain_bound_ns(model: TaskModel) -> float:
    """Return a time that no chain beats that `fastest_chain` may find: of lower bounds alone, nothing is scheduled."""
    return _Search(model).bound_ns()


# What is known of an arc.
_BOUNDED = 0
_PLANNED = 1
_REPLAYED = 2


def _shape(model: TaskModel) -> FusionShape:
    units = model.units
    return FusionShape(units.predecessors, ((1 << units.count) - 1,) * units.count, units.count)


def _possible(model: TaskModel) -> _Possible:
    return possible_arcs(_shape(model), model.units.may_share)


def _tasks_of(model: TaskModel, arcs: Arcs) -> Numbers:
    """Return what looking at each set costs of the budget."""
    return LEAST_TASKS + sums_over(arcs.members, np.array(model.units.tasks_count, float)).astype(np.int64)


class _Search:
    def __init__(self, model: TaskModel, possible: _Possible | None = None) -> None:
        self._model = model
        self._least = LeastCosts(model)
        units = model.units
        self._shape = _shape(model)
        self._arcs, self._holds_all = possible or _possible(model)
        self._tasks_of = _tasks_of(model, self._arcs)
        ends = zip(self._arcs.before.tolist(), self._arcs.after.tolist(), strict=True)
        self._arc_of = {pair: arc for arc, pair in enumerate(ends)}
        self._whole = self._arc_of.get((0, len(self._arcs.down_sets) - 1))
        self._place = {down_set: place for place, down_set in enumerate(self._arcs.down_sets)}
        self._known: dict[int, TaskConfiguration] = {}
        pairs = members_of(self._arcs.down_sets, units.count), self._arcs.before, self._arcs.after
        memory_ns = self._least.memory_ns(*pairs)
        times_ns = self._least.compute_ns(*pairs), memory_ns, self._least.network_ns(*pairs)
        self._time, self._dram = model.overlap.times_ns(*times_ns), memory_ns * model.system.dram_gb_per_s
        self._least_ns = self._time.tolist()
        self._tie = TIE * float(self._time.sum())
        self._level = np.full(len(self._time), _BOUNDED, dtype=np.int8)
        self._left = 0  # tasks that may be planned

    def bound_ns(self) -> float:
        arcs = self._shortest(_BOUNDED)
        return np.inf if arcs is None else float(self._time[arcs].sum())

    def proved(self) -> FoundChain:
        """Return the fastest chain of all: lower bounds are replaced by true figures where the shortest path runs."""
        return self._replayed(_BOUNDED)

    def planned(self, whole: TaskConfiguration | None) -> FoundChain:
        """Return the fastest chain of some that are planned; of the whole the configuration may be known."""
        if whole is not None and self._whole is not None:
            self._known[self._arcs.mask(self._whole)] = whole
            self._replay(self._whole)
        self._plan_some()
        return self._replayed(_PLANNED)

    def _plan_some(self) -> None:
        """Plan the whole graph, kernels alone, neighbours of the best chain together, and what has the least bounds."""
        alone = self._arcs_of(1 << unit for unit in range(self._model.units.count))
        tasks = self._model.dag.tasks_count
        self._left = max(PLANNED, PLANNED_TIMES * tasks)
        if self._whole is not None:
            self._plan(self._whole)
        for arc in counted(alone):
            self._plan(arc)
        if tasks > MANY:
            return
        refinement = PLANNED if tasks <= SMALL else REFINED_TIMES * tasks
        while True:
            merged = self._merges()
            bounded = self._affordable(self._below(self._shortest(_BOUNDED) or [], _PLANNED), refinement)
            refinement -= sum(map(self._tasks, bounded))
            if not merged and not bounded:
                return
            for arc in counted([*merged, *bounded]):
                if self._tasks(arc) > self._left:
                    return
                self._plan(arc)

    def _affordable(self, arcs: list[int], budget: int) -> list[int]:
        """Return those of some arcs whose tasks, one after the other, a budget allows for."""
        found = []
        for arc in arcs:
            if self._tasks(arc) <= budget:
                budget -= self._tasks(arc)
                found.append(arc)
        return found

    def _merges(self) -> list[int]:
        """Return the arcs not yet planned that join neighbours of the best chain, small ones first."""
        chain = self._shortest(_PLANNED) or []
        begins, ends = self._arcs.before[chain].tolist(), self._arcs.after[chain].tolist()
        both = (self._arc_of.get(pair) for pair in zip(begins, ends[1:], strict=False))
        open_arcs = self._below([arc for arc in both if arc is not None], _PLANNED)
        return sorted(open_arcs, key=lambda arc: (self._tasks(arc), arc))

    def _replayed(self, level: int) -> FoundChain:
        """Replay the best chain of which so much is known, until it is replayed.

        By plans what is nearly as fast, too: all kernels as one, or cut; but no more tasks than a budget allows for.
        """
        is_proof = level == _BOUNDED
        budget = np.inf if is_proof else REPLAYED_TIMES * self._model.dag.tasks_count
        while True:
            chain = self._shortest(level)
            if chain is None:
                raise self._infeasible()
            unknown = self._below(chain, _REPLAYED)
            if not is_proof:
                unknown = sorted({*unknown, *self._below(self._other(chain), _REPLAYED)})
            if not unknown:
                return self._found(chain, is_optimal=is_proof and self._holds_all)
            tasks = sum(map(self._tasks, unknown))
            if tasks > budget and (best := self._shortest(_REPLAYED)) is not None:
                return self._found(best, is_optimal=False)
            budget -= tasks
            for arc in counted(unknown):
                self._replay(arc)

    def _other(self, chain: list[int]) -> list[int]:
        """Return the whole as one configuration; if that is the chain, the best other one; none if it is far slower."""
        if self._whole is None:
            return []
        is_whole = chain == [self._whole]
        other = self._shortest(_PLANNED, without=self._whole) if is_whole else [self._whole]
        if other is None:
            return []
        is_near = sum(self._time[other].tolist()) <= sum(self._time[chain].tolist()) * NEARLY
        has_another_way = not is_whole and self._model.scheduling != self._model.planning
        return other if is_near or has_another_way else []

    def _tasks(self, arc: int) -> int:
        return int(self._tasks_of[self._arcs.added[arc]])

    def _shortest(self, level: int, without: int | None = None) -> list[int] | None:
        """Return the shortest path over arcs of which so much is known, but for one of them."""
        time = np.where(self._level >= level, self._time, np.inf)
        if without is not None:
            time[without] = np.inf
        _, chain = least_chain(self._arcs, PathCosts(time, self._dram, self._tie), self._shape)
        return None if chain is None else self._arcs_of(units for units in chain if units)

    def _arcs_of(self, chain: Iterable[int]) -> list[int]:
        """Return the arcs of sets that follow one another."""
        places = [0, *(self._place[down_set] for down_set in accumulate(chain, or_))]
        return [self._arc_of[ends] for ends in pairwise(places)]

    def _below(self, arcs: list[int], level: int) -> list[int]:
        """Return those of some arcs of which less is known."""
        return [arc for arc in arcs if self._level[arc] < level]

    def _plan(self, arc: int) -> TaskConfiguration:
        """Put in the planned figures of an arc."""
        found = self._model.planned(self._arcs.mask(arc), self._least_ns[arc])
        self._put(arc, found, _PLANNED)
        self._left -= self._tasks(arc)
        return found

    def _replay(self, arc: int) -> None:
        """Put in the true figures of the set of an arc, wherever it runs."""
        if self._level[arc] == _REPLAYED:
            return
        units = self._arcs.mask(arc)
        if units not in self._known:
            self._known[units] = self._model.configuration(units)
        for same in np.flatnonzero(self._arcs.added == self._arcs.added[arc]).tolist():
            self._put(same, self._known[units], _REPLAYED)

    def _put(self, arc: int, found: TaskConfiguration, level: int) -> None:
        before = self._arcs.down_sets[int(self._arcs.before[arc])]
        fits = self._least.fits_dram(before, self._arcs.mask(arc))
        self._time[arc] = found.time_ns if fits else np.inf
        self._dram[arc] = found.dram_bytes
        self._level[arc] = level

    def _found(self, arcs: list[int], *, is_optimal: bool) -> FoundChain:
        return tuple(self._known[self._arcs.mask(arc)] for arc in arcs), is_optimal

    def _infeasible(self) -> InfeasibleError:
        model = self._model
        live, name = self._least.most_live()
        if model.system.dram_capacity_bytes and live > model.system.dram_capacity_bytes:
            return InfeasibleError(
                f"kernel {name!r}: found {live} bytes alive in DRAM, kernel by kernel, against "
                f"{model.system.dram_capacity_bytes:.0f} of the chip (give dram.capacity_bytes at least {live})"
            )
        return InfeasibleError("graph: no mapping in so few configurations fits DRAM")
