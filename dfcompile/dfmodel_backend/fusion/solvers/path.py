"""Fusion as a shortest path over down-sets, by dynamic programming: exact.

Chains of the same time are told apart by their DRAM bytes, then by the number of their configurations. The same time is
what differs by less than a tie, far below the times of configurations: sums in another order differ in the last digits.
"""

import itertools
import math
from collections.abc import Callable
from typing import Protocol

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from dfcompile.dfmodel_backend.columns import Column, Numbers
from dfcompile.dfmodel_backend.kernel_sets.arcs import PathArcs
from dfcompile.dfmodel_backend.kernel_sets.shape import FusionShape

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

    @property
    def ns_per_byte(self) -> float:
        """Time of a byte of DRAM traffic."""

    def rank(self, chain: Chain) -> Rank:
        """Return time in ns, DRAM bytes and configurations of a chain."""


def is_better(one: Rank, other: Rank, tie: float) -> bool:
    """Return whether a chain is better than another one."""
    return one[0] < other[0] - tie or (one[0] <= other[0] + tie and one[1:] < other[1:])


def least_chain(
    arcs: PathArcs,
    costs: Column | PathCosts,
    shape: FusionShape,
    combine: Callable[[Column, Column], Column] = np.add,
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
    if shape.is_unlimited and combine is np.add:
        return _chain_of_any_length(arcs, costs, len(shape.allowed))
    allowed = arcs_by_slot(shape, arcs)
    starts = np.flatnonzero(np.r_[True, arcs.after[1:] != arcs.after[:-1]]) if len(arcs.after) else arcs.after
    best = _Best.start(len(arcs.down_sets))
    came_by: list[Numbers] = []
    for slot, usable in enumerate(allowed):
        following, by = _after_slot(arcs, costs, usable, starts, best, combine)
        is_settled = bool((by < 0).all()) and len(set(shape.allowed[slot:])) == 1
        best = following
        came_by.append(by)
        if is_settled:  # later configurations may hold the same kernels: they change nothing either
            break
    if not np.isfinite(best.time[-1]):
        return float("inf"), None
    return float(best.time[-1]), _trace(arcs, came_by, len(allowed))


def arcs_by_slot(shape: FusionShape, arcs: PathArcs) -> list[npt.NDArray[np.bool_]]:
    """Return which arcs are possible, per configuration."""
    known: dict[int, npt.NDArray[np.bool_]] = {}
    columns = []
    for mask in shape.allowed:
        if mask not in known:
            known[mask] = _arcs_without(shape.every_kernel & ~mask, arcs)
        columns.append(known[mask])
    return columns


def _arcs_without(kernels: int, arcs: PathArcs) -> npt.NDArray[np.bool_]:
    """Return which arcs hold none of some kernels: the same of these have run before and after."""
    parts: dict[int, int] = {}
    part = np.array([parts.setdefault(down_set & kernels, len(parts)) for down_set in arcs.down_sets], np.int64)
    same: npt.NDArray[np.bool_] = part[arcs.before] == part[arcs.after]
    return same


class _Best(Struct, frozen=True, eq=False):
    """Ranks of the best chains to each of many down-sets, as columns."""

    time: Column
    dram_bytes: Column
    configurations: Column

    @staticmethod
    def start(count: int) -> "_Best":
        columns = [np.full(count, np.inf) for _ in range(3)]
        for column in columns:
            column[0] = 0.0
        return _Best(*columns)


def _after_slot(
    arcs: PathArcs,
    costs: PathCosts,
    usable: npt.NDArray[np.bool_],
    starts: Numbers,
    best: _Best,
    combine: Callable[[Column, Column], Column],
) -> tuple[_Best, Numbers]:
    """Return the best chains with one more configuration, and the arc by which each was improved, or -1."""
    by = np.full(len(best.time), -1, np.int64)
    if not len(starts):
        return best, by
    time = np.where(usable, combine(best.time[arcs.before], costs.time), np.inf)
    dram_bytes = best.dram_bytes[arcs.before] + costs.dram_bytes
    configurations = best.configurations[arcs.before] + 1
    found = _first_of_least(starts, _Best(time, dram_bytes, configurations), costs.tie)
    ends = arcs.after[found]
    new = (time[found], dram_bytes[found], configurations[found])
    old = (best.time[ends], best.dram_bytes[ends], best.configurations[ends])
    fewer = (new[1] < old[1]) | ((new[1] == old[1]) & (new[2] < old[2]))
    better = (new[0] < old[0] - costs.tie) | ((new[0] <= old[0] + costs.tie) & fewer)
    columns = [best.time.copy(), best.dram_bytes.copy(), best.configurations.copy()]
    for column, values in zip(columns, new, strict=True):
        column[ends[better]] = values[better]
    by[ends[better]] = found[better]
    return _Best(*columns), by


def _first_of_least(starts: Numbers, ranks: _Best, tie: float) -> Numbers:
    """Return the first of the best ranks of every stretch of them; of a stretch that is infinite none.

    Args:
        starts: of the stretches, ascending, the first one 0.
        ranks: those to choose from.
        tie: times that differ by no more are the same.
    """
    count = len(ranks.time)
    sizes = np.diff(np.append(starts, count))
    is_least = np.isfinite(ranks.time) & (ranks.time <= np.repeat(np.minimum.reduceat(ranks.time, starts), sizes) + tie)
    for column in (ranks.dram_bytes, ranks.configurations):
        left = np.where(is_least, column, np.inf)
        is_least &= left == np.repeat(np.minimum.reduceat(left, starts), sizes)
    found: Numbers = np.minimum.reduceat(np.where(is_least, np.arange(count), count), starts)
    return found[found < count]


def _chain_of_any_length(arcs: PathArcs, costs: PathCosts, slots: int) -> tuple[float, Chain | None]:
    """Return the best chain where any configuration may hold any kernels: all down-sets of one size at a time."""
    best = _Best.start(len(arcs.down_sets))
    came_by = np.full(len(arcs.down_sets), -1, np.int64)
    starts = np.flatnonzero(np.r_[True, arcs.after[1:] != arcs.after[:-1]]) if len(arcs.after) else arcs.after
    size = np.array([down_set.bit_count() for down_set in arcs.down_sets])[arcs.after[starts]]
    grows = np.flatnonzero(np.r_[True, size[1:] != size[:-1]]) if len(size) else size
    for first, last in itertools.pairwise([*grows.tolist(), len(starts)]):
        begin, end = int(starts[first]), int(starts[last]) if last < len(starts) else len(arcs.after)
        before = arcs.before[begin:end]
        ranks = _Best(
            best.time[before] + costs.time[begin:end],
            best.dram_bytes[before] + costs.dram_bytes[begin:end],
            best.configurations[before] + 1,
        )
        found = _first_of_least(starts[first:last] - begin, ranks, costs.tie)
        ends = arcs.after[begin + found]
        best.time[ends], best.dram_bytes[ends] = ranks.time[found], ranks.dram_bytes[found]
        best.configurations[ends] = ranks.configurations[found]
        came_by[ends] = begin + found
    if not math.isfinite(best.time[-1]):
        return float("inf"), None
    chain: list[int] = []
    state = len(arcs.down_sets) - 1
    while state:
        arc = int(came_by[state])
        chain.append(arcs.mask(arc))
        state = int(arcs.before[arc])
    chain.reverse()
    return float(best.time[-1]), (*chain, *(0 for _ in range(slots - len(chain))))


def _trace(arcs: PathArcs, came_by: list[Numbers], slots: int) -> Chain:
    """Return the set of each configuration from the arcs by which down-sets were reached."""
    state = len(arcs.down_sets) - 1
    chain = [0] * slots
    for slot in range(len(came_by) - 1, -1, -1):
        arc = int(came_by[slot][state])
        if arc >= 0:
            chain[slot] = arcs.mask(arc)
            state = int(arcs.before[arc])
    return tuple(chain)
