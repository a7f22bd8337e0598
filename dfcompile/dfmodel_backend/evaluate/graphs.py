"""A mapping and its figures, which are computed from graph, system and assignment of kernels to configurations."""

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from dfcompile.dfmodel_backend.columns import Column, Members, Numbers, members_of
from dfcompile.dfmodel_backend.intra_chip.cores import CoreSplit
from dfcompile.dfmodel_backend.intra_chip.graph_model import GraphModel
from dfcompile.dfmodel_backend.intra_chip.set_times import fewest_weight_tiles
from dfcompile.dfmodel_backend.machine.cost import cost_usd, power_w
from dfcompile.dfmodel_backend.machine.system import System
from dfcompile.dfmodel_backend.options import NS_PER_S, Assumption, MappingOptions, Timed
from dfcompile.dfmodel_backend.sharding.graphs import Choice, Sharding, SharedGraph, share_graph
from dfcompile.dfmodel_backend.workload.graph import DataflowGraph, Exchange
from dfcompile.errors import InfeasibleError, UserError, nearest

Assignment = tuple[tuple[str, ...], ...]  # names of the kernels of each configuration, in order of execution


class Configuration(Timed, frozen=True):
    """One configuration of a mapping and its figures."""

    kernels: tuple[str, ...]
    core_splits: tuple[CoreSplit, ...]  # one per kernel; empty if a compute utilization is assumed instead
    dram_read_bytes: int
    dram_write_bytes: int
    dram_live_bytes: int  # weights, and tensors that wait in DRAM while the configuration runs
    sram_bytes: int
    tiles: int  # parts in which streaming tensors pass through SRAM
    weight_tiles: int  # parts in which weights are loaded; above 1 only for a kernel alone


class Figures(Struct, frozen=True):
    """Figures of a mapping."""

    configs: tuple[Configuration, ...]
    time_s: float
    flop: int
    dram_bytes: int
    network_bytes: int
    cost_usd: float
    power_w: float
    energy_j: float
    utilization: float  # of the peak FLOP of all chips
    moved_bytes: int = 0
    exchanges: tuple[Exchange, ...] = ()


def evaluate_sharding(
    graph: DataflowGraph, system: System, sharding: Sharding, assignment: Assignment, options: MappingOptions
) -> Figures:
    """Return the figures of a sharding and an assignment on all chips of a system; formulas [ko24, sections 4 and 5].

    Args:
        graph: the graph to map, before it is shared among chips.
        system: with the chips in use.
        sharding: of the graph among chips; ignored on one chip.
        assignment: kernels of each configuration.
        options: of the mapping.

    Raises:
        UserError: a kernel is unknown, missing or assigned twice, or an edge runs backwards.
        InfeasibleError: a configuration breaks a limit of cores or SRAM.
    """
    share = None if system.chips == 1 else share_graph(graph, system, sharding)
    mapped = graph if share is None else share.graph
    model = GraphModel(mapped, system.machine, options)
    return total_figures(graph, system, configurations_of(model, _masks(mapped, assignment)), share)


def configurations_of(model: GraphModel, chain: Sequence[int]) -> tuple[Configuration, ...]:
    """Return the figures of configurations that run one after the other, each a bit mask of kernels.

    Raises:
        InfeasibleError: one breaks a limit of cores or SRAM.
    """
    if not chain:
        return ()
    members = members_of(tuple(chain), len(model.works))
    weight_tiles = fewest_weight_tiles(model, members)
    fits = (members.sum(axis=1) <= model.machine.cores) & (weight_tiles > 0)
    if not fits.all():
        number = int(np.argmin(fits))
        names = [model.works[kernel].name for kernel in np.flatnonzero(members[number])]
        raise InfeasibleError(f"configuration {number}: kernels {', '.join(names)} exceed the chip")
    steps = model.steps(members, weight_tiles)
    read, written = model.streams(members, weight_tiles)
    loaded = model.held.loaded(members)
    before: Members = np.logical_or.accumulate(members) & ~members
    live = model.waiting_bytes(before, members) + model.always_bytes
    tiles, sram = _fewest_tiles(model, members, weight_tiles)
    core_splits = _core_splits(model, members)
    return tuple(
        Configuration(
            *steps.times_ns(number),
            kernels=tuple(model.works[kernel].name for kernel in np.flatnonzero(row)),
            core_splits=core_splits[number],
            dram_read_bytes=int(read[number] + loaded[number]),
            dram_write_bytes=int(written[number]),
            dram_live_bytes=int(live[number]),
            sram_bytes=int(sram[number]),
            tiles=int(tiles[number]),
            weight_tiles=int(weight_tiles[number]),
        )
        for number, row in enumerate(members)
    )


