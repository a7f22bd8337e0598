"""Maps a dataflow graph on a system: chooses configurations, recomputes every figure."""

import time
from dataclasses import dataclass

from dfcompile.dfmodel_backend.assumption import Assumption
from dfcompile.dfmodel_backend.bounds import lower_bound_ns, no_chain_error, require_kernels_fit
from dfcompile.dfmodel_backend.chain import chain_space
from dfcompile.dfmodel_backend.configuration import ConfigurationModel
from dfcompile.dfmodel_backend.evaluator import NS_PER_S, total_figures
from dfcompile.dfmodel_backend.fusion_arc_flow import fuse_by_arc_flow
from dfcompile.dfmodel_backend.fusion_assignment import fuse_by_assignment
from dfcompile.dfmodel_backend.fusion_dp import Chain, fuse_by_dp
from dfcompile.dfmodel_backend.fusion_intervals import fuse_by_intervals
from dfcompile.dfmodel_backend.graph import DataflowGraph
from dfcompile.dfmodel_backend.mapping import Mapping
from dfcompile.dfmodel_backend.milp import Outcome
from dfcompile.dfmodel_backend.options import MappingOptions, Solver
from dfcompile.dfmodel_backend.system import System
from dfcompile.dfmodel_backend.workload import one_chip_workload
from dfcompile.errors import VerificationError


@dataclass(frozen=True, slots=True)
class Choice:
    """What a solver hands back: a chain of kernel sets, and a proved lower bound."""

    chain: Chain
    bound_ns: float
    optimal: bool
    solver: str


def map_graph(graph: DataflowGraph, system: System, options: MappingOptions | None = None) -> Mapping:
    """Fuse the kernels of a graph into configurations of one chip, in the least time.

    Raises:
        InfeasibleError: a kernel does not fit the chip, or no chain of configurations fits; the message names the
            kernel, the limit and what would be enough.
    """
    chosen = options or MappingOptions()
    started = time.perf_counter()
    model = ConfigurationModel(one_chip_workload(graph), system, chosen)
    require_kernels_fit(model)
    choice = _choose(model)
    solver_s = time.perf_counter() - started
    before = 0
    configs = []
    for kernels in choice.chain:
        config = model.figures(before, kernels)
        if config is None:
            raise VerificationError(f"solver {choice.solver}: chose a configuration that exceeds the chip")
        configs.append(config)
        before |= kernels
    figures = total_figures(graph, system, tuple(configs))
    bound_s = figures.time_s if choice.optimal else min(figures.time_s, choice.bound_ns / NS_PER_S)
    return Mapping(
        configs=figures.configs,
        time_s=figures.time_s,
        flop=figures.flop,
        dram_bytes=figures.dram_bytes,
        network_bytes=figures.network_bytes,
        cost_usd=figures.cost_usd,
        power_w=figures.power_w,
        energy_j=figures.energy_j,
        utilization=figures.utilization,
        optimal=choice.optimal,
        gap=(figures.time_s - bound_s) / figures.time_s if figures.time_s else 0.0,
        bound_time_s=bound_s,
        solver=choice.solver,
        solver_s=solver_s,
        options=chosen,
        assumptions=(*graph.assumptions, *_assumptions(system, chosen)),
    )


def _choose(model: ConfigurationModel) -> Choice:
    solver = model.options.solver
    if not model.workload.kernels:
        return Choice((), 0.0, optimal=True, solver=solver.value)
    if solver is Solver.INTERVALS:
        return _by_intervals(model)
    if solver in (Solver.ASSIGNMENT_CBC, Solver.ASSIGNMENT_HIGHS):
        return _by_milp(model, fuse_by_assignment(model))
    space = chain_space(model)
    if space is None:
        return _by_intervals(model)
    if solver is not Solver.DP:
        return _by_milp(model, fuse_by_arc_flow(space))
    chain = fuse_by_dp(space)
    if chain is None:
        raise no_chain_error(model)
    return Choice(chain, 0.0, optimal=True, solver=solver.value)


def _by_milp(model: ConfigurationModel, found: tuple[Chain, Outcome] | None) -> Choice:
    if found is None:
        if model.options.time_limit_s:  # stopped without a solution, or there is none: the orders know
            return _by_intervals(model)
        raise no_chain_error(model)
    chain, outcome = found
    return Choice(chain, lower_bound_ns(model), optimal=outcome is Outcome.OPTIMAL, solver=model.options.solver.value)


def _by_intervals(model: ConfigurationModel) -> Choice:
    chain = fuse_by_intervals(model)
    if chain is None:
        raise no_chain_error(model)
    bound_ns = lower_bound_ns(model)
    time_ns = sum(model.time_ns(kernels) or 0.0 for kernels in chain)
    return Choice(chain, bound_ns, optimal=time_ns <= bound_ns, solver=Solver.INTERVALS.value)


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
