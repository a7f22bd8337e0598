"""The report on a solved design as tables for people."""

from collections.abc import Iterator
from typing import Final

from dfcompile.host.printable import printable
from dfcompile.report.columns import Derived, table_columns
from dfcompile.report.design.figures import CorrectionSummary, DesignReport, PlacementSummary, StepSummary
from dfcompile.report.tables import assumption_lines, counted_assumptions
from dfcompile.report.text_tables import Column, Table, ends_of, first_of, folded, listed, page

MOST_STEPS = 24
NAMED_KERNELS = 2


def design_table(report: DesignReport, width: int, *, verbose: bool = True) -> str:
    """Return the report as text of at most ``width`` columns; assumptions are counted, with ``verbose`` listed."""
    lines = [line for table in design_tables(report) for line in table.lines(width)]
    for note in design_notes(report):
        lines += folded(note, width)
    lines += listed("corrections", [_correction(found) for found in report.corrections], width)
    if verbose:
        return page([*lines, *assumption_lines(report.assumptions, width)])
    return page([*lines, "", *counted_assumptions(report.assumptions, width)])


def design_tables(report: DesignReport) -> tuple[Table, ...]:
    """Return the tables of a report on a design."""
    tables = [
        Table(printable(f"design {report.name}"), (), table_columns("design", [report], DESIGN)),
        Table("memory of a chip", (), table_columns("memory", [report], MEMORY)),
        _step_table(report),
    ]
    if report.placements:
        placements = first_of(report.placements, MOST_STEPS, lambda one: -one.pcus - one.pmus)
        label = Column("config", tuple(str(one.configuration) for one in placements))
        columns = table_columns("placements", placements, PLACEMENTS)
        tables.append(Table("placement, units in use", (label,), columns))
    kernels = report.kernels[: 2 * MOST_STEPS]
    names = Column("kernel", tuple(kernel.name for kernel in kernels), is_text=True)
    return (*tables, Table("sharding", (names,), table_columns("kernels", kernels)))


def design_notes(report: DesignReport) -> Iterator[str]:
    """Yield what is to be said below the tables, a text each."""
    points = f"{report.search.points} choices of degrees, micro-batch and tiles"
    yield f"{points}, {report.search.fused_points} not ruled out by their bound"


def _proof(report: DesignReport) -> str:
    search = report.search
    return f"optimal ({search.solver})" if search.optimal else f"gap {100 * search.gap:.2g} % ({search.solver})"


DESIGN: Final = (Derived("proof", _proof, after="figures.energy_j", is_text=True),)
MEMORY: Final[tuple[Derived[DesignReport], ...]] = (
    Derived("SRAM\nbytes", lambda one: f"{max((step.sram_bytes for step in one.configurations), default=0.0):,.0f}"),
)
CONFIGURATIONS: Final[tuple[Derived[StepSummary], ...]] = (
    Derived("kernels", lambda step: ends_of(step.kernels, NAMED_KERNELS), after="weight_tiles", is_text=True),
)
PLACEMENTS: Final[tuple[Derived[PlacementSummary], ...]] = (
    Derived("of", lambda one: f"{one.columns * one.rows // 2:,}", after="pcus"),
    Derived("of", lambda one: f"{(one.columns * one.rows + 1) // 2:,}", after="pmus"),
    Derived("cells", lambda one: f"{one.pcus + one.pmus:,}", after="pmus"),
    Derived("of x*y", lambda one: f"{one.columns} x {one.rows}", after="pmus", is_text=True),
)


def _step_table(report: DesignReport) -> Table:
    """Return a row per configuration; of many the slowest ones."""
    steps = first_of(report.configurations, MOST_STEPS, lambda step: -step.time_s)
    labels = [Column("config", tuple(str(step.configuration) for step in steps))]
    if any(step.stage for step in report.configurations):
        labels.append(Column("stage", tuple(str(step.stage) for step in steps)))
    columns = table_columns("configurations", steps, CONFIGURATIONS)
    return Table("configurations, per input and layer", tuple(labels), columns)


def _correction(found: CorrectionSummary) -> str:
    """Say what a figure is, and what it would be with the correction turned."""
    if found.applied:
        return f"{found.figure}: {found.value:.6g}, not {found.other_value:.6g}: {found.text} (--compat {found.switch})"
    return f"{found.figure}: {found.value:.6g} repeats a flaw, right is {found.other_value:.6g}: {found.text}"
