"""Which sets of kernels the search of configurations may choose: all, or those along a few topological orders."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from dfcompile.dfmodel_backend.columns import Numbers, members_of
from dfcompile.dfmodel_backend.kernel_sets.arcs import Arcs, arcs_within
from dfcompile.dfmodel_backend.kernel_sets.down_sets import DownSets
from dfcompile.dfmodel_backend.kernel_sets.shape import FusionShape
from dfcompile.distinct import distinct
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
        lattice, most = _one_order(count), 1
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


def _one_order(count: int) -> DownSets:
    prefixes = [(1 << done) - 1 for done in range(count + 1)]
    larger = {before: (after,) for before, after in pairwise(prefixes)}
    return DownSets({**larger, prefixes[-1]: ()})
