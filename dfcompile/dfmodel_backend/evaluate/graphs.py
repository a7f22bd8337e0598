"""The pure evaluator: graph, system and assignment of kernels to configurations give all figures."""

from dataclasses import dataclass, replace
from itertools import accumulate

from dfcompile.dfmodel_backend.inter_chip.exchange import Exchange
from dfcompile.dfmodel_backend.intra_chip.configuration import Configuration, ConfigurationModel
from dfcompile.dfmodel_backend.machine.cost import cost_usd, power_w
from dfcompile.dfmodel_backend.machine.system import System
from dfcompile.dfmodel_backend.options import MappingOptions
from dfcompile.dfmodel_backend.sharding.graphs import Sharding, SharedGraph, share_graph
from dfcompile.dfmodel_backend.workload.chip_workload import NO_SOURCE, Workload, one_chip_workload
from dfcompile.dfmodel_backend.workload.graph import DataflowGraph
from dfcompile.errors import InfeasibleError, UserError, nearest

Assignment = tuple[tuple[str, ...], ...]  # names of the kernels of each configuration, in order of execution

NS_PER_S = 1e9
NOWHERE = -1  # where an input of the graph is born: before the first configuration


@dataclass(frozen=True, slots=True)
class Figures:
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


def evaluate(
    graph: DataflowGraph, system: System, assignment: Assignment, options: MappingOptions | None = None
) -> Figures:
    """Return the figures of an assignment on one chip; formulas [ko24, sections 4 and 5].

    Raises:
        UserError: a kernel is unknown, missing or assigned twice, or an edge runs backwards.
        InfeasibleError: a configuration breaks a limit of cores or SRAM.
    """
    return total_figures(graph, system, _configurations(graph, system, assignment, options or MappingOptions()))


def evaluate_sharding(
    graph: DataflowGraph, system: System, sharding: Sharding, assignment: Assignment, options: MappingOptions
) -> Figures:
    """Return the figures of a sharding and an assignment on all chips of a system.

    Args:
        graph: that is mapped.
        system: with the chips in use.
        sharding: of the graph; of no account on one chip.
        assignment: of its kernels.
        options: of the mapping.

    Raises:
        UserError: as `evaluate`.
        InfeasibleError: as `evaluate`.
    """
    if system.chips == 1:
        return evaluate(graph, system, assignment, options)
    share = share_graph(graph, system, sharding)
    return shared_figures(graph, share, system, _configurations(share.graph, system, assignment, options))


def _configurations(
    graph: DataflowGraph, system: System, assignment: Assignment, options: MappingOptions
) -> tuple[Configuration, ...]:
    model = ConfigurationModel(one_chip_workload(graph), system, options)
    masks = _masks(graph, assignment)
    live = _live_bytes(model.workload, masks)
    configs = []
    for number, kernels in enumerate(masks):
        found = model.figures_beside(live[number], kernels)
        if found is None:
            raise InfeasibleError(f"configuration {number}: kernels {', '.join(assignment[number])} exceed the chip")
        configs.append(found)
    return tuple(configs)


def _live_bytes(workload: Workload, masks: list[int]) -> list[int]:
    """Return the DRAM bytes alive while each configuration runs: weights and waiting tensors.

    A tensor waits from the configuration that writes it, or the first, to the last that reads it, or the very last; one
    that is read only where it is written never waits.
    """
    place = {kernel: number for number, mask in enumerate(masks) for kernel in workload.members(mask)}
    change = [0] * (len(masks) + 1)
    for flow in workload.flows:
        born = NOWHERE if flow.source == NO_SOURCE else place[flow.source]
        last = (
            len(masks) - 1 if flow.leaves else max((place[reading.kernel] for reading in flow.readings), default=born)
        )
        if last > born or flow.leaves:
            change[max(born, 0)] += flow.size_bytes
            change[last + 1] -= flow.size_bytes
    weights = sum(weight.size_bytes for weight in workload.weights)
    return [weights + total for total in accumulate(change[:-1])]


def shared_figures(
    graph: DataflowGraph, share: SharedGraph, system: System, configs: tuple[Configuration, ...]
) -> Figures:
    """Sum the figures of configurations that run one after the other on all chips of a system.

    Every chip is charged as the one with most of everything. Operations of the model count once, on however many chips
    a kernel runs: utilization is the part of the peak that the model needs.
    """
    alone = total_figures(graph, system, configs)
    power = power_w(system)
    peak_flop_per_s = system.accelerator.peak_gflops * 1e9 * system.chips
    return replace(
        alone,
        dram_bytes=alone.dram_bytes * system.chips,
        network_bytes=share.network_bytes,
        cost_usd=cost_usd(system),
        power_w=power,
        energy_j=power * alone.time_s,
        utilization=graph.flop / (alone.time_s * peak_flop_per_s) if alone.time_s else 0.0,
        moved_bytes=share.moved_bytes,
        exchanges=share.exchanges,
    )


def total_figures(graph: DataflowGraph, system: System, configs: tuple[Configuration, ...]) -> Figures:
    """Sum the figures of configurations that run one after the other, on one chip of the system."""
    system = system.one_chip
    time_s = sum(config.time_ns for config in configs) / NS_PER_S
    power = power_w(system)
    peak_flop_per_s = system.accelerator.peak_gflops * 1e9 * system.chips
    return Figures(
        configs=configs,
        time_s=time_s,
        flop=graph.flop,
        dram_bytes=sum(config.dram_read_bytes + config.dram_write_bytes for config in configs),
        network_bytes=0,
        cost_usd=cost_usd(system),
        power_w=power,
        energy_j=power * time_s,
        utilization=graph.flop / (time_s * peak_flop_per_s) if time_s else 0.0,
    )


def _masks(graph: DataflowGraph, assignment: Assignment) -> list[int]:
    index = graph.index
    masks = []
    place: dict[str, int] = {}
    for number, names in enumerate(assignment):
        mask = 0
        for name in names:
            if name not in index:
                raise UserError(f"configuration {number}: no kernel {name!r}{nearest(name, index)}")
            if name in place:
                raise UserError(f"kernel {name!r}: found in configurations {place[name]} and {number} against one")
            place[name] = number
            mask |= 1 << index[name]
        masks.append(mask)
    for name in index:
        if name not in place:
            raise UserError(f"kernel {name!r}: found in no configuration")
    for edge in graph.connections:
        if place[edge.source] > place[edge.target]:
            raise UserError(
                f"connection {edge.source!r} to {edge.target!r}: found configurations {place[edge.source]} and "
                f"{place[edge.target]} against ascending ones"
            )
    return masks
