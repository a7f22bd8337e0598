"""The audit of a report on a design: its figures, those of configurations and kernels, and what the search says."""

import math
from collections.abc import Iterable, Iterator, Sequence

from dfcompile.audit.comparing import MULTIPLIED, ROUNDING, expect, expect_at_least, expect_near, expect_text
from dfcompile.audit.design.batch import PER_S, DesignAccount
from dfcompile.audit.design.corrections import audit_corrections
from dfcompile.audit.machine import PER_GIGA
from dfcompile.audit.mapping.times import audit_bound_by
from dfcompile.dfmodel_backend import Correction, DesignSolution, PlacedConfiguration
from dfcompile.dfmodel_backend.check.decided_design import DecidedDesign, Groups
from dfcompile.dfmodel_backend.compatibility import Compatibility
from dfcompile.dfmodel_backend.workload.design import Design, WorkloadKind
from dfcompile.errors import VerificationError
from dfcompile.records import replace
from dfcompile.report.design.figures import (
    DesignReport,
    DesignSummary,
    KernelSummary,
    PlacementSummary,
    SearchSummary,
    StepSummary,
)


def audit_design(
    report: DesignReport,
    solution: DesignSolution,
    placed: Sequence[PlacedConfiguration],
    corrections: Sequence[Correction],
) -> None:
    """Compute every number of a report on a design anew.

    Taken as they are: what was decided (degrees, sharding, tiles, configurations, weight tiles, cores, cells),
    accepted by the checkers of the back end; what a search proves, and how many choices it fused; ``solver_s``, which
    is a time that passed.

    Args:
        report: as it leaves.
        solution: that it is of.
        placed: units on the grid, per configuration.
        corrections: that change figures, with what each configuration is then.

    Raises:
        VerificationError: naming the figure, as found and as recomputed, or the bound that it is below.
    """
    decided = DecidedDesign(solution.design, solution.decision, solution.options.compatibility)
    account = DesignAccount(decided, solution.figures.steps)
    _audit_figures("figures", report.figures, account)
    _audit_memory("figures", report.figures, account)
    expect("figures.sharding_bytes", report.figures.sharding_bytes, decided.sharding_bytes, MULTIPLIED)
    _audit_search("search", report.search, solution, account)
    _audit_configurations("configurations", report.configurations, solution, account)
    _audit_kernels("kernels", report.kernels, account)
    audit_placements("placements", report.placements, solution, placed)
    audit_corrections("corrections", report.corrections, solution, account, corrections)


def _audit_figures(where: str, summary: DesignSummary, account: DesignAccount) -> None:
    design, groups = account.design, account.groups
    time_s = account.batch_ns / PER_S
    expect(f"{where}.chips", summary.chips, design.execution.batch.copies * groups.chips)
    expect(f"{where}.chips: of the machine", summary.chips, design.machine.chips)
    expect(f"{where}.tensor_parallel", summary.tensor_parallel, groups.tensor)
    expect(f"{where}.pipeline_parallel", summary.pipeline_parallel, groups.pipeline)
    expect(f"{where}.data_parallel", summary.data_parallel, groups.data)
    expect(f"{where}.sequence_parallel", summary.sequence_parallel, groups.sequence)
    expect(f"{where}.micro_batch", summary.micro_batch, max(1, design.execution.batch.micro_batch))
    expect(f"{where}.tiles", summary.tiles, account.decided.decision.tiles)
    expect(f"{where}.time_s", summary.time_s, time_s, ROUNDING)
    expect(f"{where}.step_s", summary.step_s, account.step_ns / PER_S, ROUNDING)
    expect(f"{where}.latency_s", summary.latency_s, account.latency_ns / PER_S, ROUNDING)
    expect(f"{where}.flop", summary.flop, account.flop)
    peak = account.peak_flop_per_s * design.machine.chips * time_s
    expect(f"{where}.utilization", summary.utilization, account.flop / peak if peak else 0.0, ROUNDING)
    expect(f"{where}.cost_usd", summary.cost_usd, account.price_usd, MULTIPLIED)
    expect(f"{where}.power_w", summary.power_w, account.power_w, MULTIPLIED)
    expect(f"{where}.energy_j", summary.energy_j, account.power_w * time_s, ROUNDING)
    expect(f"{where}.chip_flop_per_s", summary.chip_flop_per_s, account.peak_flop_per_s, MULTIPLIED)
    bandwidth = design.machine.dram_gb_per_s * PER_GIGA
    expect(f"{where}.dram_bytes_per_s", summary.dram_bytes_per_s, bandwidth, MULTIPLIED)
    expect(f"{where}.dram_traffic_bytes", summary.dram_traffic_bytes, account.dram_traffic_bytes, MULTIPLIED)
    expect(f"{where}.network_traffic_bytes", summary.network_traffic_bytes, account.network_traffic_bytes, MULTIPLIED)


