"""The pure evaluator: graph, system and assignment of kernels to configurations give all figures."""

from dataclasses import dataclass

from dfcompile.dfmodel_backend.intra_chip.configuration import Configuration, ConfigurationModel
from dfcompile.dfmodel_backend.machine.cost import cost_usd, power_w
from dfcompile.dfmodel_backend.machine.system import System
from dfcompile.dfmodel_backend.options import MappingOptions
from dfcompile.dfmodel_backend.workload.chip_workload import one_chip_workload
from dfcompile.dfmodel_backend.workload.graph import DataflowGraph
from dfcompile.errors import InfeasibleError, UserError, nearest

Assignment = tuple[tuple[str, ...], ...]  # names of the kernels of each configuration, in order of execution

NS_PER_S = 1e9


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


def evaluate(
    graph: DataflowGraph, system: System, assignment: Assignment, options: MappingOptions | None = None
) -> Figures:
    """Return the figures of an assignment on one chip; formulas [ko24, sections 4 and 5].

    Raises:
        UserError: a kernel is unknown, missing or assigned twice, or an edge runs backwards.
        InfeasibleError: a configuration breaks a limit of cores or SRAM.
    """
    model = ConfigurationModel(one_chip_workload(graph), system, options or MappingOptions())
    before = 0
    configs = []
    for number, kernels in enumerate(_masks(graph, assignment)):
        found = model.figures(before, kernels)
        if found is None:
            raise InfeasibleError(f"configuration {number}: kernels {', '.join(assignment[number])} exceed the chip")
        configs.append(found)
        before |= kernels
    return total_figures(graph, system, tuple(configs))


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
