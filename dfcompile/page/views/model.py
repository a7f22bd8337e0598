"""The page of a model, or of a canonical DAG: makespan, I/O, cost per choice and number of PEs; which one and why."""

from collections.abc import Iterator, Sequence
from math import inf, isfinite
from typing import Final

from msgspec import Struct

from dfcompile.page.phrases import choices, counted, quantity, share
from dfcompile.page.records import Record
from dfcompile.page.view import Axis, Chart, ChartKind, Mark, View, spread
from dfcompile.page.views.configurations import configuration_charts, limits
from dfcompile.page.views.roofline import roofline_charts
from dfcompile.page.views.sharding import sharding_chart


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


_BY_PES: Final = (
    ("makespan_cycles", "Makespan", "cycles"),
    ("schedule.io_bytes", "I/O of the schedule", "bytes"),
    ("schedule.fifo_elements", "FIFOs", "elements"),
    ("mapping.cost_usd", "Cost", "USD"),
)
# Series of brackets, and where their figures are.
_TIMES: Final = (
    ("proved bound", "mapping.bound_time_s"),
    ("ideal", "mapping.ideal_time_s"),
    ("attained", "mapping.time_s"),
)
_CYCLES: Final = (
    ("proved bound", "schedule.lower_bound_cycles"),
    ("attained", "schedule.makespan_cycles"),
    ("bound over all expansions", "over_expansions.lower_bound_cycles"),
)
_ROWS_OF_BRACKETS = 40  # more do not fit on a screen: the shortest are shown


def model_view(report: Record) -> View:
    """Return the view of a ``dfcompile-report``."""
    rows = result_rows(report)
    best = min(rows, key=lambda row: (row.makespan, row.figures.number("pes") or 0))
    subject = report.text("model.name") or report.text("dag.name") or "graph"
    pes = sorted({row.figures.number("pes") or 0 for row in rows})
    question = f"How long does {subject} take on {', '.join(f'{count:,}' for count in pes)} processing elements, "
    question += "and what does it move and cost?" if rows[0].figures.at("mapping") else "and what does it move?"
    reasons = (*_reasons(best), *choice_reasons(rows, best))
    return View(subject, question, _answer(best), reasons, tuple(_charts(rows, best)))


def _answer(best: ResultRow) -> str:
    figures = best.figures
    makespan, gap = figures.number("makespan_cycles"), figures.number("mapping.gap")
    gap = figures.number("schedule.gap") if gap is None else gap
    if makespan is None:
        return "Every schedule stops for ever: FIFOs are too small (deadlock)."
    lowering = choices(figures, "expansions")
    found = f"{figures.number('pes'):,} PEs" + (f" with {lowering}" if lowering else "")
    moved, cost, time = (figures.number(name) for name in ("schedule.io_bytes", "mapping.cost_usd", "mapping.time_s"))
    found += f": {counted(makespan, 'cycles')}" + ("" if time is None else f", {quantity(time, 's')}")
    if gap is not None:
        proved = "proved: no schedule of these tasks is shorter"
        found += f", {share(gap)} above the proved bound" if gap else f", {proved}"
    parts = [] if moved is None else [f"{quantity(moved, 'B')} I/O"]
    parts += [] if cost is None else [f"{cost:,.0f} USD"]
    return "; ".join((found, *parts)) + "."


def _reasons(best: ResultRow) -> Iterator[str]:
    figures = best.figures
    waits = figures.texts("simulation.deadlock")
    if waits:
        yield f"Deadlock: {'; '.join(waits)}."
    limited = limits(figures.parts("mapping.configurations"))
    if limited:
        yield f"On the system it is limited by {limited}."
    utilization, speedup = figures.number("schedule.pe_utilization"), figures.number("schedule.speedup")
    if utilization is not None and speedup is not None:
        yield f"PEs work {share(utilization)} of the time; {speedup:.3g} times faster than one PE."


def _charts(rows: Sequence[ResultRow], best: ResultRow) -> Iterator[Chart]:
    yield from _brackets(rows, best)
    for path, title, unit in _BY_PES:
        marks = _marks(rows, "pes", path, best)
        if len({mark.x for mark in marks}) > 1 < len({mark.y for mark in marks}):  # what never changes is in the tables
            caption = "A line per choice of expansions; the ringed dot is the shortest."
            heading, axes = f"{title} against processing elements", (("processing elements", "PEs"), (title, unit))
            yield spread(ChartKind.LINES, heading, caption, *axes, marks)
    marks = _marks(rows, "schedule.io_bytes", "makespan_cycles", best)
    if len({mark.x for mark in marks}) > 1:
        caption, axes = "Lower and further left is better.", (("I/O", "bytes"), ("makespan", "cycles"))
        yield spread(ChartKind.DOTS, "Makespan against I/O", caption, *axes, marks)
    yield from configuration_charts(best.figures.parts("mapping.configurations"), best.name)
    yield from roofline_charts(best.figures.part("mapping"), best.name)
    yield from _operators(best)
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
    shown = sorted(rows, key=lambda row: row.makespan)[:_ROWS_OF_BRACKETS]
    kept = set(map(id, shown))
    own = [row for row in rows if id(row) in kept]
    mapped = _bracket_marks(own, _TIMES, best)
    most = f"The shortest {_ROWS_OF_BRACKETS} results at most."
    if mapped:
        caption = "Ideal: of the operators, whatever tasks they become; bound: of these tasks on this machine."
        title, axis = "Bound, ideal and makespan", Axis("time", "s")
        yield Chart(ChartKind.BRACKET, title, f"{caption} {most}", axis, Axis("result"), mapped)
    caption = "What is attained, and what no schedule of this lowering, or of any, can be below."
    title, axis = "Bound and makespan", Axis("makespan", "cycles")
    title += " on the contention-free machine" if mapped else ""
    marks = _bracket_marks(own, _CYCLES, best)
    yield Chart(ChartKind.BRACKET, title, f"{caption} {most}", axis, Axis("result"), marks)


