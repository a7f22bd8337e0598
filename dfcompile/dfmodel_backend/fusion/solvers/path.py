"""Fusion as a shortest path over down-sets, by dynamic programming: exact.

Chains of the same time are told apart by their DRAM bytes, then by the number of their configurations. The same time is
what differs by less than a tie, far below the times of configurations: sums in another order differ in the last digits.

Where memory units (PMUs) are counted, sets are evaluated exactly only where they may be on the path. Cores and PMUs
split best take long to find. Without PMUs, and with weights whole, no set is slower: such times are lower bounds. A
shortest path with bounds is evaluated exactly and found again until all of its sets are exact; it is then as short as
any, because the others are at least as long as their bounds.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Protocol

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from dfcompile.dfmodel_backend.columns import Column, Mask, Numbers
from dfcompile.dfmodel_backend.intra_chip.set_model import SetModel
from dfcompile.dfmodel_backend.intra_chip.set_times import arc_times, set_limits, set_times
from dfcompile.dfmodel_backend.kernel_sets import Arcs, FusionShape, PathArcs, SetLimits

Chain = tuple[int, ...]  # set of kernels of each configuration, in order of execution; 0: empty
Rank = tuple[float, float, float]  # of a chain: time in ns, DRAM bytes, configurations

TIE = 1e-11  # of the time of all kernels one by one


class PathCosts(Struct, frozen=True, eq=False):
    """Costs of arcs.

    Attributes:
        time: per arc; infinite if it is not possible after all.
        dram_bytes: per arc.
        tie: times that differ by no more are the same.
    """

    time: Column
    dram_bytes: Column
    tie: float = 0.0


class Ranking(Protocol):
    """Tells chains apart that are equally fast, the same way in every solver."""

    @property
    def tie_ns(self) -> float:
        """Times that differ by no more are the same."""

    def rank(self, chain: Chain) -> Rank:
        """Return time in ns, DRAM bytes and configurations of a chain."""


def is_better(one: Rank, other: Rank, tie: float) -> bool:
    """Return whether a chain is better than another one."""
    return one[0] < other[0] - tie or (one[0] <= other[0] + tie and one[1:] < other[1:])


def least_chain(
    arcs: PathArcs, costs: Column | PathCosts, shape: FusionShape, combine: Callable[[Column, Column], Column] = np.add
) -> tuple[float, Chain | None]:
    """Return the least cost of a chain of all kernels, and the chain, or None if there is none.

    Ties go to fewer bytes of DRAM, then to fewer configurations, then to configurations that come early, then to fewer
    kernels done before them.

    Args:
        arcs: possible configurations.
        costs: of each arc.
        shape: how many configurations there are, and which kernels may be in which.
        combine: how costs of configurations come together: a sum, or a maximum.
    """
    if not isinstance(costs, PathCosts):
        costs = PathCosts(costs, np.zeros(len(costs)))
    is_free = shape.is_unlimited and combine is np.add
    best = np.full((3, len(arcs.down_sets)), np.inf)
    best[:, 0] = 0.0
    came_by: list[tuple[Numbers, Numbers]] = []
    for number, step in enumerate(_by_size(arcs) if is_free else _by_slot(arcs, shape)):
        came_by.append(_extend(arcs, costs, step, best, combine))
        if not is_free and not len(came_by[-1][0]) and len(set(shape.allowed[number:])) == 1:
            break  # later configurations may hold the same kernels: they change nothing either
    time = float(best[0, -1])
    if not np.isfinite(time):
        return time, None
    sets = _trace(arcs, came_by)
    chain = [kernels for kernels in sets if kernels] if is_free else sets
    return time, (*chain, *(0 for _ in range(len(shape.allowed) - len(chain))))


class _Step(Struct, frozen=True, eq=False):
    """Arcs of which one may come next, to some down-sets.

    Attributes:
        part: of all arcs.
        starts: where those to each down-set begin, counted from the first of the part.
        usable: which of them are possible.
    """

    part: slice
    starts: Numbers
    usable: Mask | bool = True


def _starts(arcs: PathArcs) -> Numbers:
    """Return where the arcs to each down-set begin."""
    return np.flatnonzero(np.r_[True, arcs.after[1:] != arcs.after[:-1]]) if len(arcs.after) else arcs.after


def _by_slot(arcs: PathArcs, shape: FusionShape) -> Iterator[_Step]:
    """Yield the arcs of each configuration."""
    starts = _starts(arcs)
    usable = {mask: _arcs_without(shape.every_kernel & ~mask, arcs) for mask in dict.fromkeys(shape.allowed)}
    yield from (_Step(slice(0, None), starts, usable[mask]) for mask in shape.allowed)


def _by_size(arcs: PathArcs) -> Iterator[_Step]:
    """Yield the arcs to all down-sets of one size at a time, where any configuration may hold any kernels."""
    starts = _starts(arcs)
    size = np.array([down_set.bit_count() for down_set in arcs.down_sets])[arcs.after[starts]]
    grows = np.flatnonzero(np.r_[True, size[1:] != size[:-1]]) if len(size) else size
    ends = [*starts.tolist(), len(arcs.after)]
    for first, last in pairwise([*grows.tolist(), len(starts)]):
        yield _Step(slice(ends[first], ends[last]), starts[first:last] - ends[first])


def _arcs_without(kernels: int, arcs: PathArcs) -> Mask:
    """Return which arcs hold none of some kernels: the same of these have run before and after."""
    parts: dict[int, int] = {}
    part = np.array([parts.setdefault(down_set & kernels, len(parts)) for down_set in arcs.down_sets], np.int64)
    return np.asarray(part[arcs.before] == part[arcs.after])


def _extend(
    arcs: PathArcs, costs: PathCosts, step: _Step, best: Column, combine: Callable[[Column, Column], Column]
) -> tuple[Numbers, Numbers]:
    """Let chains have one more configuration; return the down-sets with better chains, and the arcs that lead there.

    Args:
        arcs: possible configurations.
        costs: of them.
        step: which of them to take.
        best: rank of the best chain to each down-set, ``[time, DRAM bytes and configurations, down-set]``.
        combine: how costs of configurations come together.
    """
    if not len(step.starts):
        return step.starts, step.starts
    ranks = best.take(arcs.before[step.part], axis=1)
    ranks[0] = np.where(step.usable, combine(ranks[0], costs.time[step.part]), np.inf)
    ranks[1] += costs.dram_bytes[step.part]
    ranks[2] += 1
    found = _first_of_least(step.starts, ranks, costs.tie)
    ends = arcs.after[step.part][found]
    new, old = ranks[:, found], best[:, ends]
    fewer = (new[1] < old[1]) | ((new[1] == old[1]) & (new[2] < old[2]))
    better = (new[0] < old[0] - costs.tie) | ((new[0] <= old[0] + costs.tie) & fewer)
    best[:, ends[better]] = new[:, better]
    return ends[better], step.part.start + found[better]


def _first_of_least(starts: Numbers, ranks: Column, tie: float) -> Numbers:
    """Return the first of the best ranks of every stretch of them; of a stretch that is infinite none.

    Args:
        starts: of the stretches, ascending, the first one 0.
        ranks: those to choose from.
        tie: times that differ by no more are the same.
    """
    count = len(ranks[0])
    sizes = np.diff(np.append(starts, count))
    is_least = np.isfinite(ranks[0]) & (ranks[0] <= np.repeat(np.minimum.reduceat(ranks[0], starts), sizes) + tie)
    for column in ranks[1:]:
        left = np.where(is_least, column, np.inf)
        is_least &= left == np.repeat(np.minimum.reduceat(left, starts), sizes)
    found: Numbers = np.minimum.reduceat(np.where(is_least, np.arange(count), count), starts)
    return found[found < count]


def _trace(arcs: PathArcs, came_by: Sequence[tuple[Numbers, Numbers]]) -> list[int]:
    """Return the set of each step, 0 where there is none, from the down-sets that were reached and the arcs to them."""
    state = len(arcs.down_sets) - 1
    sets = []
    for ends, found in reversed(came_by):
        taken = found[ends == state].tolist()
        sets.append(arcs.mask(taken[0]) if taken else 0)
        state = int(arcs.before[taken[0]]) if taken else state
    return sets[::-1]


def least_chain_of_pmus(model: SetModel, arcs: Arcs, shape: FusionShape) -> tuple[float, Chain | None]:
    """Return the least time of a chain of all kernels, and the chain, or None if there is none.

    Both are those of `least_chain` with exact times, ties included.
    """
    bounds = _Bounds(model, arcs)
    number = {kernels: place for place, kernels in enumerate(arcs.sets)}
    while True:
        time_ns, chain = least_chain(arcs, bounds.arc_times, shape)
        open_sets = [number[kernels] for kernels in chain or () if kernels and not bounds.is_exact[number[kernels]]]
        if not open_sets:
            return time_ns, chain
        for place in open_sets:
            bounds.settle(place)


class _Bounds:
    """Times of sets and arcs: exact ones of sets that are settled, lower bounds of the others."""

    def __init__(self, model: SetModel, arcs: Arcs) -> None:
        self._model = model
        self._arcs = arcs
        # Found once for all pipelines and micro-batches.
        limits = arcs.limits_of(b"bounds" + (model.tile_key or b""), partial(set_limits, model, are_least=True))
        self._compute_ns, self._crossing = limits.compute_ns.copy(), limits.crossing
        self._times = set_times(model, arcs.members, limits)
        self.is_exact = np.zeros(len(arcs.members), bool)
        self.arc_times = arc_times(model, arcs, limits)

    def settle(self, place: int) -> None:
        """Find the time of a set, and raise those of larger sets: no kernel is faster with more beside it."""
        members = self._arcs.members
        row = members[place]
        before_ns = self._compute_ns[place]
        exact = set_limits(self._model, members[place : place + 1])
        self.is_exact[place] = True
        changed = [place]
        self._set_times(np.array([place]), set_times(self._model, members[place : place + 1], exact))
        whole_ns = self._model.tile_compute_ns(members[place : place + 1])[0]
        if before_ns < whole_ns < np.inf:  # where it is infinite larger sets are impossible already
            larger = np.flatnonzero(members[:, row].all(axis=1) & (self._compute_ns < whole_ns) & ~self.is_exact)
            self._compute_ns[larger] = whole_ns
            changed += larger.tolist()
            limits = SetLimits(np.ones(len(larger), np.int64), self._crossing[larger], self._compute_ns[larger])
            self._set_times(larger, set_times(self._model, members[larger], limits))
        is_changed = np.zeros(len(members), bool)
        is_changed[changed] = True
        found = np.flatnonzero(is_changed[self._arcs.added] & np.isfinite(self.arc_times))
        self.arc_times[found] = self._times[self._arcs.added[found]]

    def _set_times(self, rows: npt.NDArray[np.intp], times: Column) -> None:
        """Never lower a bound: sums in another order differ in the last digit."""
        self._times[rows] = np.maximum(self._times[rows], times)
