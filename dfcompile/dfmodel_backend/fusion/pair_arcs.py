"""Configurations of a graph as columns: pairs of down-sets with their times and DRAM bytes, millions at a time."""

from functools import lru_cache

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from dfcompile.dfmodel_backend.columns import CELLS, Column, Members, Numbers, members_of, sums_over
from dfcompile.dfmodel_backend.intra_chip.cores import least_cycles
from dfcompile.dfmodel_backend.intra_chip.flow_columns import PairBytes
from dfcompile.dfmodel_backend.intra_chip.graph_model import GraphModel
from dfcompile.dfmodel_backend.kernel_sets import PathArcs

PAIRS = 500_000  # of down-sets at a time
ROWS = 256  # of smaller down-sets at a time: of those near to each other the larger ones are the same
LARGEST_KEY = 2**62


class PairArcs(PathArcs, frozen=True, eq=False):
    """Possible configurations with what they take.

    Attributes:
        time_ns: per arc.
        dram_bytes: moved, per arc.
    """

    time_ns: Column
    dram_bytes: Column


class _Block(Struct, frozen=True, eq=False):
    """Pairs of smaller down-sets from ``first`` to ``last`` with others before ``end``; counted from the first."""

    first: int
    last: int
    end: int
    before: npt.NDArray[np.int32]
    after: npt.NDArray[np.int32]


def pair_arcs(
    model: GraphModel, down_sets: tuple[int, ...], most: int, budget: int, alone: tuple[Column, Column]
) -> PairArcs | None:
    """Return all possible configurations between down-sets, or None if there are more pairs than the budget.

    Args:
        model: costs and limits of the chip.
        down_sets: smaller ones first.
        most: kernels of a configuration.
        budget: pairs of which one holds the other.
        alone: time and DRAM bytes of each kernel alone: only then weights may come in several tiles.
    """
    pairs = _ordered(down_sets, len(model.works), most, budget)
    if pairs is None:
        return None
    members, blocks = pairs
    tables = PairBytes(model.flows, model.held, is_dram_free=model.dram_room >= model.most_waiting)
    fitting = zip(*(_fitting(model, tables, members, block) for block in blocks), strict=True)
    before, after, dram_bytes = map(np.concatenate, fitting)
    order = np.lexsort((before, after))
    before, after, dram_bytes = before[order], after[order], dram_bytes[order]
    exchanged = sums_over(members, model.network_parts()[0])
    network_ns = np.maximum(exchanged[after] - exchanged[before], 0.0)
    compute_ns = _compute_ns(model, members, before, after)
    time_ns = model.rules.overlap.times_ns(compute_ns, dram_bytes / model.machine.dram_gb_per_s, network_ns)
    times, moved = alone
    sizes = members.sum(axis=1)
    single = np.flatnonzero(sizes[after] - sizes[before] == 1)
    at_a_time = max(1, min(PAIRS, CELLS // max(1, members.shape[1])))
    for start in range(0, len(single), at_a_time):
        part = single[start : start + at_a_time]
        kernels = np.argmax(members[after[part]] & ~members[before[part]], axis=1)
        time_ns[part], dram_bytes[part] = times[kernels], moved[kernels]
    possible = np.isfinite(time_ns)
    return PairArcs(down_sets, before[possible], after[possible], time_ns[possible], dram_bytes[possible])


@lru_cache(maxsize=2)  # of one graph whatever its kernels cost, as where shardings are compared: a quarter of the time
def _ordered(down_sets: tuple[int, ...], kernels: int, most: int, budget: int) -> tuple[Members, list[_Block]] | None:
    """Return the pairs of which the second holds the first and up to ``most`` kernels more; None above the budget."""
    members = members_of(down_sets, kernels)
    members.setflags(write=False)
    sizes = members.sum(axis=1)
    blocks: list[_Block] = []
    first = 0
    while first < len(members):
        reach = int(np.searchsorted(sizes, sizes[first] + most, side="right")) - first
        last = min(len(members), first + max(1, min(ROWS, PAIRS // max(1, reach))))
        end = int(np.searchsorted(sizes, sizes[last - 1] + most, side="right"))
        smaller, larger = members[first:last], members[first:end]
        changing = np.flatnonzero(larger.any(axis=0) & ~smaller.all(axis=0))
        part = smaller[:, changing].astype(np.float32)
        shared = part @ larger[:, changing].astype(np.float32).T
        more = sizes[None, first:end] - sizes[first:last, None]
        before, after = np.nonzero((shared == part.sum(axis=1)[:, None]) & (more > 0) & (more <= most))
        budget -= len(before)
        if budget < 0:
            return None
        blocks.append(_Block(first, last, end, before.astype(np.int32), after.astype(np.int32)))
        first = last
    return members, blocks


def _fitting(model: GraphModel, tables: PairBytes, members: Members, block: _Block) -> tuple[Numbers, Numbers, Column]:
    """Return the pairs of a block that fit SRAM and DRAM, and what they move; a kernel alone counts as fitting."""
    first, before, after = block.first, block.before, block.after
    figures = tables.figures(members[first : block.last], members[first : block.end])
    traffic, sram, *alive = (figure[before, after] for figure in figures)
    sizes = members[first : block.end].sum(axis=1)
    fits = (sizes[after] - sizes[before] == 1) | (sram <= (model.sram_capacity or np.inf))
    for live in alive:
        fits &= live <= model.dram_room
    return first + before[fits].astype(np.int64), first + after[fits].astype(np.int64), traffic[fits]


def _compute_ns(model: GraphModel, members: Members, before: Numbers, after: Numbers) -> Column:
    chip = model.machine
    if model.rules.utilization > 0:
        flop = sums_over(members, model.flop)
        return np.asarray((flop[after] - flop[before]) / (model.rules.utilization * chip.peak_gflops))
    found_tables, numbers = model.different_tables
    which = (numbers[:, None] == np.arange(len(found_tables))).astype(np.float32)
    counts = np.rint(sums_over(members, which)).astype(np.int64)
    first, inverse = _different(counts, before, after)
    counts = counts.astype(np.min_scalar_type(-1 - len(numbers)))
    compute_ns = np.empty(len(first))
    at_a_time = max(1, min(PAIRS, CELLS // max(1, counts.shape[1])))
    for start in range(0, len(first), at_a_time):
        part = first[start : start + at_a_time]
        wanted = counts[after[part]]
        wanted -= counts[before[part]]
        compute_ns[start : start + at_a_time] = model.ns_of(least_cycles(found_tables, wanted, chip.cores))
    return np.asarray(compute_ns[inverse])


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