def _bracket_marks(rows: Sequence[ResultRow], paths: Sequence[tuple[str, str]], best: ResultRow) -> tuple[Mark, ...]:
    return tuple(
        Mark(row.name, value, series, row.name, is_chosen=row is best)
        for row in rows
        for series, path in paths
        if (value := row.figures.number(path)) is not None
    )


def _operators(best: ResultRow) -> Iterator[Chart]:
    operators = best.figures.parts("over_expansions.operators")
    parts = (("least work", "least_work_cycles"), ("more work than least", "more_work_cycles"),
             ("waiting", "waiting_cycles"), ("idle", "idle_cycles"))  # fmt: skip
    marks = tuple(
        Mark(each.text("operator"), each.number(path) or 0, series, each.text("operator"))
        for each in operators
        for series, path in parts
    )
    if marks:
        caption = f"Of {best.name}; a bar per operator of the model, PEs times cycles."
        axes = Axis("operator"), Axis("PE cycles", "cycles")
        yield Chart(ChartKind.BARS, "Where the cycles of the PEs go", caption, *axes, marks)


_OTHERS = 4  # lowerings that are held against the best
_HINTS = 3
_RULES: Final = 6  # of the choice; all are in the report
_NAMED = 2  # expansions of a hint; all are in the table
_NEAR: Final = 1.1  # times the shortest makespan is nearly as short
_PARTS = (("more_work_cycles", "more work than the least"), ("waiting_cycles", "waiting"), ("idle_cycles", "idle"))


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
    yield from _where_cycles_go(best.figures.parts("over_expansions.operators"))
    yield from _hints(best.figures.parts("over_expansions.hints"), best)
    estimated = best.figures.number("automatic.estimated_cycles")
    if estimated and not best.figures.is_set("automatic.is_taken") and estimated < best.makespan:
        yield (
            f"--expand auto, which chooses expansions and tasks for each operator, is estimated at "
            f"{counted(estimated, 'cycles')}: {best.makespan / estimated:.3g} times fewer."
        )


def _chosen(best: ResultRow) -> Iterator[str]:
    """Yield that expansions and tasks were chosen, the words that give the same, and what published ones would give."""
    if not best.figures.is_set("automatic.is_taken"):
        return
    rules = [f"--expand {rule}" for rule in best.figures.texts("automatic.expand")]
    rules += [f"--granularity {each}" for each in best.figures.texts("automatic.granularity")]
    more = f" and {len(rules) - _RULES:,} more (in the report's JSON)" if len(rules) > _RULES else ""
    said = f"Expansions and tasks were chosen for {best.pes:,} PEs: {' '.join(rules[:_RULES])}{more}."
    published = best.figures.number("automatic.published_cycles")
    if published and best.makespan:
        said += f" --expand published would take about {counted(published, 'cycles')}, "
        said += f"{published / best.makespan:.3g} times as many."
    yield said


def _other_lowerings(rows: Sequence[ResultRow], best: ResultRow) -> Iterator[str]:
    beside = sorted(
        (row for row in rows if row.pes == best.pes and row is not best and isfinite(row.makespan)),
        key=lambda row: row.makespan,
    )
    if not beside:
        return
    said = [f"{row.lowering or 'another'} {_against(row, best)}" for row in beside[:_OTHERS]]
    yield f"On {best.pes:,} PEs, beside {best.lowering}: {'; '.join(said)}."
    counts = {row.pes for row in rows}
    least = {pes: min((row for row in rows if row.pes == pes), key=lambda row: row.makespan) for pes in counts}
    shortest = [pes for pes in sorted(counts) if least[pes].lowering == best.lowering]
    if len(counts) > 1:
        others = [f"{least[pes].lowering} on {pes:,}" for pes in sorted(counts) if pes not in shortest]
        yield (
            f"{best.lowering} is the shortest on {len(shortest)} of {len(counts)} numbers of PEs"
            + (f"; else {', '.join(others[:_OTHERS])}." if others else ".")
        )


def _against(row: ResultRow, best: ResultRow) -> str:
    longer = row.makespan / best.makespan - 1
    moved, own = (each.figures.number("schedule.io_bytes") for each in (row, best))
    said = f"takes {share(longer)} longer" if longer else "takes as long"
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
    lowering = f" with {fewest.lowering}" if fewest.lowering else ""
    yield (
        f"{fewest.pes:,} PEs{lowering} are nearly as fast: {counted(fewest.makespan, 'cycles')}, "
        f"{share(fewest.makespan / best.makespan - 1)} longer{priced}."
    )


def _where_cycles_go(operators: Sequence[Record]) -> Iterator[str]:
    """Yield which operators hold the PEs longest, and what most of these cycles are."""
    paths = ("least_work_cycles", *(path for path, _ in _PARTS))
    held = {each.text("operator"): sum(each.number(path) or 0 for path in paths) for each in operators}
    total = sum(held.values())
    if not total:
        return
    largest = sorted(held.items(), key=lambda pair: -pair[1])[:2]
    names = " and ".join(f"{name} ({share(cycles / total)})" for name, cycles in largest)
    lost = {words: sum(each.number(path) or 0 for each in operators) for path, words in _PARTS}
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
            f"{counted(chosen, 'cycles')} to {counted(hinted, 'cycles')}, {share((chosen - hinted) / best.makespan)} "
            "of the makespan."
        )
