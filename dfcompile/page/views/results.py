"""The results of a report: what each is called, and the table of them that is read first."""

from collections.abc import Iterator, Sequence
from math import inf, isfinite

from msgspec import Struct

from dfcompile.page.phrases import choices, column, share
from dfcompile.page.records import Record
from dfcompile.page.view import SmallTable
from dfcompile.report.text_tables import Column


class ResultRow(Struct, frozen=True):
    """A result of the report.

    Attributes:
        figures: its record.
        lowering: expansions and partitioner, as far as they differ among results.
    """

    figures: Record
    lowering: str

    @property
    def name(self) -> str:
        """Number of PEs and lowering."""
        return f"{self.figures.number('pes')} PEs {self.lowering}".strip()

    @property
    def makespan(self) -> float:
        """Cycles of the machine; infinite in a deadlock."""
        makespan = self.figures.number("makespan_cycles")
        return inf if makespan is None else makespan  # a deadlock has none

    @property
    def pes(self) -> float:
        """Processing elements."""
        return self.figures.number("pes") or 0

    @property
    def gap(self) -> float | None:
        """How far the makespan is above the proved bound: of the machine, else of the schedule."""
        gap = self.figures.number("mapping.gap")
        return self.figures.number("schedule.gap") if gap is None else gap


def result_rows(report: Record) -> tuple[ResultRow, ...]:
    """Return the results, each named by those of its choices that are not the same in all of them."""
    results = report.parts("results")
    named = [tuple(_names(result)) for result in results]
    same = frozenset.intersection(*map(frozenset, named)) if len(named) > 1 else frozenset(named[0])
    return tuple(
        ResultRow(result, " ".join(name for name in names if name and name not in same))
        for result, names in zip(results, named, strict=True)
    )


def _names(result: Record) -> Iterator[str]:
    """Yield its choices; expansions that were chosen are one lowering, whatever the number of PEs."""
    if not result.is_set("automatic.is_taken"):
        yield from choices(result, "expansions").split()
    yield result.text("schedule.partition")
    chips = result.number("mapping.chips_available")
    yield "" if chips is None else f"{chips} chips"


_MOST_ROWS = 16  # on a first screen
_LONGEST = 60  # letters of a lowering; all of it is in the report's own table


def results_table(rows: Sequence[ResultRow], best: ResultRow) -> SmallTable:
    """Return what each result takes, moves and costs; of many the shortest, in their order."""
    kept = {id(row) for row in sorted(rows, key=lambda row: row.makespan)[:_MOST_ROWS]}
    shown = [row for row in rows if id(row) in kept]
    columns = [column("PEs", [row.pes for row in shown], "")]
    if any(row.lowering for row in shown):
        columns.append(Column("lowering", tuple(shortened(row.lowering) for row in shown), is_text=True))
    makespans = tuple(f"{row.makespan:,}" if isfinite(row.makespan) else "-" for row in shown)
    columns.append(Column("makespan, cycles", makespans))
    columns += _measured(shown)
    title = "Results" if len(shown) == len(rows) else f"The {len(shown)} shortest of {len(rows):,} results"
    return SmallTable(title, tuple(columns), next(at for at, row in enumerate(shown) if row is best))


def shortened(lowering: str) -> str:
    """Return a lowering as far as a row of a table has room."""
    return lowering if len(lowering) <= _LONGEST else f"{lowering[: _LONGEST - 1]}…"


_WHOLE = {"USD": ",.2f", "elements": ","}  # units without prefixes, and how their figures are written


def _measured(rows: Sequence[ResultRow]) -> Iterator[Column]:
    """Yield the columns that some result has a figure for."""
    for heading, path, unit in (
        ("time", "mapping.time_s", "s"),
        ("above bound", "", "%"),
        ("I/O", "schedule.io_bytes", "B"),
        ("DRAM", "mapping.dram_bytes", "B"),
        ("FIFOs", "schedule.fifo_elements", "elements"),
        ("cost", "mapping.cost_usd", "USD"),
        ("PEs busy", "schedule.pe_utilization", "%"),
    ):
        values = [row.gap if not path else row.figures.number(path) for row in rows]
        if all(value is None for value in values):
            continue
        if unit == "%":
            cells = tuple("-" if value is None else share(value).removesuffix(" %") for value in values)
            yield Column(f"{heading}, %", cells)
        elif unit in _WHOLE:
            cells = tuple("-" if each is None else format(each, _WHOLE[unit]) for each in values)
            yield Column(f"{heading}, {unit}", cells)
        else:
            yield column(heading, values, unit)