def _fewest_tiles(model: GraphModel, members: Members, weight_tiles: Numbers) -> tuple[Numbers, Column]:
    """Return the fewest tiles of each set, a power of two, with which its tensors fit SRAM, and the SRAM bytes then."""
    tiles = np.ones(len(members), np.int64)
    sram = model.in_tiles(1).sram_bytes(members, weight_tiles)
    while model.sram_capacity and (large := np.flatnonzero(sram > model.sram_capacity)).size:
        tiles[large] *= 2
        sram[large] = model.in_tiles(int(tiles[large[0]])).sram_bytes(members[large], weight_tiles[large])
    return tiles, sram


def _core_splits(model: GraphModel, members: Members) -> list[tuple[CoreSplit, ...]]:
    """Return the fewest cores of each kernel of each set with which no kernel exceeds the compute time of the set."""
    if model.rules.utilization:
        return [()] * len(members)
    splits = []
    for row, cycles in zip(members, model.cycles(members).tolist(), strict=True):
        tables = [model.tables[kernel] for kernel in np.flatnonzero(row)]
        splits.append(tuple(table.splits[bisect_right(table.cycles, cycles) - 1] for table in tables))
    return splits


def total_figures(
    graph: DataflowGraph, system: System, configs: tuple[Configuration, ...], share: SharedGraph | None = None
) -> Figures:
    """Sum the figures of configurations that run one after the other: on all chips with a share, else on one chip.

    Every chip counts as much DRAM traffic as the chip with most of it. FLOP are those of the model, even if several
    chips repeat a kernel: utilization is the part of the peak that the model needs.
    """
    used = system.one_chip if share is None else system
    time_s = sum(config.time_ns for config in configs) / NS_PER_S
    power = power_w(used)
    return Figures(
        configs=configs,
        time_s=time_s,
        flop=graph.flop,
        dram_bytes=sum(config.dram_read_bytes + config.dram_write_bytes for config in configs) * used.chips,
        network_bytes=0 if share is None else share.network_bytes,
        cost_usd=cost_usd(used),
        power_w=power,
        energy_j=power * time_s,
        utilization=graph.flop / (time_s * (used.accelerator.peak_gflops * 1e9 * used.chips)) if time_s else 0.0,
        moved_bytes=0 if share is None else share.moved_bytes,
        exchanges=() if share is None else share.exchanges,
    )


def _masks(graph: DataflowGraph, assignment: Assignment) -> list[int]:
    """Check an assignment and return the kernels of each configuration as a bit mask."""
    index = graph.index
    config_of: dict[str, int] = {}
    for number, names in enumerate(assignment):
        for name in names:
            if name not in index:
                raise UserError(f"configuration {number}: no kernel {name!r}{nearest(name, index)}")
            if name in config_of:
                raise UserError(f"kernel {name!r}: found in configurations {config_of[name]} and {number} against one")
            config_of[name] = number
    for name in index:
        if name not in config_of:
            raise UserError(f"kernel {name!r}: found in no configuration")
    for source, target in ((graph.kernels[writer].name, graph.kernels[reader].name) for writer, reader in graph.ends):
        if config_of[source] > config_of[target]:
            order = f"found configurations {config_of[source]} and {config_of[target]} against ascending ones"
            raise UserError(f"connection {source!r} to {target!r}: {order}")
    return [sum(1 << index[name] for name in names) for names in assignment]


class Mapping(Struct, frozen=True):
    """A mapping, its figures, and how far it is from the optimum at most."""

    figures: Figures  # of all chips in use
    optimal: bool
    gap: float  # (time - bound) / bound
    bound_time_s: float
    solver: str
    solver_s: float  # wall time; the one figure that differs between runs
    options: MappingOptions
    assumptions: tuple[Assumption, ...]
    system: System  # with the chips in use alone
    chips: int = 1  # in use
    sharding: tuple[tuple[str, Choice], ...] = ()  # of each kernel; empty on one chip
    network_chips: tuple[int, ...] = ()  # along each dimension of the network, the innermost first; empty on one chip
