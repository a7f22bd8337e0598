"""Times of configurations of a sharded and tiled design, and which of them fit cores, SRAM and DRAM."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dfcompile.dfmodel_backend.columns import Column, Members
from dfcompile.dfmodel_backend.intra_chip.dram import dram_need, waiting_bytes
from dfcompile.dfmodel_backend.intra_chip.set_limits import CHUNK, set_limits
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel
from dfcompile.dfmodel_backend.kernel_sets.arcs import Arcs, SetLimits, members_of
from dfcompile.dfmodel_backend.workload.design import Design

MOST_LIMITS = 10_000_000  # sets whose limits are kept, 24 bytes each


@dataclass(frozen=True, slots=True)
class Fused:
    """An assignment of kernels, by id, to configurations, and its time."""

    configs: dict[int, int]
    time_ns: float
    stages: tuple[int, ...] = ()  # pipeline stage of each configuration; empty if each stage runs the whole graph


def is_kernel_by_kernel(design: Design) -> bool:
    """Return whether every kernel is alone; as many configurations as kernels mean that, too [ko24]."""
    execution, count = design.execution, len(design.kernels)
    return execution.kernel_by_kernel or execution.configurations in (0, count)


def configs_of(model: DesignModel, chain: Sequence[int]) -> dict[int, int]:
    """Return the configuration of each kernel, by id."""
    return {
        model.shares[position].kernel.id: slot
        for slot, added in enumerate(chain)
        for position in range(added.bit_length())
        if added >> position & 1
    }


def kernel_by_kernel(model: DesignModel, arcs: Arcs) -> Fused | None:
    """Return the assignment of each kernel to the configuration of its position, or None if one does not fit.

    ``arcs`` are those of `arcs_kernel_by_kernel`.
    """
    times = arc_times(model, arcs)
    if not np.isfinite(times).all():
        return None
    return Fused({share.kernel.id: position for position, share in enumerate(model.shares)}, float(times.sum()))


def set_times(model: DesignModel, members: Members, limits: SetLimits | None = None) -> Column:
    """Return the time of each set of kernels, infinite if it breaks a limit of cores or SRAM."""
    return set_figures(model, members, limits)[0]


def set_figures(model: DesignModel, members: Members, limits: SetLimits | None = None) -> tuple[Column, Column]:
    """Return the time and the DRAM bytes of each set of kernels, infinite if it breaks a limit of cores or SRAM."""
    found = limits if limits is not None else set_limits(model, members)
    times, dram_bytes = (np.full(len(members), np.inf) for _ in range(2))
    for start in range(0, len(found.fitting), CHUNK):
        part = slice(start, start + CHUNK)
        rows = found.fitting[part]
        columns = model.steps(members[rows], found.weight_tiles[part], found.crossing[part], found.compute_ns[part])
        times[rows] = columns.time_ns
        dram_bytes[rows] = np.rint(columns.dram_bytes)
    return times, dram_bytes


def _limits_of_arcs(model: DesignModel, arcs: Arcs) -> SetLimits:
    """Return what the sets of arcs are limited by; it is found once for all pipelines and micro-batches.

    Where memory units are counted the best tiles of weights depend on those, too.
    """
    if model.pmu is not None:
        return set_limits(model, arcs.members)
    key = model.tile_key
    if key in arcs.limits:
        return arcs.limits[key]
    found = set_limits(model, arcs.members)
    if len(arcs.limits) < MOST_LIMITS // max(1, len(arcs.members)):
        arcs.limits[key] = found
    return found


def arc_times(model: DesignModel, arcs: Arcs, limits: SetLimits | None = None) -> Column:
    """Return the time of each arc, infinite if it breaks a limit of cores, SRAM or DRAM.

    ``limits`` of the sets of the arcs may be given.
    """
    return arc_figures(model, arcs, limits)[0]


def arc_figures(model: DesignModel, arcs: Arcs, limits: SetLimits | None = None) -> tuple[Column, Column]:
    """Return the time and the DRAM bytes of each arc; the time is infinite if it breaks a limit.

    ``limits`` of the sets of the arcs may be given.
    """
    room = dram_room(model)
    if room >= most_waiting(model):
        known = _limits_of_arcs(model, arcs) if limits is None else limits
        set_ns, set_bytes = set_figures(model, arcs.members, known)
        return set_ns[arcs.added], set_bytes[arcs.added]
    times, dram_bytes = (np.full(len(arcs.added), np.inf) for _ in range(2))
    before = members_of(arcs.down_sets, len(model.shares))
    cut = waiting_bytes(model, before, np.zeros_like(before))
    # What is cut by the border before or after waits; where both together are too much it matters what is cut twice.
    # Kernels with several inputs are not tiled: they let a tile wait.
    least = cut / model.tiles if any(share.kernel.num_input for share in model.shares) else cut
    possible = np.flatnonzero((least[arcs.before] <= room) & (least[arcs.after] <= room))
    if limits is None:
        needed, place = np.unique(arcs.added[possible], return_inverse=True)
        set_ns, set_bytes = set_figures(model, arcs.members[needed])
    else:
        set_ns, set_bytes = set_figures(model, arcs.members, limits)
        place = arcs.added[possible]
    times[possible], dram_bytes[possible] = set_ns[place], set_bytes[place]
    doubtful = possible[cut[arcs.before[possible]] + cut[arcs.after[possible]] > room]
    doubtful = doubtful[np.isfinite(times[doubtful])]
    for start in range(0, len(doubtful), CHUNK):
        part = doubtful[start : start + CHUNK]
        waiting = waiting_bytes(model, before[arcs.before[part]], arcs.members[arcs.added[part]])
        times[part] = np.where(waiting <= room, times[part], np.inf)
    return times, dram_bytes


def dram_room(model: DesignModel) -> float:
    """Return the DRAM that is left for waiting tensors beside what is always there; negative if that is too much."""
    capacity = model.design.machine.dram_bytes
    if not capacity:
        return float("inf")
    is_pipelined = model.design.execution.batch.layers_in_graph > 1
    return capacity - (0.0 if is_pipelined else dram_need(model).total)


def most_waiting(model: DesignModel) -> float:
    """Return the bytes of all tensors of a micro-batch: more never wait."""
    everything = sum(edge.size_bytes for edge in model.edges) * model.tiles
    return everything * max(1, model.design.execution.batch.micro_batch)
