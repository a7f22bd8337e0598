"""Configurations of a graph as columns: pairs of down-sets with their times and DRAM bytes."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dfcompile.dfmodel_backend.columns import Column, Members, Numbers
from dfcompile.dfmodel_backend.intra_chip.configuration import ConfigurationModel
from dfcompile.dfmodel_backend.intra_chip.core_times import least_cycles_of_counts
from dfcompile.dfmodel_backend.intra_chip.pair_bytes import PairBytes
from dfcompile.dfmodel_backend.kernel_sets.arcs import members_of

PAIRS = 500_000  # of down-sets at a time
ROWS = 256  # of smaller down-sets at a time: of those near to each other the larger ones are the same
LARGEST_KEY = 2**62


@dataclass(frozen=True, eq=False, slots=True)
class GraphArcs:
    """Possible configurations.

    Attributes:
        down_sets: as masks, smaller ones first.
        before: number of the down-set that ran earlier, per arc.
        after: number of the down-set that has run then, per arc; ascending.
        time_ns: per arc.
        dram_bytes: moved, per arc.
    """

    down_sets: tuple[int, ...]
    before: Numbers
    after: Numbers
    time_ns: Column
    dram_bytes: Column

    def mask(self, arc: int) -> int:
        """Return the set of kernels of an arc."""
        return self.down_sets[int(self.after[arc])] ^ self.down_sets[int(self.before[arc])]


@dataclass(frozen=True, eq=False, slots=True)
class _Pairs:
    count: int  # those that do not fit, too
    before: Numbers
    after: Numbers
    dram_bytes: Column


def graph_arcs(model: ConfigurationModel, down_sets: tuple[int, ...], most: int, budget: int) -> GraphArcs | None:
    """Return all possible configurations between down-sets, or None if there are more pairs than the budget.

    Args:
        model: costs and limits of the chip.
        down_sets: smaller ones first.
        most: kernels of a configuration.
        budget: pairs of which one holds the other.
    """
    members = members_of(down_sets, len(model.workload.kernels))
    blocks: list[_Pairs] = []
    for block in _pairs(model, members, most):
        budget -= block.count
        if budget < 0:
            return None
        blocks.append(block)
    before = np.concatenate([block.before for block in blocks])
    after = np.concatenate([block.after for block in blocks])
    dram_bytes = np.concatenate([block.dram_bytes for block in blocks])
    order = np.lexsort((before, after))
    before, after, dram_bytes = before[order], after[order], dram_bytes[order]
    time_ns = _times(model, members, before, after, dram_bytes)
    _settle_single_kernels(model, members, (before, after), time_ns, dram_bytes)
    possible = np.isfinite(time_ns)
    return GraphArcs(down_sets, before[possible], after[possible], time_ns[possible], dram_bytes[possible])


def _pairs(model: ConfigurationModel, members: Members, most: int) -> Iterator[_Pairs]:
    """Yield pairs that fit SRAM and DRAM, by blocks of the smaller down-sets; a kernel alone counts as fitting."""
    tables = PairBytes(model.workload, model.dram_always_fits)
    states = tables.states(members)
    sizes = members.sum(axis=1)
    capacity = model.system.accelerator.sram_bytes or np.inf
    weights = sum(weight.size_bytes for weight in model.workload.weights)
    room = np.inf if model.dram_always_fits else model.system.dram_capacity_bytes - weights
    first = 0
    while first < len(members):
        reach = int(np.searchsorted(sizes, sizes[first] + most, side="right")) - first
        last = min(len(members), first + max(1, min(ROWS, PAIRS // max(1, reach))))
        end = int(np.searchsorted(sizes, sizes[last - 1] + most, side="right"))
        before, after = _ordered(members[first:last], members[first:end], sizes[first:end], most)
        if len(before):
            figures = tables.figures(states[first:last], states[first:end])
            traffic, sram, *alive = (figure[before, after] for figure in figures)
            fits = (sizes[first + after] - sizes[first + before] == 1) | (sram <= capacity)
            for live in alive:
                fits &= live <= room
            yield _Pairs(len(before), first + before[fits], first + after[fits], traffic[fits])
        first = last
    yield _Pairs(0, np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))


def _ordered(
    smaller: Members, larger: Members, sizes: npt.NDArray[np.int64], most: int
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return the pairs of which the second holds the first and up to ``most`` kernels more."""
    changing = np.flatnonzero(larger.any(axis=0) & ~smaller.all(axis=0))
    part = smaller[:, changing].astype(np.float32)
    shared = part @ larger[:, changing].astype(np.float32).T
    more = sizes[None, :] - sizes[: len(smaller), None]
    pairs = np.nonzero((shared == part.sum(axis=1)[:, None]) & (more > 0) & (more <= most))
    return pairs[0], pairs[1]