def _audit_memory(where: str, summary: DesignSummary, account: DesignAccount) -> None:
    machine, memory, parts = account.design.machine, account.memory, summary.dram_parts_bytes
    expect(f"{where}.sram_capacity_bytes", summary.sram_capacity_bytes, machine.sram_bytes)
    expect(f"{where}.dram_capacity_bytes", summary.dram_capacity_bytes, machine.dram_bytes)
    expect(f"{where}.dram_bytes", summary.dram_bytes, memory.total, MULTIPLIED)
    if machine.dram_bytes:
        expect_at_least(f"{where}.dram_capacity_bytes", machine.dram_bytes, summary.dram_bytes, "in use", ROUNDING)
    where = f"{where}.dram_parts_bytes"
    expect(f"{where}.weights", parts.weights, memory.weights, MULTIPLIED)
    expect(f"{where}.gradients", parts.gradients, memory.gradients, MULTIPLIED)
    expect(f"{where}.optimizer_states", parts.optimizer_states, memory.optimizer, MULTIPLIED)
    expect(f"{where}.activations_in_flight", parts.activations_in_flight, memory.activations, MULTIPLIED)
    expect(f"{where}.tables", parts.tables, memory.tables, MULTIPLIED)
    expect(f"{where}.waiting_tensors", parts.waiting_tensors, memory.waiting, MULTIPLIED)


def _audit_search(where: str, summary: SearchSummary, solution: DesignSolution, account: DesignAccount) -> None:
    time_s = account.batch_ns / PER_S
    bound_s = time_s if solution.optimal else solution.bound_ns / PER_S
    expect(f"{where}.optimal", summary.optimal, solution.optimal)
    expect(f"{where}.bound_time_s", summary.bound_time_s, bound_s, ROUNDING)
    expect_at_least("figures.time_s", time_s, summary.bound_time_s, f"{where}.bound_time_s", ROUNDING)
    expect_near(f"{where}.gap", summary.gap, time_s / bound_s - 1 if bound_s else 0.0, 2 * ROUNDING)
    expect_text(f"{where}.solver", summary.solver, solution.solver)
    points = count_of_choices(solution.asked, solution.options.compatibility)
    expect(f"{where}.points", summary.points, points)
    expect(f"{where}.fused_points", summary.fused_points, solution.fused_points)
    expect_at_least(f"{where}.points", summary.points, summary.fused_points, f"{where}.fused_points")


def _audit_configurations(
    where: str, summaries: Sequence[StepSummary], solution: DesignSolution, account: DesignAccount
) -> None:
    steps = [(number, step) for number, step in enumerate(account.steps) if step.kernels]
    expect(f"{where}: their number", len(summaries), len(steps))
    for place, (summary, (number, step)) in enumerate(zip(summaries, steps, strict=True)):
        at = f"{where}[{place}]"
        expect(f"{at}.configuration", summary.configuration, number)
        expect(f"{at}.stage", summary.stage, step.stage)
        expect_text(f"{at}.kernels", summary.kernels, tuple(kernel.name for kernel in step.kernels))
        for part in ("compute", "memory", "network", "time"):
            expect(f"{at}.{part}_s", getattr(summary, f"{part}_s"), getattr(step, f"{part}_ns") / PER_S, ROUNDING)
        audit_bound_by(f"{at}.bound_by", summary.bound_by, step.compute_ns, step.memory_ns, step.network_ns)
        expect(f"{at}.sram_bytes", summary.sram_bytes, step.sram_bytes, MULTIPLIED)
        expect(f"{at}.weight_tiles", summary.weight_tiles, solution.figures.steps[number].weight_tiles)


