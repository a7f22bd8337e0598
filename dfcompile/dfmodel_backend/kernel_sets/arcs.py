"""Possible configurations: pairs of down-sets of kernels, as columns."""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import accumulate, islice
from operator import or_

import numpy as np
from msgspec import Struct, field

from dfcompile.dfmodel_backend.columns import Column, Members, Numbers, members_of
from dfcompile.dfmodel_backend.kernel_sets.down_sets import DownSets
from dfcompile.dfmodel_backend.kernel_sets.shape import FusionShape

MOST_LIMITS = 10_000_000  # sets whose limits are kept, 24 bytes each


class SetLimits(Struct, frozen=True, eq=False):
    """Which sets are possible, and what they have.

    Attributes:
        weight_tiles: parts in which each loads its weights; 0 of one that is not possible.
        crossing: bytes per tile at the border of each.
        compute_ns: of a tile of each.
    """

    weight_tiles: Numbers
    crossing: Column
    compute_ns: Column


class PathArcs(Struct, frozen=True, eq=False):
    """Possible configurations, each a pair of down-sets; kernels are numbered.

    Attributes:
        down_sets: all of them as masks, smaller ones first.
        before: number of the down-set that ran earlier, per arc.
        after: number of the down-set that has run then, per arc; ascending.
    """

    down_sets: tuple[int, ...]
    before: Numbers
    after: Numbers

    def mask(self, arc: int) -> int:
        """Return the set of kernels of an arc."""
        return self.down_sets[int(self.after[arc])] ^ self.down_sets[int(self.before[arc])]


class Arcs(PathArcs, frozen=True, eq=False):
    """Possible configurations with their sets of kernels, each of them once.

    Attributes:
        added: number of the set of kernels of the configuration, per arc.
        sets: the different sets, as masks.
        members: the same as ``[set, kernel]``.
        limits: which sets are possible, by what that depends on: filled as it becomes known.
    """

    added: Numbers
    sets: tuple[int, ...]
    members: Members
    limits: dict[bytes, SetLimits] = field(default_factory=dict)

    def limits_of(self, key: bytes, find: Callable[[Members], SetLimits]) -> SetLimits:
        """Return which sets are possible; what is found for a key is kept as long as there is room."""
        if key in self.limits:
            return self.limits[key]
        found = find(self.members)
        if len(self.limits) < MOST_LIMITS // max(1, len(self.members)):
            self.limits[key] = found
        return found


def arcs_of(shape: FusionShape, lattice: DownSets, may_grow: Callable[[int], bool]) -> Arcs:
    """Return the configurations whose kernels may share a slot, larger ones as far as they may be possible."""
    arcs = arcs_within(shape, lattice, may_grow, len(lattice.larger) ** 2)
    assert arcs is not None  # no more than pairs
    return arcs


def arcs_within(shape: FusionShape, lattice: DownSets, may_grow: Callable[[int], bool], most: int) -> Arcs | None:
    """Return the configurations whose kernels may share a slot, or None if that are more than ``most``.

    Args:
        shape: of the problem.
        lattice: all down-sets, or some.
        may_grow: whether sets that hold a set of kernels may be possible.
        most: configurations, larger ones as far as they may be possible.
    """
    beyond = tuple(shape.every_kernel & ~mask for mask in dict.fromkeys(shape.allowed))
    takes_all = 0 in beyond  # some slot does

    def is_allowed(added: int) -> bool:
        return takes_all or any(not added & kernels for kernels in beyond)

    @cache
    def grows(added: int) -> bool:
        return is_allowed(added) and may_grow(added)

    pairs = (pair for pair in _pairs(shape, lattice, grows) if is_allowed(pair[0] ^ pair[1]))
    found = list(islice(pairs, most + 1))
    return arcs_between(lattice, found, len(shape.predecessors)) if len(found) <= most else None


def arcs_between(lattice: DownSets, pairs: Sequence[tuple[int, int]], count: int) -> Arcs:
    """Return the configurations that lead from one down-set of ``count`` kernels to another one that holds it."""
    number = {down_set: place for place, down_set in enumerate(lattice)}
    sets: dict[int, int] = {}
    rows = [(number[after], number[before], sets.setdefault(after ^ before, len(sets))) for before, after in pairs]
    after, before, added = np.array(sorted(rows), np.int64).reshape(-1, 3).T
    return Arcs(tuple(lattice), before, after, added, tuple(sets), members_of(tuple(sets), count))


def arcs_of_chain(chain: tuple[int, ...], count: int) -> Arcs:
    """Return the configurations of a chain of sets of ``count`` kernels in their order; empty sets are none."""
    used = tuple(kernels for kernels in chain if kernels)
    positions = np.arange(len(used))
    return Arcs(
        down_sets=(0, *accumulate(used, or_)),
        before=positions,
        after=positions + 1,
        added=positions,
        sets=used,
        members=members_of(used, count),
    )


def _pairs(shape: FusionShape, lattice: DownSets, grows: Callable[[int], bool]) -> Iterator[tuple[int, int]]:
    most = min(shape.most_kernels, len(shape.predecessors))
    for before in lattice:
        for after in lattice.supersets(before, most, grows):
            yield before, after
    for before, after in shape.middle_pairs(lattice):
        if grows(after ^ before):
            yield before, after
