"""The page of a model, or of a canonical DAG: makespan, I/O, cost per choice and number of PEs; which one and why."""

from collections.abc import Iterator, Sequence

from dfcompile.page.phrases import column, quantity, share
from dfcompile.page.records import Record
from dfcompile.page.view import Axis, Chart, ChartKind, Colouring, Mark, SmallTable, View, spread
from dfcompile.page.views.choice import (
    ResultRow,
    choice_reasons,
    chosen_options,
    held_cycles,
    result_rows,
    results_table,
)
from dfcompile.page.views.configurations import configuration_charts, configuration_tables, limit_reasons
from dfcompile.page.views.roofline import kernel_tables, roofline_charts, sharding_chart
from dfcompile.report.operator_figures import Lowered, lowered_texts
from dfcompile.report.screen import IDLE, mostly_idle
from dfcompile.report.text_tables import Column, first_of

_BY_PES = (
    ("makespan_cycles", "Makespan", "cycles"),
    ("schedule.io_bytes", "I/O of the schedule", "bytes"),
    ("schedule.fifo_elements", "FIFOs", "elements"),
    ("mapping.cost_usd", "Cost", "USD"),
)
# Series of brackets, and where their figures are.
_TIMES = (("proved bound", "mapping.bound_time_s"), ("ideal", "mapping.ideal_time_s"), ("attained", "mapping.time_s"))
_CYCLES = (
    ("proved bound", "schedule.lower_bound_cycles"),
    ("attained", "schedule.makespan_cycles"),
    ("bound over all expansions", "over_expansions.lower_bound_cycles"),
)
_COUNTS = 6  # of PEs in the question
_NAMED_LOWERING = 48  # letters in the answer: longer ones are in the table
_LONGEST_LOWERING = 200  # letters of what operators are lowered to, in the answer
_ROWS_OF_OPERATORS = 24
_ROWS_OF_BRACKETS = 40  # more do not fit on a screen: the shortest are shown


def model_view(report: Record) -> View:
    """Return the view of a ``dfcompile-report``."""
    rows = result_rows(report)
    best = min(rows, key=lambda row: (row.makespan, row.figures.number("pes") or 0))
    subject = report.text("model.name") or report.text("dag.name") or "graph"
    pes = sorted({row.pes for row in rows})
    counts = ", ".join(f"{count:,}" for count in (pes if len(pes) <= _COUNTS else (*pes[:2], *pes[-1:])))
    question = f"How long does {subject} take on {counts} processing elements (PEs), "
    question += "and what does it move and cost?" if rows[0].figures.at("mapping") else "and what does it move?"
    reasons = (*_reasons(best), *choice_reasons(rows, best))
    operators = tuple(name for name, _ in held_cycles(best))
    options, tables = tuple(chosen_options(rows)), tuple(_tables(rows, best))
    return View(subject, question, _answer(best), reasons, tables, options, tuple(_charts(rows, best)), operators)


def _tables(rows: Sequence[ResultRow], best: ResultRow) -> Iterator[SmallTable]:
    yield results_table(rows, best)
    others = best.figures.parts("schedule.what_if")
    if others:
        said = ("this schedule", "makespan_cycles"), ("one made anew for them", "anew_cycles")
        cycles = (column(name, [each.number(path) for each in others], "") for name, path in said)
        changes = Column("parts", tuple(each.text("change") for each in others), is_text=True)
        yield SmallTable(f"Cycles with other parts, of {best.name}", (changes, *cycles))
    yield from configuration_tables(best.figures.parts("mapping.configurations"))
    yield from kernel_tables(best.figures.part("mapping"))


def _answer(best: ResultRow) -> str:
    figures = best.figures
    makespan, gap = figures.number("makespan_cycles"), best.gap
    if makespan is None:
        return "Every schedule stops for ever: FIFOs are too small (deadlock)."
    lowering = f" with {best.lowering}" if 0 < len(best.lowering) <= _NAMED_LOWERING else ""
    found = f"{best.pes:,} PEs{lowering} take" if best.pes > 1 else f"1 PE{lowering} takes"
    moved, cost, time = (figures.number(name) for name in ("schedule.io_bytes", "mapping.cost_usd", "mapping.time_s"))
    found += f" {makespan:,} cycles" + ("" if time is None else f" ({quantity(time, 's')})")
    if gap is not None:
        proved = "proved: no schedule of these tasks is shorter"
        found += f", {share(gap)} above the proved bound" if gap else f", {proved}"
    parts = [] if moved is None else [f"{quantity(moved, 'B')} I/O"]
    parts += [] if cost is None else [f"{cost:,.0f} USD"]
    return "; ".join((found, *parts)) + "."


def _lowering(figures: Record) -> Iterator[str]:
    """Yield what the operators of most work are lowered to; nothing of a DAG."""
    work, groups = figures.number("schedule.total_work_cycles"), figures.parts("lowerings")
    lowered = [
        Lowered(group.texts("operators"), group.names("expansions"), (group.number("work_cycles") or 0) / (work or 1))
        for group in groups
    ]
    texts = [text for text in lowered_texts(lowered) if lowered]
    shown = [text for text in texts if len(text) <= _LONGEST_LOWERING] or texts[:1]
    yield from (f"Lowering: {text}." for text in shown[-1:])


