"""The page of a comparison: what changed most between reports."""

from collections.abc import Iterator, Sequence

from dfcompile.page.records import Record
from dfcompile.page.view import Axis, Chart, ChartKind, Mark, View

_MOST = 24  # bars


def comparison_view(report: Record) -> View:
    """Return the view of a ``dfcompile-comparison``."""
    names = report.texts("reports")
    changes = report.parts("changes")
    others = ", ".join(names[1:])
    title, question = f"{names[0]} against {others}", f"What differs in {others} from {names[0]}?"
    answer, reasons = _answer(report.number("figures") or 0, changes), tuple(map(_said, _largest(changes)[:3]))
    return View(title, question, answer, reasons, charts=tuple(_charts(changes)))


def _answer(figures: float, changes: Sequence[Record]) -> str:
    if not changes:
        return f"Nothing: all {figures:,} figures are the same."
    places = {(change.text("where"), change.text("figure")) for change in changes}
    return f"{len(places):,} of {figures:,} figures differ."


def _largest(changes: Sequence[Record]) -> list[Record]:
    return sorted(
        (change for change in changes if change.number("change")),
        key=lambda change: (not change.is_set("is_headline"), -abs(change.number("change") or 0)),
    )


def _said(change: Record) -> str:
    place = f"{change.text('where')} {change.text('figure')}".strip()
    return (
        f"{place}: {change.number('base'):,} became {change.number('value'):,} "
        f"({100 * (change.number('change') or 0):+.3g} %) in {change.text('report')}."
    )


def _charts(changes: Sequence[Record]) -> Iterator[Chart]:
    named = ((f"{change.text('figure')}, {change.text('where')}", change) for change in _largest(changes)[:_MOST])
    marks = tuple(Mark(name, 100 * (change.number("change") or 0), change.text("report")) for name, change in named)
    if marks:
        caption = f"Results first, then what changed by the largest share: {len(marks)} figures; all are in the table."
        yield Chart(ChartKind.ROWS, "What changed most", caption, Axis("figure"), Axis("change", "%"), marks)
