"""The page of traffic bounds: how little moves for every buffer size."""

from collections.abc import Iterator, Sequence
from typing import Final

from dfcompile.page.phrases import column, quantity
from dfcompile.page.records import Record
from dfcompile.page.view import Axis, Chart, ChartKind, Guide, Mark, SmallTable, TableColumn, View
from dfcompile.report.traffic_bounds import size_text

_SHAPES: Final = 2  # in the answer; all are in the table
_ROWS: Final = 24
_BUFFERS: Final = 5  # of a shape in the first table
_PROVED: Final = ", proved"


def bounds_view(report: Record) -> View:
    """Return the view of a ``dfcompile-bounds``."""
    subject = report.text("subject") or "model"
    question = "How few bytes move between memory and a buffer on the chip, for every size of the buffer?"
    tables, charts = tuple(_tables(report)), tuple(_charts(report))
    return View(subject, question, _answer(report), tuple(_reasons(report)), tables, charts=charts)


def _answer(report: Record) -> str:
    if not (report.parts("whole") or report.parts("fusions") or report.parts("operators")):
        return "It moves nothing."
    if report.parts("whole"):
        last = max(report.parts("whole"), key=lambda row: row.number("buffer_bytes") or 0)
        buffer, proved, moved = (last.number(name) for name in ("buffer_bytes", "proved_bytes", "fused_bytes"))
        found = f"With a buffer of {size_text(int(buffer or 0))} at least {quantity(proved or 0, 'B')} move"
        return found + (f"; the best that was found moves {quantity(moved, 'B')}." if moved is not None else ".")
    rows = report.parts("fusions") or report.parts("operators")
    shapes = {row.text("operator"): row for row in rows}
    said = [
        f"{name} moves at least {quantity(row.number('compulsory_bytes') or 0, 'B')}, in a buffer of "
        f"{quantity(row.number('effectual_buffer_bytes') or 0, 'B')}"
        for name, row in shapes.items()
    ]
    found = "; ".join(said[:_SHAPES])
    if len(said) > 1 and len(found) > _LONGEST:
        found = said[0]
    return f"{found}; smaller buffers move more." if len(found) <= _LONGEST else "Smaller buffers move more; the table says how much."


_LONGEST: Final = 130  # letters of the shapes in an answer


def _reasons(report: Record) -> Iterator[str]:
    if report.parts("operators") and not report.parts("whole"):
        yield "Proved: no schedule moves less. The best tiling that was found lies above it; the optimum is between both."


def _tables(report: Record) -> Iterator[SmallTable]:
    """Yield a few buffers of each shape: what is proved, and what the best tiling moves."""
    whole = report.parts("whole")
    if whole:
        columns = (_sizes(whole), *(
            column(name, [row.number(path) for row in whole], "B")
            for name, path in (("proved", "proved_bytes"), ("tensors held on the chip", "fused_bytes"),
                               ("each operator alone", "unfused_bytes"))
        ))  # fmt: skip
        yield SmallTable("Bytes that move, by size of the buffer", columns)
    rows = report.parts("fusions") or (() if whole else report.parts("operators"))
    shown = [row for name in _names(rows) for row in _few([row for row in rows if _name(row) == name])][:_ROWS]
    if not shown:
        return
    rates = [row.number("operations_per_byte") for row in shown]
    columns = (
        TableColumn("shape", tuple(map(_name, shown)), is_text=True),
        _sizes(shown),
        column("at least, proved", [row.number("proved_bytes") for row in shown], "B"),
        column("best tiling", [row.number("tiling_bytes") for row in shown], "B"),
        column("operations per byte", rates, ""),
        column("buffer for the least", [row.number("effectual_buffer_bytes") for row in shown], "B"),
    )
    yield SmallTable("Bytes that move, by size of the buffer", columns)


def _name(row: Record) -> str:
    """Return the shape of a row; of a fusion what stays on the chip."""
    return row.text("operator")


def _names(rows: Sequence[Record]) -> list[str]:
    return list(dict.fromkeys(map(_name, rows)))


def _few(rows: Sequence[Record]) -> list[Record]:
    """Return rows in equal steps, the last among them."""
    step = -(-len(rows) // _BUFFERS)
    return list(rows[::-1][:: max(step, 1)])[::-1]


def _sizes(rows: Sequence[Record]) -> TableColumn:
    return TableColumn("buffer", tuple(size_text(int(row.number("buffer_bytes") or 0)) for row in rows))


def _charts(report: Record) -> Iterator[Chart]:
    curves = [
        (curve.text("name"), curve.number("operations") or 0, tuple(_points(curve))) for curve in report.parts("curves")
    ]
    names = {name for name, _, _ in curves}
    floors = [row for row in report.parts("operators") if row.text("operator") in names]
    sram = report.number("sram_bytes")
    bounds = [(row.text("operator"), row.number("operations") or 0, row) for row in floors]
    if report.parts("whole") and len(names) == 1:
        bounds = [(curves[0][0], curves[0][1], row) for row in report.parts("whole")]
    dashed = tuple((f"{name}{_PROVED}", name) for name, _, _ in curves if any(name == own for own, _, _ in bounds))
    proved = [
        (f"{name}{_PROVED}", operations, size, least)
        for name, operations, row in bounds
        if (size := row.number("buffer_bytes")) and (least := row.number("proved_bytes"))
    ]
    tilings = [(name, operations, size, moved) for name, operations, points in curves for size, moved in points]
    both = (*tilings, *proved)
    said = " Dashed: proved, no schedule is better; solid: the best tiling that was found." if proved else ""
    said += " The upright line is the SRAM of the chip." if sram else ""
    moved_marks = tuple(Mark(size, moved, name) for name, _, size, moved in both)
    rate_marks = tuple(Mark(size, operations / moved, name) for name, operations, size, moved in both if operations)
    for title, caption, label, unit, marks in (
        ("Bytes moved against buffer size", "A larger buffer moves less, until only what has to move is left.",
         "moved", "bytes", moved_marks),
        ("Operations per byte against buffer size", "A larger buffer does more with each byte.",
         "operations per byte", "", rate_marks),
    ):  # fmt: skip
        if marks:
            across, up = Axis("buffer", "bytes", is_log=True), Axis(label, unit, is_log=True)
            height = min(mark.y for mark in marks), max(mark.y for mark in marks)
            guides = (Guide(f"SRAM {quantity(sram, 'B')}", (sram, sram), height),) if sram else ()
            yield Chart(ChartKind.LINES, title, caption + said, across, up, marks, guides, dashed=dashed, has_steps=True)


def _points(curve: Record) -> Iterator[tuple[float, float]]:
    for size, moved in zip(curve.numbers("buffer_bytes"), curve.numbers("traffic_bytes"), strict=True):
        if size > 0 and moved > 0:
            yield size, moved