def _times(model: ConfigurationModel, members: Members, before: Numbers, after: Numbers, dram_bytes: Column) -> Column:
    network = np.array([kernel.network_ns for kernel in model.workload.kernels], float)
    exchanged = members @ network
    network_ns = np.maximum(exchanged[after] - exchanged[before], 0.0)
    compute_ns = _compute_ns(model, members, before, after)
    return model.options.overlap.times_ns(compute_ns, dram_bytes / model.system.dram_gb_per_s, network_ns)


def _compute_ns(model: ConfigurationModel, members: Members, before: Numbers, after: Numbers) -> Column:
    chip = model.system.accelerator
    if model.options.compute_utilization > 0:
        flop = members @ np.array([kernel.flop for kernel in model.workload.kernels], float)
        return np.asarray((flop[after] - flop[before]) / (model.options.compute_utilization * chip.peak_gflops))
    tables, numbers = np.unique(np.array(model.table_numbers, np.int64), return_inverse=True)
    which = (numbers[:, None] == np.arange(len(tables))).astype(np.float32)
    counts = np.rint(members.astype(np.float32) @ which).astype(np.int64)
    found_tables = tuple(model.tables[number] for number in tables)
    first, inverse = _different(counts, before, after)
    cycles = np.empty(len(first))
    for start in range(0, len(first), PAIRS):
        part = first[start : start + PAIRS]
        wanted = (counts[after[part]] - counts[before[part]]).astype(np.int32)
        cycles[start : start + PAIRS] = least_cycles_of_counts(found_tables, wanted, chip.cores)
    return np.asarray(cycles[inverse] / chip.frequency_ghz)


def _different(counts: Numbers, before: Numbers, after: Numbers) -> tuple[Numbers, Numbers]:
    """Return one arc of each multiset of equal kernels, and which of them every arc is like."""
    radix = [int(count) + 1 for count in counts[-1]] if len(counts) else []
    place, places = 1, []
    for size in radix:
        places.append(place)
        place *= size
    if place > LARGEST_KEY:
        everything = np.arange(len(before))
        return everything, everything
    keys = counts @ np.array(places, np.int64)
    _, first, inverse = np.unique(keys[after] - keys[before], return_index=True, return_inverse=True)
    return first, inverse


def _settle_single_kernels(
    model: ConfigurationModel, members: Members, ends: tuple[Numbers, Numbers], time_ns: Column, dram_bytes: Column
) -> None:
    """Put in the figures of kernels alone: only they may have their weights in several tiles."""
    before, after = ends
    sizes = members.sum(axis=1)
    alone = np.flatnonzero(sizes[after] - sizes[before] == 1)
    for start in range(0, len(alone), PAIRS):
        part = alone[start : start + PAIRS]
        kernels = np.argmax(members[after[part]] & ~members[before[part]], axis=1)
        for kernel in np.unique(kernels).tolist():
            rows = part[kernels == kernel]
            figures = model.time_and_bytes(1 << kernel)
            time_ns[rows], dram_bytes[rows] = figures or (np.inf, np.inf)
