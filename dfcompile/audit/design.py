"""The audit of a report on a design: its figures, those of configurations and kernels, search and corrections."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product

from msgspec.structs import asdict

from dfcompile.audit import comparing
from dfcompile.audit.comparing import NEAR_EXACT, ROUNDING, expect_figures, expect_rows
from dfcompile.audit.design_account import DesignAccount
from dfcompile.audit.mapping.times import audit_bound_by, audit_time
from dfcompile.dfmodel_backend import Correction, DesignSolution, PlacedConfiguration
from dfcompile.dfmodel_backend.check.decided_design import DecidedDesign, Groups, Kernels
from dfcompile.dfmodel_backend.check.designs import check_units
from dfcompile.dfmodel_backend.check.machines import PER_GIGA, PER_S
from dfcompile.dfmodel_backend.check.steps import sram_of
from dfcompile.dfmodel_backend.compatibility import CORRECTIONS, ORIGINAL, RIGHT, Compatibility
from dfcompile.dfmodel_backend.workload.design import Design, WorkloadKind
from dfcompile.errors import VerificationError
from dfcompile.records import replace
from dfcompile.report.design import figures as reported


def audit_design(
    report: reported.DesignReport,
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
    comparing.audit_derived("report", report)
    decided = DecidedDesign(solution.design, solution.decision, solution.options.compatibility)
    account = DesignAccount(decided, solution.figures.steps)
    _audit_figures(report.figures, account)
    _audit_search(report, solution, account)
    _audit_configurations(report, solution, account)
    _audit_kernels(report.kernels, account)
    _audit_placements(report, solution.design, placed)
    _audit_corrections(report, solution, account, corrections)


def _audit_figures(summary: reported.DesignSummary, account: DesignAccount) -> None:
    where, machine, batch, groups = "figures", account.design.machine, account.design.execution.batch, account.groups
    time_s, rate, power = account.batch_ns / PER_S, account.peak_flop_per_s, account.power_w
    peak = rate * machine.chips * time_s
    expect_figures(f"{where}: of the machine", summary, chips=machine.chips)
    expect_figures(where, summary, chips=batch.copies * groups.chips, tiles=account.decided.decision.tiles)
    expect_figures(where, summary, tensor_parallel=groups.tensor, pipeline_parallel=groups.pipeline)
    expect_figures(where, summary, data_parallel=groups.data, sequence_parallel=groups.sequence)
    expect_figures(where, summary, micro_batch=max(1, batch.micro_batch), flop=account.flop)
    expect_figures(where, summary, ROUNDING, time_s=time_s, step_s=account.step_ns / PER_S)
    expect_figures(where, summary, ROUNDING, latency_s=account.latency_ns / PER_S, energy_j=power * time_s)
    expect_figures(where, summary, ROUNDING, utilization=account.flop / peak if peak else 0.0)
    expect_figures(where, summary, NEAR_EXACT, cost_usd=account.price_usd, power_w=power, chip_flop_per_s=rate)
    expect_figures(where, summary, NEAR_EXACT, dram_bytes_per_s=machine.dram_gb_per_s * PER_GIGA)
    expect_figures(where, summary, NEAR_EXACT, dram_traffic_bytes=account.dram_traffic_bytes)
    expect_figures(where, summary, NEAR_EXACT, network_traffic_bytes=account.network_traffic_bytes)
    expect_figures(where, summary, NEAR_EXACT, sharding_bytes=account.decided.sharding_bytes)
    expect_figures(where, summary, sram_capacity_bytes=machine.sram_bytes, dram_capacity_bytes=machine.dram_bytes)
    expect_figures(where, summary, NEAR_EXACT, dram_bytes=account.memory.total)
    if machine.dram_bytes:
        capacity = f"{where}.dram_capacity_bytes"
        comparing.expect_at_least(capacity, machine.dram_bytes, summary.dram_bytes, "in use", ROUNDING)
    expect_figures(f"{where}.dram_parts_bytes", summary.dram_parts_bytes, NEAR_EXACT, **asdict(account.memory))


def _audit_search(report: reported.DesignReport, solution: DesignSolution, account: DesignAccount) -> None:
    where, summary, time_s = "search", report.search, account.batch_ns / PER_S
    bound_s = time_s if solution.optimal else solution.bound_ns / PER_S
    points = count_of_choices(solution.asked, solution.options.compatibility)
    expect_figures(where, summary, solver=solution.solver, points=points, fused_points=solution.fused_points)
    comparing.expect_bound(where, summary, time_s, bound_s, is_optimal=solution.optimal)
    comparing.expect_at_least(f"{where}.points", summary.points, summary.fused_points, f"{where}.fused_points")


def _audit_configurations(report: reported.DesignReport, solution: DesignSolution, account: DesignAccount) -> None:
    steps = [(number, step) for number, step in enumerate(account.steps) if step.kernels]
    for at, summary, (number, step) in expect_rows("configurations", report.configurations, steps):
        kernels = tuple(kernel.name for kernel in step.kernels)
        weight_tiles = solution.figures.steps[number].weight_tiles
        expect_figures(at, summary, configuration=number, stage=step.stage, kernels=kernels, weight_tiles=weight_tiles)
        expect_figures(at, summary, NEAR_EXACT, sram_bytes=step.sram_bytes)
        audit_time(at, summary, (step.compute_ns, step.memory_ns, step.network_ns), step.time_ns)


def _audit_kernels(summaries: Sequence[reported.KernelSummary], account: DesignAccount) -> None:
    decided = account.decided
    for at, summary, kernel in expect_rows("kernels", summaries, account.design.kernels):
        number, (rows, k, columns) = decided.decision.configs[kernel.id], decided.extents(kernel)
        step, flop = account.steps[number], (2 * k if kernel.systolic else 1) * rows * columns
        expect_figures(at, summary, name=kernel.name, sharding=decided.split(kernel).value, configuration=number)
        expect_figures(at, summary, rows=rows, k=k, n=columns, flop=float(step.runs * step.tiles * flop))
        expect_figures(at, summary, NEAR_EXACT, dram_bytes=step.runs * step.traffic[kernel.id])
        expect_figures(at, summary, ROUNDING, time_s=step.time_ns / PER_S)
        audit_bound_by(f"{at}.bound_by", summary.bound_by, (step.compute_ns, step.memory_ns, step.network_ns))


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
    divisors = [count for count in range(1, chips + 1) if chips % count == 0]
    ways = product(*([link.chips] if link.chips else divisors for link in asked.machine.links))
    yield from (way for way in ways if math.prod(way) == chips)


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


def _audit_placements(report: reported.DesignReport, design: Design, placed: Sequence[PlacedConfiguration]) -> None:
    """Number the cells of placed units anew; the checker has accepted where they are.

    Raises:
        VerificationError: naming the figure, as found and as recomputed.
    """
    grid = design.machine.pmu
    for at, summary, one in expect_rows("placements", report.placements, placed):
        if grid is None:
            raise VerificationError(f"{at}: found a placement against a chip without a grid")
        pcus = sum(kernel.split.lanes * kernel.split.stages for kernel in one.units.kernels)
        pmus = len({cell for tensor in one.units.tensors for cell in tensor.cells})
        expect_figures(at, summary, configuration=one.configuration, columns=grid.x, rows=grid.y, pcus=pcus, pmus=pmus)
        _audit_units(at, summary, one, design, grid.x)


def _audit_units(
    where: str, summary: reported.PlacementSummary, placed: PlacedConfiguration, design: Design, columns: int
) -> None:
    """Number the cells of kernels, tensors, wires and links of a configuration row by row of the grid."""

    def numbers(cells: Iterable[tuple[int, int]]) -> tuple[int, ...]:
        return tuple(x + columns * y for x, y in cells)

    unit: object
    for at, unit, kernel in expect_rows(f"{where}.kernels", summary.kernels, placed.units.kernels):
        expect_figures(at, unit, name=design.kernels[kernel.kernel].name, cells=numbers(kernel.cells))
        expect_figures(at, unit, lanes=kernel.split.lanes, stages=kernel.split.stages)
    for at, unit, tensor in expect_rows(f"{where}.tensors", summary.tensors, placed.units.tensors):
        expect_figures(at, unit, role=tensor.role.value, cells=numbers(tensor.cells))
    for at, unit, wires in expect_rows(f"{where}.wires", summary.wires, placed.units.wires):
        pmus, pcus = (numbers(pair[end] for pair in wires.pairs) for end in (0, 1))
        expect_figures(at, unit, tensor=wires.tensor, kernel=wires.kernel, direction="out" if wires.is_write else "in")
        expect_figures(at, unit, pmu_cells=pmus, pcu_cells=pcus)
    for at, unit, link in expect_rows(f"{where}.links", summary.links, placed.links):
        expect_figures(at, unit, tensor=link.tensor, kernel=link.kernel, direction="in" if link.is_incoming else "out")
        expect_figures(at, unit, dimension=link.dimension, border=link.border.value, cells=numbers(link.cells))


def _audit_corrections(
    report: reported.DesignReport, solution: DesignSolution, account: DesignAccount, corrections: Sequence[Correction]
) -> None:
    """Compute anew what figures are, and what they would be with a switch turned.

    Args:
        report: whose corrections are audited.
        solution: that the report is of.
        account: of it.
        corrections: with the configurations under the turned switch, whose splits of cores are as decided there.

    Raises:
        VerificationError: naming the figure, as found and as recomputed.
    """
    own = _named(account)
    turned: dict[str, Mapping[str, float]] = {}
    for at, summary, correction in expect_rows("corrections", report.corrections, corrections):
        switch = correction.switch
        is_right = getattr(solution.options.compatibility, switch) == getattr(RIGHT, switch)
        expect_figures(at, summary, switch=switch.replace("_", "-"), text=CORRECTIONS[switch], applied=is_right)
        expect_figures(at, summary, figure=correction.figure)
        if not correction.steps:
            # Memory units that a configuration needs: turned, they are more than those of the chip.
            grid = solution.design.machine.pmu
            if grid is None or not correction.value <= grid.pmus < correction.other_value:
                raise VerificationError(f"{at}: found {correction.value} PMUs, then {correction.other_value}")
            expect_figures(at, summary, value=correction.value, other_value=correction.other_value)
            continue
        if switch not in turned:
            turned[switch] = _turned(at, solution, correction, is_right=is_right)
        expect_figures(at, summary, NEAR_EXACT, value=own[summary.figure], other_value=turned[switch][summary.figure])


def _named(account: DesignAccount) -> Mapping[str, float]:
    return {
        "time of a batch (s)": account.batch_ns / PER_S,
        "DRAM of a chip (bytes)": account.memory.total,
        "DRAM traffic of a batch (bytes)": account.dram_traffic_bytes,
        "most SRAM of a configuration (bytes)": max(step.sram_bytes for step in account.steps),
        "cost (USD)": account.price_usd,
        "power (W)": account.power_w,
    }


def _turned(where: str, solution: DesignSolution, correction: Correction, *, is_right: bool) -> Mapping[str, float]:
    """Return the figures with a switch turned, of configurations whose weights come in as many tiles as they must."""
    switch = correction.switch
    flipped: Mapping[str, bool] = {switch: getattr(ORIGINAL if is_right else RIGHT, switch)}
    turned = replace(solution.options.compatibility, **flipped)
    decided = DecidedDesign(solution.design, solution.decision, turned)
    for number, step in enumerate(correction.steps):
        inside, at = decided.configuration(number), f"{where}: configuration {number}"
        if not inside:
            continue
        if solution.design.machine.pmu is not None:
            check_units(decided, step, at)
        else:
            compute_ns, tiles = solution.figures.steps[number].compute_ns, _fewest_weight_tiles(decided, inside)
            expect_figures(at, step, compute_ns=compute_ns, weight_tiles=tiles)
    return _named(DesignAccount(decided, correction.steps))


def _fewest_weight_tiles(decided: DecidedDesign, inside: Kernels) -> int:
    """Return the fewest tiles of the weights of a kernel alone with which it fits SRAM; if none do they come whole."""
    capacity = decided.design.machine.sram_bytes
    if len(inside) != 1 or not capacity or decided.design.execution.batch.kind is not WorkloadKind.LLM:
        return 1
    whole, halves = (sram_of(decided, inside, tiles) for tiles in (1, 2))
    shared = 2 * (whole - halves)
    rows, _, _ = decided.extents(inside[0])
    if whole <= capacity or whole - shared >= capacity or not inside[0].has_weight:
        return 1
    tiles = math.ceil(shared / (capacity - (whole - shared)))
    return tiles if tiles <= rows else 1
