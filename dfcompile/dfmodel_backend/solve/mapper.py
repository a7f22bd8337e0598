"""Maps a dataflow graph on a system: chooses configurations, recomputes every figure."""

import math
import time

import numpy as np

from dfcompile.dfmodel_backend.evaluate.graphs import Mapping, configurations_of, total_figures
from dfcompile.dfmodel_backend.fusion.fuse import GraphProblem
from dfcompile.dfmodel_backend.fusion.fusion_problem import Fusion
from dfcompile.dfmodel_backend.fusion.fusion_solver import FusionSolver, find_solver
from dfcompile.dfmodel_backend.intra_chip.graph_model import GraphModel
from dfcompile.dfmodel_backend.intra_chip.set_times import tiles_alone
from dfcompile.dfmodel_backend.machine.system import Amount, System
from dfcompile.dfmodel_backend.options import NS_PER_S, Assumption, MappingOptions, gap_above
from dfcompile.dfmodel_backend.workload.graph import DataflowGraph
from dfcompile.errors import InfeasibleError
from dfcompile.plugins import is_own


def map_graph(
    graph: DataflowGraph, system: System, options: MappingOptions | None = None, solver: FusionSolver | None = None
) -> Mapping:
    """Fuse the kernels of a graph into configurations of one chip, in the least time.

    Of equally fast ones they are those with the fewest DRAM bytes, then the fewest. Budgets count work, never time. If
    down-sets or pairs of them are too many, they are the best along a few topological orders; if an integer program is
    too large, or stops at its limit of nodes without a solution, another one is taken.

    Args:
        graph: to map.
        system: of which one chip is used.
        options: of the mapping.
        solver: None: the one that the options name.

    Raises:
        InfeasibleError: a kernel does not fit the chip, or no chain of configurations fits; the message names the
            kernel, the limit and what would be enough.
        UserError: there is no such solver.
        PluginError: a plug-in's solver failed.
        InternalError: a solver of ours failed.
    """
    chosen = options or MappingOptions()
    started = time.perf_counter()
    model = GraphModel(graph, system.machine, chosen)
    require_kernels_fit(model, system.accelerator.sram)
    asked = solver or find_solver(chosen.solver)
    nothing = Fusion((), 0.0, is_optimal=True, solver=chosen.solver)
    found = asked.solve(GraphProblem(model, chosen)) if graph.kernels else nothing
    if found.chain is None:
        raise no_chain_error(model) if found.is_optimal or is_own(asked.module) else asked.found_nothing()
    bound_ns = model.least_ns()
    solver_s = time.perf_counter() - started
    figures = total_figures(graph, system, configurations_of(model, [kernels for kernels in found.chain if kernels]))
    optimal = found.is_optimal or figures.time_s * NS_PER_S <= bound_ns
    bound_s = figures.time_s if optimal else min(figures.time_s, bound_ns / NS_PER_S)
    return Mapping(
        figures=figures,
        optimal=optimal,
        gap=gap_above(bound_s, figures.time_s),
        bound_time_s=bound_s,
        solver=found.solver,
        solver_s=solver_s,
        options=chosen,
        assumptions=(*graph.assumptions, *_assumptions(system, chosen)),
        system=system.one_chip,
    )


def _assumptions(system: System, options: MappingOptions) -> tuple[Assumption, ...]:
    chip = system.accelerator
    if options.compute_utilization > 0:
        compute = Assumption("compute", f"{options.compute_utilization} of the peak", "option compute_utilization")
    else:
        compute = Assumption(
            "compute", "cores are split so that the slowest kernel is fastest; no pipeline fill", "[ko24, section 4]"
        )
    return (
        Assumption("system", system.name, "--system" if system.name != "canonical" else "default"),
        *system.sources,
        Assumption("chips", "1", "the graph is not sharded"),
        Assumption("cores", str(chip.cores), "--pes"),
        compute,
        Assumption("overlap in a configuration", options.overlap.value, "option overlap [ko24]"),
        Assumption(
            "tiles",
            "streamed operands pass through SRAM in equal tiles, as many as needed to fit; two tiles of each "
            "tensor at the border of a configuration, levels + 1 between two kernels",
            "[ko24, section 4]; the count per configuration is dfcompile's",
        ),
    )


def require_kernels_fit(model: GraphModel, sram: Amount) -> None:
    """Check that each kernel fits the chip alone: then kernel by kernel is a mapping, if DRAM holds it.

    Args:
        model: of the chip.
        sram: as the system file gives it.

    Raises:
        InfeasibleError: naming the kernel, its SRAM and what the chip would need.
    """
    for number, work in enumerate(model.works):
        if tiles_alone(model, number) is None:
            needed = int(model.sram_alone(number, model.most_weight_tiles[number]))
            raise InfeasibleError(
                f"kernel {work.name!r}: needs {needed} bytes of SRAM, alone and in the finest tiles, "
                f"against {_number(model.sram_capacity)} of the chip ({_remedy(sram, needed)})"
            )


def no_chain_error(model: GraphModel) -> InfeasibleError:
    """Return the error for kernels that fit one by one but not in sequence: DRAM or the count of configurations."""
    count, capacity = len(model.works), model.machine.dram_bytes
    live = model.waiting_bytes(np.tri(count, k=-1, dtype=bool), np.eye(count, dtype=bool)) + model.always_bytes
    worst = int(live.max(initial=0))
    if capacity and worst > capacity:
        name = model.works[int(np.argmax(live))].name
        return InfeasibleError(
            f"kernel {name!r}: found {worst} bytes alive in DRAM, kernel by kernel, against {_number(capacity)} "
            f"of the chip (give dram.capacity_bytes at least {worst}, or more chips)"
        )
    return InfeasibleError(
        f"graph: no mapping in at most {model.options.max_configurations} configurations fits SRAM and cores "
        f"(expected up to {count} configurations)"
    )


def _remedy(sram: Amount, needed: int) -> str:
    if sram.per_core and sram.value > 0:
        return f"at least {math.ceil(needed / sram.value)} cores, or accelerator.sram_bytes_per_core of more"
    return f"accelerator.sram_bytes of at least {needed}"


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:.1f}"
