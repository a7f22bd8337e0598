"""The page of traffic bounds: how little moves for every buffer size."""

from collections.abc import Iterable, Iterator, Sequence
from math import inf

from msgspec import Struct

from dfcompile.page.phrases import column, four_digits, quantity
from dfcompile.page.records import Record
from dfcompile.page.view import Axis, Chart, ChartKind, Guide, Mark, SmallTable, View
from dfcompile.report.text_tables import Column
from dfcompile.report.traffic_bounds import size_text

_SHAPES = 2  # in the answer; all are in the table
_ROWS = 24
_BUFFERS = 5  # of a shape in the first table
_LONGEST = 160  # letters of an answer
_PROVED = ", proved"
_BETWEEN = "Proved: no schedule moves less. The best tiling that was found moves more; the optimum is between both."


def bounds_view(report: Record) -> View:
    """Return the view of a ``dfcompile-bounds``."""
    subject = report.text("subject") or "model"
    question = "How few bytes move between memory and a buffer on the chip, for every size of the buffer?"
    tables, charts = tuple(_tables(report)), tuple(_charts(report))
    reasons = (_BETWEEN,) if report.parts("operators") and not report.parts("whole") else ()
    return View(subject, question, _answer(report), reasons, tables, charts=charts)


def _answer(report: Record) -> str:
    if not (report.parts("whole") or report.parts("fusions") or report.parts("operators")):
        return "It moves nothing."
    if report.parts("whole"):
        last = max(report.parts("whole"), key=lambda row: row.number("buffer_bytes") or 0)
        buffer, proved, moved = (last.number(name) for name in ("buffer_bytes", "proved_bytes", "fused_bytes"))
        found = f"With a buffer of {size_text(int(buffer or 0))} at least {quantity(proved or 0, 'B')} move"
        return found + (f"; the best that was found moves {quantity(moved, 'B')}." if moved is not None else ".")
    shapes: dict[str, Record] = {}
    for row in sorted(report.parts("fusions") or report.parts("operators"), key=_attained):
        shapes.setdefault(row.text("operator"), row)
    said: list[str] = []
    for name, row in shapes.items():
        least, buffer = (row.number(path) or 0 for path in ("compulsory_bytes", "effectual_buffer_bytes"))
        move = " move" if not said else ""
        said.append(f"{quantity(least, 'B')}{move} for {name} (buffer of {quantity(buffer, 'B')})")
    found = f"At least {' and '.join(said[:_SHAPES])}; smaller buffers move more."
    return found if len(found) <= _LONGEST else "The table says how little moves; smaller buffers move more."


def _attained(row: Record) -> tuple[float, float]:
    """Return what the best tiling of a row moves, and the buffer beyond which no tiling moves less."""
    moved = row.number("tiling_bytes")
    return inf if moved is None else moved, row.number("effectual_buffer_bytes") or 0


def _tables(report: Record) -> Iterator[SmallTable]:
    """Yield a few buffers of each shape: what is proved, and what the best tiling moves."""
    whole = report.parts("whole")
    if whole:
        columns = (_sizes(whole), *(
            column(name, [row.number(path) for row in whole], "B")
            for name, path in (("proved", "proved_bytes"), ("tensors held on the chip", "fused_bytes"),
                               ("each operator alone", "unfused_bytes"))
        ))  # fmt: skip
        yield SmallTable("Bytes moved, by size of the buffer", columns)
    shapes = {} if whole else _by_name(report)
    kept = [(name, row) for name, rows in shapes.items() for row in _few(rows)][:_ROWS]
    if not kept:
        return
    names, shown = zip(*kept, strict=True)
    heading = "on the chip" if report.parts("fusions") else "shape"
    columns = (
        Column(heading, names, is_text=True),
        _sizes(shown),
        column("at least, proved", [row.number("proved_bytes") for row in shown], "B"),
        column("best tiling", [row.number("tiling_bytes") for row in shown], "B"),
        column("operations per byte of the tiling", [row.number("operations_per_byte") for row in shown], ""),
        column("buffer for the least", [row.number("effectual_buffer_bytes") for row in shown], "B"),
    )
    yield SmallTable("Bytes moved, by size of the buffer", columns)


