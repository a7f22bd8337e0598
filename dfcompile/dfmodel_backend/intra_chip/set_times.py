"""Which sets of kernels fit a chip, and their times, for many sets and arcs at once.

Weights of a kernel alone may come in tiles: they take less SRAM then, or fewer memory units (PMUs), so that more of
those are left to feed cores.
"""

from bisect import bisect_left
from collections.abc import Iterator
from functools import partial

import numpy as np
from msgspec.structs import astuple

from dfcompile.dfmodel_backend.columns import Column, Mask, Members, Numbers, members_of
from dfcompile.dfmodel_backend.intra_chip.memory_units import PmuModel
from dfcompile.dfmodel_backend.intra_chip.set_model import SetModel
from dfcompile.dfmodel_backend.kernel_sets import Arcs, SetLimits

CHUNK = 8192  # rows that are worked on at a time, to bound memory
CELLS = 2**22  # rows times kernels at a time: fewer rows of more than 512 kernels
ROUNDING = 1e-12


def set_limits(model: SetModel, members: Members, *, are_least: bool = False) -> SetLimits:
    """Return which sets of kernels, ``[set, kernel]``, break no limit of cores or SRAM.

    Args:
        model: of the chip.
        members: of the sets.
        are_least: whether, where memory units are counted, cores are the only limit of speed. No set that is possible
            is left out then, and none is slower: compute is that of cores, weights are whole.
    """
    tiles = np.zeros(len(members), np.int64)
    crossing, compute_ns = (np.full(len(members), np.inf) for _ in range(2))
    for part in _parts(model, len(members)):
        if are_least and model.pmu is not None:
            tiles[part] = fewest_pmus(model, members[part]) <= model.pmu.pmus
        else:
            tiles[part] = fewest_weight_tiles(model, members[part])
        tiles[part] *= _fits_cores(model, members[part])
        rows = part.start + np.flatnonzero(tiles[part])
        inside, parts = members[rows], tiles[rows]
        crossing[rows] = model.crossing_bytes(inside, parts)
        compute_ns[rows] = model.ns_of(model.cycles(inside)) if are_least else model.tile_compute_ns(inside, parts)
    return SetLimits(tiles, crossing, compute_ns)


def _fits_cores(model: SetModel, members: Members) -> Mask:
    """Return which sets have a core for each kernel, and do not mix kernels that run once per input with others."""
    fits: Mask = members.sum(axis=1) <= model.machine.cores
    inputs = model.inputs > 0
    if inputs.any():
        fits &= ~((members & inputs).any(axis=1) & (members & ~inputs).any(axis=1))
    return fits


