"""Results of a report, what each is called; why one of them is the best, and what may be better: in sentences."""

from collections.abc import Iterator, Sequence
from math import inf, isfinite

from msgspec import Struct

from dfcompile.options.choice_file import choice_options
from dfcompile.page.phrases import choices, column, share
from dfcompile.page.records import Record
from dfcompile.page.view import SmallTable
from dfcompile.report.text_tables import Column, first_of


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
    shown = first_of(rows, _MOST_ROWS, lambda row: row.makespan)
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


_OTHERS = 4  # lowerings that are held against the best
_HINTS = 3
_NAMED = 2  # expansions of a hint; all are in the table
_NOTHING = 5e-4  # as a share in one decimal
_NEAR = 1.1  # times the shortest makespan is nearly as short
_LOST = (("more_work_cycles", "more work than the least"), ("waiting_cycles", "waiting"), ("idle_cycles", "idle"))


def choice_reasons(rows: Sequence[ResultRow], best: ResultRow) -> Iterator[str]:
    """Yield why the best result is best and what might be better, a sentence each; nothing of a deadlock.

    Args:
        rows: all results.
        best: the shortest of them.
    """
    if not isfinite(best.makespan):
        return
    yield from _chosen(best)
    yield from _other_lowerings(rows, best)
    yield from _fewer_pes(rows, best)
    yield from _where_cycles_go(best)
    yield from _hints(best.figures.parts("over_expansions.hints"), best)
    estimated = best.figures.number("automatic.estimated_cycles")
    if estimated and not best.figures.is_set("automatic.is_taken") and estimated < best.makespan:
        yield (
            f"--expand auto, which chooses expansions and tasks for each operator, is estimated at "
            f"{estimated:,} cycles: {best.makespan / estimated:.3g} times fewer."
        )


def _chosen(best: ResultRow) -> Iterator[str]:
    """Yield that expansions and tasks were chosen, and what published ones would give."""
    published = best.figures.number("automatic.published_cycles")
    if best.figures.is_set("automatic.is_taken") and published and best.makespan:
        yield (
            f"Expansions and tasks were chosen for {best.pes:,} PEs; published ones would take about "
            f"{published:,} cycles, {published / best.makespan:.3g} times as many."
        )


def chosen_options(rows: Sequence[ResultRow]) -> Iterator[tuple[str, str]]:
    """Yield the options that give what was chosen for a number of PEs, each once."""
    seen: set[str] = set()
    for row in rows:
        rules, tasks = row.figures.texts("automatic.expand"), row.figures.texts("automatic.granularity")
        options = f"--pes {row.pes} {choice_options(rules, tasks)}"
        if row.figures.is_set("automatic.is_taken") and options not in seen:
            seen.add(options)
            yield f"what was chosen for {row.pes:,} PEs", options


def _other_lowerings(rows: Sequence[ResultRow], best: ResultRow) -> Iterator[str]:
    same = (row for row in rows if row.pes == best.pes and row is not best and isfinite(row.makespan))
    beside = sorted(same, key=lambda row: row.makespan)
    if not beside:
        return
    said = [f"{shortened(row.lowering) or 'another'} {_against(row, best)}" for row in beside[:_OTHERS]]
    yield f"On {best.pes:,} PEs, beside {shortened(best.lowering)}: {'; '.join(said)}."
    counts = {row.pes for row in rows}
    least = {pes: min((row for row in rows if row.pes == pes), key=lambda row: row.makespan) for pes in counts}
    shortest = [pes for pes in sorted(counts) if least[pes].lowering == best.lowering]
    if len(counts) > 1:
        others = [f"{shortened(least[pes].lowering)} on {pes:,}" for pes in sorted(counts) if pes not in shortest]
        yield (
            f"{shortened(best.lowering)} is the shortest on {len(shortest)} of {len(counts)} numbers of PEs"
            + (f"; else {', '.join(others[:_OTHERS])}." if others else ".")
        )


def _against(row: ResultRow, best: ResultRow) -> str:
    longer = row.makespan / best.makespan - 1
    moved, own = (each.figures.number("schedule.io_bytes") for each in (row, best))
    said = f"takes {share(longer)} longer" if longer else "takes as long"
    if 0 < longer < _NOTHING:
        said = f"takes {row.makespan - best.makespan:,} cycles longer"
    if not moved or not own:
        return said
    more = moved / own - 1
    return f"{said} and moves {share(abs(more))} {'more' if more > 0 else 'less'}" if more else f"{said}, moves as much"


def _fewer_pes(rows: Sequence[ResultRow], best: ResultRow) -> Iterator[str]:
    near = [row for row in rows if row.pes < best.pes and row.makespan <= _NEAR * best.makespan]
    if not near:
        return
    fewest = min(near, key=lambda row: (row.pes, row.makespan))
    cost, own = (each.figures.number("mapping.cost_usd") for each in (fewest, best))
    priced = ""
    if cost is not None and own is not None and round(cost) < round(own):
        priced = f", and cost {cost:,.0f} USD instead of {own:,.0f}"
    lowering = f" with {shortened(fewest.lowering)}" if fewest.lowering else ""
    yield (
        f"{fewest.pes:,} PEs{lowering} are nearly as fast: {fewest.makespan:,} cycles, "
        f"{share(fewest.makespan / best.makespan - 1)} longer{priced}."
    )


def held_cycles(best: ResultRow) -> list[tuple[str, float]]:
    """Return the operators of a result and the cycles for which they hold PEs, the largest first."""
    operators, paths = _operators(best), ("least_work_cycles", *(path for path, _ in _LOST))
    held = [(each.text("operator"), sum(each.number(path) or 0 for path in paths)) for each in operators]
    return sorted(held, key=lambda pair: -pair[1])


def _operators(best: ResultRow) -> tuple[Record, ...]:
    return best.figures.parts("over_expansions.operators")


def _where_cycles_go(best: ResultRow) -> Iterator[str]:
    """Yield which operators hold the PEs longest, and what most of these cycles are."""
    held = held_cycles(best)
    total = sum(cycles for _, cycles in held)
    if not total:
        return
    names = " and ".join(f"{name} ({share(cycles / total)})" for name, cycles in held[:2])
    lost = {words: sum(each.number(path) or 0 for each in _operators(best)) for path, words in _LOST}
    words = max(lost, key=lambda name: lost[name])
    why = {"idle": ", PEs without a task while others run", "waiting": ", tasks that wait for others"}.get(words, "")
    yield f"Most PE cycles go to {names}; {share(lost[words] / total)} of all are {words}{why}."


def _hints(hints: Sequence[Record], best: ResultRow) -> Iterator[str]:
    for hint in hints[:_HINTS]:
        chosen, hinted = hint.number("chosen_bound_cycles"), hint.number("hinted_bound_cycles")
        if chosen is None or hinted is None:
            continue
        rules = hint.texts("expand")
        more = f" and {len(rules) - _NAMED:,} more rules (in the table of hints)" if len(rules) > _NAMED else ""
        yield (
            f"--expand {' '.join(rules[:_NAMED])}{more}: the bound of these operators falls from "
            f"{chosen:,} cycles to {hinted:,} cycles, {share((chosen - hinted) / best.makespan)} "
            "of the makespan."
        )