def _by_name(report: Record) -> dict[str, list[Record]]:
    """Return rows by what they are of, as their curves are called: a shape, or what of a fusion stays on the chip."""
    fusions = report.parts("fusions")
    key, rows = ("type", fusions) if fusions else ("operator", report.parts("operators"))
    found: dict[str, list[Record]] = {}
    for row in rows:
        found.setdefault(row.text(key), []).append(row)
    return found


def _few(rows: Sequence[Record]) -> list[Record]:
    """Return rows in equal steps, the last among them."""
    step = -(-len(rows) // _BUFFERS)
    return list(rows[::-1][:: max(step, 1)])[::-1]


def _sizes(rows: Sequence[Record]) -> Column:
    return Column("buffer", tuple(size_text(int(row.number("buffer_bytes") or 0)) for row in rows))


class _Line(Struct, frozen=True):
    """A line of the charts.

    Attributes:
        name: of the series.
        colour: series whose colour a proved line has, its own where it belongs to all; empty: it is a tiling's.
        operations: of the shape; 0 where they are not known.
        points: sizes of the buffer, and bytes that move.
    """

    name: str
    colour: str
    operations: float
    points: tuple[tuple[float, float], ...]


def _lines(report: Record) -> Iterator[_Line]:
    """Yield the tilings of each shape, and what is proved: of each shape, or once of a model and of a fused chain."""
    curves = report.parts("curves")
    for curve in curves:
        sizes, moved = curve.numbers("buffer_bytes"), curve.numbers("traffic_bytes")
        yield _Line(curve.text("name"), "", curve.number("operations") or 0, _points(zip(sizes, moved, strict=True)))
    together = report.parts("whole") or report.parts("fusions")
    shapes = {"": together} if together else _by_name(report)
    for name, rows in shapes.items():
        bounds = {row.number("buffer_bytes") or 0: row.number("proved_bytes") or 0 for row in rows}
        last = curves[-1] if not name and curves else None
        own = next((curve for curve in curves if curve.text("name") == name), last)
        if own is not None:
            series = f"{name}{_PROVED}" if name else "proved"
            yield _Line(series, name or series, own.number("operations") or 0, _points(sorted(bounds.items())))


def _points(pairs: Iterable[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    return tuple((size, moved) for size, moved in pairs if size > 0 and moved > 0)


def _charts(report: Record) -> Iterator[Chart]:
    lines, sram = tuple(_lines(report)), report.number("sram_bytes")
    dashed = tuple((line.name, line.colour) for line in lines if line.colour)
    said = " Dashed: proved, no schedule is better; solid: the best tiling that was found." if dashed else ""
    said += " The upright line is the SRAM of the chip." if sram else ""
    moved_marks = tuple(Mark(size, moved, line.name) for line in lines for size, moved in line.points)
    rate_marks = tuple(
        Mark(size, four_digits(line.operations / moved), line.name)
        for line in lines
        for size, moved in line.points
        if line.operations
    )
    for title, caption, up, marks in (
        ("Bytes moved against buffer size", "A larger buffer moves less, until only what has to move is left.",
         Axis("moved", "bytes", is_log=True), moved_marks),
        ("Operations per byte against buffer size", "A larger buffer does more with each byte.",
         Axis("operations per byte", is_log=True), rate_marks),
    ):  # fmt: skip
        if marks:
            height = min(mark.y for mark in marks), max(mark.y for mark in marks)
            guides = (Guide(f"SRAM {quantity(sram, 'B')}", (sram, sram), height),) if sram else ()
            yield Chart(
                ChartKind.LINES, title, caption + said, Axis("buffer", "bytes", is_log=True), up, marks, guides,
                dashed=dashed, has_steps=True,
            )  # fmt: skip