def _reasons(best: ResultRow) -> Iterator[str]:
    figures = best.figures
    yield from _lowering(figures)
    waits = figures.texts("simulation.deadlock")
    if waits:
        yield f"Deadlock: {'; '.join(waits)}."
    limits = tuple(limit_reasons(figures.parts("mapping.configurations")))
    parts = {name: figures.number(f"mapping.parts.{name}") or 0.0 for name in ("work_s", *IDLE)}
    idle = mostly_idle(parts) if all("compute" in limit for limit in limits) else ""
    yield from ((f"PEs are mostly idle: {idle}.",) if idle else limits)
    utilization, speedup = figures.number("schedule.pe_utilization"), figures.number("schedule.speedup")
    if utilization is not None and speedup is not None:
        yield f"PEs work {share(utilization)} of the time; {speedup:.3g} times faster than one PE."


def _charts(rows: Sequence[ResultRow], best: ResultRow) -> Iterator[Chart]:
    yield from _brackets(rows, best)
    for path, title, unit in _BY_PES:
        marks = _marks(rows, "pes", path, best)
        if len({mark.x for mark in marks}) > 1 < len({mark.y for mark in marks}):  # what never changes is in the tables
            caption = "A line per lowering; the ringed dot is the shortest."
            heading, axes = f"{title} against processing elements", (("processing elements", "PEs"), (title, unit))
            yield spread(ChartKind.LINES, heading, caption, *axes, marks)
    marks = _marks(rows, "schedule.io_bytes", "makespan_cycles", best)
    if len({mark.x for mark in marks}) > 1:
        caption, axes = "Lower and further left is better.", (("I/O", "bytes"), ("makespan", "cycles"))
        yield spread(ChartKind.DOTS, "Makespan against I/O", caption, *axes, marks)
    yield from _operators(best)
    yield from configuration_charts(best.figures.parts("mapping.configurations"), best.name)
    yield from roofline_charts(best.figures.part("mapping"), best.name)
    mapping = best.figures.part("mapping")
    yield from sharding_chart(mapping.parts("sharding"), mapping.numbers("network_chips"), best.name)


def _marks(rows: Sequence[ResultRow], x: str, y: str, best: ResultRow) -> tuple[Mark, ...]:
    """Return a mark per result that has both figures."""
    found = ((row, row.figures.number(x), row.figures.number(y)) for row in rows)
    return tuple(
        Mark(across, up, row.lowering, row.name, is_chosen=row is best)
        for row, across, up in found
        if across is not None and up is not None
    )


def _brackets(rows: Sequence[ResultRow], best: ResultRow) -> Iterator[Chart]:
    own = first_of(rows, _ROWS_OF_BRACKETS, lambda row: row.makespan)
    mapped = _bracket_marks(own, _TIMES, best)
    most = f"The shortest {_ROWS_OF_BRACKETS} results at most."
    if mapped:
        caption = "Ideal: of the operators, whatever tasks they become; bound: of these tasks on this machine."
        title, axis = "Bound, ideal and makespan", Axis("time", "s")
        yield Chart(ChartKind.BRACKET, title, f"{caption} {most}", axis, Axis("result"), mapped)
    caption = "What is attained, and what no schedule of this lowering, or of any, can be below."
    title, axis = "Bound and makespan", Axis("makespan", "cycles")
    if mapped:
        title += " on the contention-free machine"
        caption += " Of a schedule of its own, not of the machine's."
    marks = _bracket_marks(own, _CYCLES, best)
    yield Chart(ChartKind.BRACKET, title, f"{caption} {most}", axis, Axis("result"), marks)


def _bracket_marks(rows: Sequence[ResultRow], paths: Sequence[tuple[str, str]], best: ResultRow) -> tuple[Mark, ...]:
    return tuple(
        Mark(row.name, value, series, row.name, is_chosen=row is best)
        for row in rows
        for series, path in paths
        if (value := row.figures.number(path)) is not None
    )


_PARTS = (
    ("least work", "least_work_cycles"),
    ("more work than least", "more_work_cycles"),
    ("waiting", "waiting_cycles"),
    ("idle", "idle_cycles"),
)
_MOVED = (("has to move", "least_bytes"), ("moves more", "excess_bytes"))


def _operators(best: ResultRow) -> Iterator[Chart]:
    """Yield what the operators hold the PEs for, and what they move: beside the schedule, in its colours."""
    for title, axis, parts, where in (
        ("Where the cycles of the PEs go", Axis("PE cycles"), _PARTS, "over_expansions.operators"),
        ("DRAM traffic of each operator", Axis("bytes"), _MOVED, "traffic.operators"),
    ):
        ordered = sorted(best.figures.parts(where), key=lambda each: -sum(each.number(path) or 0 for _, path in parts))
        shown = ordered[:_ROWS_OF_OPERATORS]
        marks = tuple(
            Mark(each.text("operator"), each.number(path) or 0, series) for each in shown for series, path in parts
        )
        caption = f"Of {best.name}; the largest first."
        left = len(ordered) - len(shown)
        caption += f" {left:,} smaller operators are in the table alone." if left > 0 else ""
        across, how = Axis("operator"), Colouring.STRENGTH
        yield Chart(ChartKind.ROWS, title, caption, across, axis, marks, colouring=how, is_beside=True)