def _audit_kernels(where: str, summaries: Sequence[KernelSummary], account: DesignAccount) -> None:
    decided, kernels = account.decided, account.design.kernels
    expect(f"{where}: their number", len(summaries), len(kernels))
    for place, (summary, kernel) in enumerate(zip(summaries, kernels, strict=True)):
        at, number = f"{where}[{place}]", decided.decision.configs[kernel.id]
        step, (rows, k, columns) = account.steps[number], decided.extents(kernel)
        operations = (2 * k if kernel.systolic else 1) * rows * columns
        expect_text(f"{at}.name", summary.name, kernel.name)
        expect_text(f"{at}.sharding", summary.sharding, decided.split(kernel).value)
        expect(f"{at}.configuration", summary.configuration, number)
        for name, extent in (("rows", rows), ("k", k), ("n", columns)):
            expect(f"{at}.{name}", getattr(summary, name), extent)
        expect(f"{at}.flop", summary.flop, float(step.runs * step.tiles * operations))
        expect(f"{at}.dram_bytes", summary.dram_bytes, step.runs * step.traffic[kernel.id], MULTIPLIED)
        expect(f"{at}.time_s", summary.time_s, step.time_ns / PER_S, ROUNDING)
        audit_bound_by(f"{at}.bound_by", summary.bound_by, step.compute_ns, step.memory_ns, step.network_ns)


