"""The report on a solved design as tables for people."""

from dfcompile.host.printable import printable
from dfcompile.report.design.figures import CorrectionSummary, DesignReport, StepSummary
from dfcompile.report.tables import assumption_lines
from dfcompile.report.text_tables import Column, folded, listed, page, scaled, table_lines

MOST_STEPS = 24
NAMED_KERNELS = 2


def design_table(report: DesignReport, width: int, *, verbose: bool = True) -> str:
    """Return the report as text of at most ``width`` columns; assumptions are counted, with ``verbose`` listed."""
    lines = table_lines(printable(f"design {report.name}"), (), _design_columns(report), width)
    lines += table_lines("memory of a chip", (), _memory_columns(report), width)
    lines += table_lines("configurations, per input and layer", *_step_columns(report), width)
    if report.placements:
        lines += table_lines("placement, units in use", *_placement_columns(report), width)
    lines += table_lines("sharding", *_kernel_columns(report), width)
    points = f"{report.points} choices of degrees, micro-batch and tiles"
    lines += folded(f"{points}, {report.fused_points} not ruled out by their bound", width)
    lines += listed("corrections", [_correction(found) for found in report.corrections], width)
    if not verbose:
        lines.append("")
    return page([*lines, *assumption_lines(report.assumptions, width, verbose=verbose)])


def _design_columns(report: DesignReport) -> list[Column]:
    degrees = [("TP", report.tensor_parallel), ("PP", report.pipeline_parallel), ("DP", report.data_parallel)]
    if report.sequence_parallel > 1:
        degrees.append(("SP", report.sequence_parallel))
    proof = f"optimal ({report.solver})" if report.optimal else f"gap {100 * report.gap:.2g} % ({report.solver})"
    return [
        Column("chips", (f"{report.chips:,}",)),
        *(Column(name, (f"{count:,}",)) for name, count in degrees),
        Column("micro-\nbatch", (f"{report.micro_batch:,}",)),
        Column("tiles", (f"{report.tiles:,}",)),
        scaled("batch\n{}s", [report.time_s]),
        scaled("layer\n{}s", [report.step_s]),
        Column("util.\n%", (f"{100 * report.utilization:.2f}",)),
        Column("cost\nUSD", (f"{report.cost_usd:,.0f}",)),
        scaled("power\n{}W", [report.power_w]),
        scaled("energy\n{}J", [report.energy_j]),
        Column("proof", (proof,), is_text=True),
    ]


def _memory_columns(report: DesignReport) -> list[Column]:
    sram = max((step.sram_bytes for step in report.configurations), default=0.0)
    return [
        Column("SRAM\nbytes", (f"{sram:,.0f}",)),
        Column("of", (_capacity(report.sram_capacity_bytes),)),
        Column("DRAM\nbytes", (f"{report.dram_bytes:,.0f}",)),
        Column("of", (_capacity(report.dram_capacity_bytes),)),
        *(
            Column(f"{name.replace('_', chr(10))}\nbytes", (f"{size:,.0f}",))
            for name, size in report.dram_parts_bytes
            if size
        ),
    ]


def _capacity(size: float) -> str:
    return f"{size:,.0f}" if size else "unlimited"


def _step_columns(report: DesignReport) -> tuple[list[Column], list[Column]]:
    """Return a row per configuration; of many the slowest ones."""
    steps = report.configurations
    if len(steps) > MOST_STEPS:
        slowest = sorted(steps, key=lambda step: -step.time_s)[:MOST_STEPS]
        steps = tuple(step for step in steps if step in slowest)
    labels = [Column("config", tuple(str(step.number) for step in steps))]
    if any(step.stage for step in report.configurations):
        labels.append(Column("stage", tuple(str(step.stage) for step in steps)))
    return labels, [
        scaled("time\n{}s", [step.time_s for step in steps]),
        scaled("compute\n{}s", [step.compute_s for step in steps]),
        scaled("memory\n{}s", [step.memory_s for step in steps]),
        scaled("network\n{}s", [step.network_s for step in steps]),
        Column("bound by", tuple(step.bound_by for step in steps), is_text=True),
        Column("SRAM\nbytes", tuple(f"{step.sram_bytes:,.0f}" for step in steps)),
        Column("weight\ntiles", tuple(str(step.weight_tiles) for step in steps)),
        Column("kernels", tuple(_span(step) for step in steps), is_text=True),
    ]


def _span(step: StepSummary) -> str:
    names = step.kernels
    return ", ".join(names) if len(names) <= NAMED_KERNELS else f"{names[0]} … {names[-1]} ({len(names)})"


def _placement_columns(report: DesignReport) -> tuple[list[Column], list[Column]]:
    """Return a row per configuration; of many the fullest ones."""
    fullest = sorted(report.placements, key=lambda one: -one.pcus - one.pmus)[:MOST_STEPS]
    placements = [one for one in report.placements if one in fullest]
    cells = [one.grid.x * one.grid.y for one in placements]
    return [Column("config", tuple(str(one.placed.configuration) for one in placements))], [
        Column("PCUs", tuple(f"{one.pcus:,}" for one in placements)),
        Column("of", tuple(f"{count // 2:,}" for count in cells)),
        Column("PMUs", tuple(f"{one.pmus:,}" for one in placements)),
        Column("of", tuple(f"{count - count // 2:,}" for count in cells)),
        Column("cells", tuple(f"{one.pcus + one.pmus:,}" for one in placements)),
        Column("of x*y", tuple(f"{one.grid.x} x {one.grid.y}" for one in placements), is_text=True),
        Column("order", tuple(one.grid.placement.value for one in placements), is_text=True),
    ]


def _kernel_columns(report: DesignReport) -> tuple[list[Column], list[Column]]:
    kernels = report.kernels[: 2 * MOST_STEPS]
    return [Column("kernel", tuple(kernel.name for kernel in kernels), is_text=True)], [
        Column("config", tuple(str(kernel.configuration) for kernel in kernels)),
        Column("split", tuple(kernel.sharding for kernel in kernels), is_text=True),
        Column("rows", tuple(f"{kernel.rows:,}" for kernel in kernels)),
        Column("k", tuple(f"{kernel.k:,}" for kernel in kernels)),
        Column("n", tuple(f"{kernel.n:,}" for kernel in kernels)),
        Column("exchange", tuple(kernel.exchange or "-" for kernel in kernels), is_text=True),
    ]


def _correction(found: CorrectionSummary) -> str:
    """Say what a figure is, and what it would be with the correction turned."""
    if found.is_applied:
        return f"{found.figure}: {found.value:.6g}, not {found.other_value:.6g}: {found.text} (--compat {found.switch})"
    return f"{found.figure}: {found.value:.6g} repeats a flaw, right is {found.other_value:.6g}: {found.text}"
