"""Sums up a solved design, and where its units lie, as its report."""

from collections.abc import Iterable
from typing import assert_never

from dfcompile.dfmodel_backend.evaluate.designs import design_kernel_figures
from dfcompile.dfmodel_backend.fusion.fusion_solver import find_solver
from dfcompile.dfmodel_backend.fusion.solvers.built_in import INTERVALS
from dfcompile.dfmodel_backend.inter_chip.degrees import degrees_of
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel
from dfcompile.dfmodel_backend.machine.plausibility import implausible_machine
from dfcompile.dfmodel_backend.machine.system import Collective
from dfcompile.dfmodel_backend.placement import Cell, PlacedConfiguration, PlacedTensor, Role
from dfcompile.dfmodel_backend.solve.corrections import Correction
from dfcompile.dfmodel_backend.solve.design_search import DesignSolution
from dfcompile.dfmodel_backend.workload.design import Design, WorkloadKind
from dfcompile.report.design import figures as report
from dfcompile.report.figure import NS_PER_S, filled
from dfcompile.report.figures import AssumptionSummary


def summarize_design(
    name: str, solution: DesignSolution, placed: tuple[PlacedConfiguration, ...], corrections: tuple[Correction, ...]
) -> report.DesignReport:
    """Return the report on a solution, its placement, and the corrections that change its figures."""
    design = solution.design
    steps = ((number, step) for number, step in enumerate(solution.figures.steps) if step.kernels)
    return report.DesignReport(
        name=name,
        figures=_figures(solution),
        search=filled(report.SearchSummary, solution),
        configurations=tuple(filled(report.StepSummary, step, configuration=number) for number, step in steps),
        kernels=_kernels(solution),
        placements=tuple(summarize_placement(design, one) for one in placed),
        corrections=tuple(
            filled(report.CorrectionSummary, found, switch=found.switch.replace("_", "-")) for found in corrections
        ),
        assumptions=_assumptions(solution),
        warnings=implausible_machine(design.machine),
    )


def _figures(solution: DesignSolution) -> report.DesignSummary:
    design, figures = solution.design, solution.figures
    degrees = degrees_of(design)
    return filled(
        report.DesignSummary,
        figures,
        chips=design.machine.chips,
        tensor_parallel=degrees.tensor,
        pipeline_parallel=degrees.pipeline,
        data_parallel=degrees.data,
        sequence_parallel=degrees.sequence,
        micro_batch=max(1, design.execution.batch.micro_batch),
        tiles=solution.decision.tiles,
        sram_capacity_bytes=design.machine.sram_bytes,
        dram_capacity_bytes=design.machine.dram_bytes,
        chip_flop_per_s=design.machine.peak_gflops * NS_PER_S,
        dram_bytes_per_s=design.machine.dram_gb_per_s * NS_PER_S,
        dram_parts_bytes=filled(report.DramParts, figures.dram, waiting_tensors=figures.waiting_bytes),
        sharding_bytes=solution.communication_bytes,
    )


def _kernels(solution: DesignSolution) -> tuple[report.KernelSummary, ...]:
    decision = solution.decision
    model = DesignModel(solution.design, decision.sharding, decision.tiles, solution.options.compatibility)
    conversions: dict[int, list[Collective]] = {}
    for edge in model.edges:
        conversions.setdefault(edge.source, []).extend(collective for collective, _ in edge.exchange)
    figures = design_kernel_figures(model, decision, solution.figures.steps)
    return tuple(
        filled(
            report.KernelSummary,
            own,
            share.work,
            name=share.kernel.name,
            configuration=decision.configs[share.kernel.id],
            sharding=share.sharding.value,
            exchange=", ".join(dict.fromkeys([each for each, _ in share.exchange] + conversions.get(position, []))),
        )
        for position, (share, own) in enumerate(zip(model.shares, figures, strict=True))
    )


def _assumptions(solution: DesignSolution) -> tuple[AssumptionSummary, ...]:
    execution, options = solution.design.execution, solution.options
    utilization = execution.compute_utilization
    compute = f"{utilization:g} of the peak" if utilization else "cores are split so that the slowest kernel is fastest"
    found = [
        AssumptionSummary("figures", "32-bit numbers of the file, computed with 64 bits", "[ko24]"),
        AssumptionSummary("compute", compute, "field execution.compute_util"),
        AssumptionSummary("overlap in a configuration", execution.overlap.value, "field execution.overlap"),
        AssumptionSummary("sharding", f"least {options.sharding_objective.value}", "--sharding-objective"),
    ]
    if execution.batch.kind is not WorkloadKind.LLM:
        found.append(AssumptionSummary("SRAM", "no limit: the workload is not cut into tiles", "[ko24]"))
    if not solution.optimal:
        found.append(AssumptionSummary("configurations", _why_not_optimal(solution), "--solver"))
    if any(kernel.backward for kernel in solution.design.kernels):
        adam = "Adam with a 32-bit copy of the parameters"
        found.append(AssumptionSummary("optimizer", adam, "[rajbhandari20, section 3]"))
    return tuple(found)


def _why_not_optimal(solution: DesignSolution) -> str:
    if find_solver(solution.solver).is_exact or solution.solver == INTERVALS.name:
        return "intervals of one topological order: the graph has too many down-sets, or it was asked for"
    return f"as solver {solution.solver} chose them, which proves no optimum"


def summarize_placement(design: Design, placed: PlacedConfiguration) -> report.PlacementSummary:
    """Return the summary of a placed configuration of a design."""
    grid, units = design.machine.pmu, placed.units
    assert grid is not None
    columns = grid.x

    def numbers(cells: Iterable[Cell]) -> tuple[int, ...]:
        return tuple(cell.y * columns + cell.x for cell in cells)

    kernels = ((design.kernels[one.kernel].name, one.split, numbers(one.cells)) for one in units.kernels)
    tensors = ((one.role.value, *_ends(design, one), numbers(one.cells)) for one in units.tensors)
    return report.PlacementSummary(
        configuration=placed.configuration,
        columns=columns,
        rows=grid.y,
        walk=grid.placement.value,
        pcus=sum(len(kernel.cells) for kernel in units.kernels),
        pmus=sum(len(tensor.cells) for tensor in units.tensors),
        kernels=tuple(
            report.PlacedKernelSummary(name, split.lanes, split.stages, cells) for name, split, cells in kernels
        ),
        tensors=tuple(report.PlacedTensorSummary(*each) for each in tensors),
        wires=tuple(
            filled(
                report.WiresSummary,
                wires,
                direction="out" if wires.is_write else "in",
                pmu_cells=numbers(pmu for pmu, _ in wires.pairs),
                pcu_cells=numbers(pcu for _, pcu in wires.pairs),
            )
            for wires in units.wires
        ),
        links=tuple(
            filled(report.LinkSummary, link, direction="in" if link.is_incoming else "out", cells=numbers(link.cells))
            for link in placed.links
        ),
    )


def _ends(design: Design, tensor: PlacedTensor) -> tuple[str, str]:
    match tensor.role:
        case Role.WEIGHTS | Role.ADDED:
            return "", design.kernels[tensor.number].name
        case Role.TENSOR:
            names = {kernel.id: kernel.name for kernel in design.kernels}
            edge = design.edges[tensor.number]
            return names[edge.source], names[edge.target]
    assert_never(tensor.role)
