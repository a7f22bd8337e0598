"""The page of traffic bounds: how little moves for every buffer size."""

from collections.abc import Iterator

from dfcompile.page.phrases import quantity
from dfcompile.page.records import Record
from dfcompile.page.view import Axis, Chart, ChartKind, Guide, Mark, View


def bounds_view(report: Record) -> View:
    """Return the view of a ``dfcompile-bounds``."""
    subject = report.text("subject") or "model"
    question = f"How little does {subject} move, for every size of its buffer?"
    return View(subject, question, _answer(report), charts=tuple(_charts(report)))


def _answer(report: Record) -> str:
    rows = report.parts("whole") or report.parts("fusions") or report.parts("operators")
    if not rows:
        return "It moves nothing."
    last = max(rows, key=lambda row: row.number("buffer_bytes") or 0)
    buffer, proved = last.number("buffer_bytes"), last.number("proved_bytes")
    tiling = last.number("fused_bytes") if report.parts("whole") else last.number("tiling_bytes")
    found = f"With {quantity(buffer or 0, 'B')}"
    name = last.text("operator")
    found += f" {name} moves" if name else " it moves"
    found += f" at least {quantity(proved or 0, 'B')}"
    return f"{found}; the best that was found moves {quantity(tiling, 'B')}." if tiling is not None else f"{found}."


def _charts(report: Record) -> Iterator[Chart]:
    marks = tuple(
        Mark(size, count, curve.text("name"), curve.text("name"))
        for curve in report.parts("curves")
        for size, count in zip(curve.numbers("buffer_bytes"), curve.numbers("traffic_bytes"), strict=True)
        if size > 0 and count > 0
    )
    sram, moved = report.number("sram_bytes"), tuple(mark.y for mark in marks)
    if marks:
        caption = "Ski slopes: a larger buffer moves less, until only what has to move at all is left."
        caption += " The upright line is the SRAM of the chip." if sram else ""
        across, up = (Axis(label, "bytes", is_log=True) for label in ("buffer", "moved"))
        guides = (Guide(f"SRAM {quantity(sram, 'B')}", (sram, sram), (min(moved), max(moved))),) if sram else ()
        yield Chart(ChartKind.LINES, "Bytes moved against buffer size", caption, across, up, marks, guides)