def count_of_choices(asked: Design, compatibility: Compatibility) -> int:
    """Return how many ways there are to settle what a design leaves open.

    Args:
        asked: as the file has it; open are chips along a dimension, micro-batches and tiles of 0.
        compatibility: flaws to repeat.
    """
    is_open = not all(link.chips for link in asked.machine.links)
    total = 0
    for chips in _divided(asked.machine.chips // asked.execution.batch.copies, asked):
        links = tuple(replace(link, chips=count) for link, count in zip(asked.machine.links, chips, strict=True))
        groups = Groups(replace(asked, machine=replace(asked.machine, links=links)))
        if not is_open or _is_possible(asked, groups, compatibility):
            total += _micro_batches(asked, groups, compatibility) * _tiles(asked, groups, compatibility)
    return total


def _divided(chips: int, asked: Design) -> Iterator[Sequence[int]]:
    """Yield chips along each dimension whose product is all of them; what is given stays."""

    def rest(left: int, links: Sequence[int]) -> Iterator[Sequence[int]]:
        if not links:
            yield from [()] if left == 1 else []
            return
        for count in [links[0]] if links[0] else range(1, left + 1):
            if left % count == 0:
                for others in rest(left // count, links[1:]):
                    yield (count, *others)

    yield from rest(chips, [link.chips for link in asked.machine.links])


def _is_possible(asked: Design, groups: Groups, compatibility: Compatibility) -> bool:
    """Return whether data parallel groups share a batch, and tensor parallel chips whole heads."""
    batch = asked.execution.batch
    if batch.global_batch % groups.data:
        return False
    if compatibility.heads_may_be_cut or batch.kind is not WorkloadKind.LLM:
        return True
    return all(kernel.outer == 1 or kernel.outer % groups.tensor == 0 for kernel in asked.kernels)


def _micro_batches(asked: Design, groups: Groups, compatibility: Compatibility) -> int:
    """Return how many sizes of micro-batches there are; the smallest is enough where nothing is read for each."""
    batch = asked.execution.batch
    if batch.micro_batch or batch.kind is not WorkloadKind.LLM:
        return 1
    share, left = divmod(batch.global_batch, groups.data)
    if left:
        return 0
    if compatibility.weights_not_read and compatibility.gradients_not_kept:
        return 1
    return sum(share % size == 0 for size in range(1, share + 1))


def _tiles(asked: Design, groups: Groups, compatibility: Compatibility) -> int:
    """Return how many different numbers of tiles there are."""
    batch = asked.execution.batch
    sequence = math.ceil(batch.sequence / groups.sequence)
    if not sequence or (batch.tile and not compatibility.tile_size_is_a_hint):
        return 1
    return len({math.ceil(sequence / size) for size in range(1, min(batch.tile or sequence, sequence) + 1)})


Cells = Iterable[tuple[int, int]]  # x and y of each


def audit_placements(
    where: str,
    summaries: Sequence[PlacementSummary],
    solution: DesignSolution,
    placed: Sequence[PlacedConfiguration],
) -> None:
    """Number the cells of placed units anew; the checker has accepted where they are.

    Raises:
        VerificationError: naming the figure, as found and as recomputed.
    """
    expect(f"{where}: their number", len(summaries), len(placed))
    for number, (summary, one) in enumerate(zip(summaries, placed, strict=True)):
        _audit_placement(f"{where}[{number}]", summary, one, solution)


def _audit_placement(
    where: str, summary: PlacementSummary, placed: PlacedConfiguration, solution: DesignSolution
) -> None:
    grid, units = solution.design.machine.pmu, placed.units
    if grid is None:
        raise VerificationError(f"{where}: found a placement against a chip without a grid")

    def numbers(cells: Cells) -> tuple[int, ...]:
        return tuple(x + grid.x * y for x, y in cells)

    expect(f"{where}.configuration", summary.configuration, placed.configuration)
    expect(f"{where}.columns", summary.columns, grid.x)
    expect(f"{where}.rows", summary.rows, grid.y)
    expect(f"{where}.pcus", summary.pcus, sum(kernel.split.lanes * kernel.split.stages for kernel in units.kernels))
    expect(f"{where}.pmus", summary.pmus, len({cell for tensor in units.tensors for cell in tensor.cells}))
    names = [solution.design.kernels[kernel.kernel].name for kernel in units.kernels]
    found: list[tuple[object, ...]] = [(one.name, one.lanes, one.stages, one.cells) for one in summary.kernels]
    expected: list[tuple[object, ...]] = [
        (name, kernel.split.lanes, kernel.split.stages, numbers(kernel.cells))
        for name, kernel in zip(names, units.kernels, strict=True)
    ]
    _compare(f"{where}.kernels", found, expected)
    _compare(
        f"{where}.tensors",
        [(one.role, one.cells) for one in summary.tensors],
        [(tensor.role.value, numbers(tensor.cells)) for tensor in units.tensors],
    )
    _compare(
        f"{where}.wires",
        [(one.tensor, one.kernel, one.direction, one.pmu_cells, one.pcu_cells) for one in summary.wires],
        [
            (
                wires.tensor,
                wires.kernel,
                "out" if wires.is_write else "in",
                numbers(pmu for pmu, _ in wires.pairs),
                numbers(pcu for _, pcu in wires.pairs),
            )
            for wires in units.wires
        ],
    )
    _compare(
        f"{where}.links",
        [(one.tensor, one.kernel, one.direction, one.dimension, one.border, one.cells) for one in summary.links],
        [
            (
                link.tensor,
                link.kernel,
                "in" if link.is_incoming else "out",
                link.dimension,
                link.border.value,
                numbers(link.cells),
            )
            for link in placed.links
        ],
    )


def _compare(where: str, found: Sequence[tuple[object, ...]], expected: Sequence[tuple[object, ...]]) -> None:
    expect(f"{where}: their number", len(found), len(expected))
    for number, (one, other) in enumerate(zip(found, expected, strict=True)):
        expect_text(f"{where}[{number}]", one, other)