def _parts(model: SetModel, rows: int) -> Iterator[slice]:
    """Yield stretches of so many rows that are worked on at a time."""
    at_a_time = max(1, min(CHUNK, CELLS // max(1, len(model.works))))
    yield from (slice(start, start + at_a_time) for start in range(0, rows, at_a_time))


def fewest_weight_tiles(model: SetModel, members: Members) -> Numbers:
    """Return the fewest tiles in which the weights of each set come so that it fits SRAM, 0 if it does not.

    More than one is possible for a kernel alone; fewer are never slower, but where memory units are counted: there it
    is the tiles with which the kernel is fastest.
    """
    tiles = np.ones(len(members), np.int64)
    is_alone = members.sum(axis=1) == 1
    if model.pmu is not None:
        tiles[model.pmu.least_pmus(members) > model.pmu.pmus] = 0
    elif model.sram_capacity:
        tiles[~is_alone] = model.sram_bytes(members[~is_alone]) <= model.sram_capacity
    for row in np.flatnonzero(is_alone):
        tiles[row] = tiles_alone(model, int(np.argmax(members[row]))) or 0
    return tiles


def tiles_alone(model: SetModel, kernel: int) -> int | None:
    """Return the fewest tiles in which the weights of a kernel alone come so that it fits, or None if it never does."""
    if model.pmu is not None:
        return fastest_weight_tiles(model, kernel)
    capacity, most = model.sram_capacity, model.most_weight_tiles[kernel]
    if not capacity or model.sram_alone(kernel, 1) <= capacity:
        return 1
    if most == 1 or model.sram_alone(kernel, most) > capacity:
        return None
    return 2 + bisect_left(range(2, most), x=True, key=lambda parts: model.sram_alone(kernel, parts) <= capacity)


def set_times(model: SetModel, members: Members, limits: SetLimits | None = None) -> Column:
    """Return the time of each set of kernels, infinite if it breaks a limit of cores or SRAM."""
    return set_figures(model, members, limits)[0]


def set_figures(model: SetModel, members: Members, limits: SetLimits | None = None) -> tuple[Column, Column]:
    """Return the time and the DRAM bytes of each set of kernels, infinite if it breaks a limit of cores or SRAM."""
    found = limits or set_limits(model, members)
    times, dram_bytes = (np.full(len(members), np.inf) for _ in range(2))
    possible = np.flatnonzero(found.weight_tiles)
    for part in _parts(model, len(possible)):
        rows = possible[part]
        columns = model.steps(members[rows], found.weight_tiles[rows], found.crossing[rows], found.compute_ns[rows])
        times[rows] = columns.time_ns
        dram_bytes[rows] = np.rint(columns.dram_bytes)
    return times, dram_bytes


def _limits_of_arcs(model: SetModel, arcs: Arcs) -> SetLimits:
    """Return what the sets of arcs are limited by; it is found once for all pipelines and micro-batches.

    Where memory units are counted the best tiles of weights depend on those, too.
    """
    if model.pmu is not None or model.tile_key is None:
        return set_limits(model, arcs.members)
    return arcs.limits_of(model.tile_key, partial(set_limits, model))


def arc_times(model: SetModel, arcs: Arcs, limits: SetLimits | None = None) -> Column:
    """Return the time of each arc, infinite if it breaks a limit of cores, SRAM or DRAM.

    ``limits`` of the sets of the arcs may be given.
    """
    return arc_figures(model, arcs, limits)[0]


def arc_figures(model: SetModel, arcs: Arcs, limits: SetLimits | None = None) -> tuple[Column, Column]:
    """Return the time and the DRAM bytes of each arc; the time is infinite if it breaks a limit.

    ``limits`` of the sets of the arcs may be given.
    """
    room = model.dram_room
    if room >= model.most_waiting:
        set_ns, set_bytes = set_figures(model, arcs.members, limits or _limits_of_arcs(model, arcs))
        return set_ns[arcs.added], set_bytes[arcs.added]
    times, dram_bytes = (np.full(len(arcs.added), np.inf) for _ in range(2))
    before = members_of(arcs.down_sets, len(model.works))
    cut = model.waiting_bytes(before, np.zeros_like(before))
    # What is cut by the border before or after waits; where both together are too much it matters what is cut twice.
    # Kernels with several inputs are not tiled: they let a tile wait.
    least = cut / model.tiles if model.inputs.any() else cut
    possible = np.flatnonzero((least[arcs.before] <= room) & (least[arcs.after] <= room))
    needed, place = np.unique(arcs.added[possible], return_inverse=True)
    known = limits and SetLimits(*(column[needed] for column in astuple(limits)))
    set_ns, set_bytes = set_figures(model, arcs.members[needed], known)
    times[possible], dram_bytes[possible] = set_ns[place], set_bytes[place]
    doubtful = possible[cut[arcs.before[possible]] + cut[arcs.after[possible]] > room]
    doubtful = doubtful[np.isfinite(times[doubtful])]
    for part in _parts(model, len(doubtful)):
        rows = doubtful[part]
        waiting = model.waiting_bytes(before[arcs.before[rows]], arcs.members[arcs.added[rows]])
        times[rows] = np.where(waiting <= room, times[rows], np.inf)
    return times, dram_bytes


def fewest_pmus(model: SetModel, members: Members) -> Column:
    """Return the PMUs without which sets of kernels, ``[set, kernel]``, are impossible at any speed.

    A kernel has one core; one that is alone loads its weights in as many parts as it has rows.
    """
    assert model.pmu is not None
    needed = model.pmu.least_pmus(members)
    for number in np.flatnonzero(members.sum(axis=1) == 1).tolist():
        kernel = int(np.argmax(members[number]))
        needed[number] = model.pmu.least_pmus_alone(kernel, model.most_weight_tiles[kernel])
    return needed


def weight_tile_choices(model: SetModel, kernel: int) -> Iterator[tuple[int, int]]:
    """Yield parts in which a kernel alone may load its weights, ascending, and its cycles: only where they are fewer.

    Nothing is yielded if it does not fit in any number of parts.
    """
    pmu = model.pmu
    assert pmu is not None
    most = model.most_weight_tiles[kernel]
    if pmu.least_pmus_alone(kernel, most) > pmu.pmus:
        return
    fastest = pmu.least_cycles((kernel,), most)
    parts = _fewest(pmu, kernel, most, pmu.tables[kernel].cycles[-1], 0)
    while True:
        cycles = pmu.least_cycles((kernel,), parts)
        assert cycles is not None
        assert fastest is not None
        yield parts, cycles
        if cycles <= fastest:
            return
        parts = _fewest(pmu, kernel, most, cycles - 1, parts)


def _fewest(pmu: PmuModel, kernel: int, most: int, cycles: int, too_few: int) -> int:
    """Return the fewest parts, more than some, with which a kernel alone meets a number of cycles; ``most`` does."""
    parts = range(too_few + 1, most)
    return too_few + 1 + bisect_left(parts, x=True, key=lambda one: pmu.is_possible((kernel,), one, cycles))


def fastest_weight_tiles(model: SetModel, kernel: int) -> int | None:
    """Return the parts with which a kernel alone is fastest, the fewest of them; None if it does not fit in any.

    Parts cost traffic and save PMUs.
    """
    row = np.arange(len(model.works))[None, :] == kernel
    is_counted = "M" in model.rules.counted
    best: tuple[float, int] | None = None
    for parts, _ in weight_tile_choices(model, kernel):
        step = model.steps(row, np.array([parts], np.int64))
        time_ns = float(step.time_ns[0])
        if best is None or time_ns < best[0] * (1 - ROUNDING):
            best = time_ns, parts
        elif is_counted and step.memory_ns[0] * max(1, int(model.inputs[kernel])) >= best[0]:
            break
    return None if best is None else best[1]
