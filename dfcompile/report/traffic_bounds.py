"""The report of I/O bounds: tables, JSON or CSV."""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from dfcompile.io_bounds.curve import Slope
from dfcompile.io_bounds.fusion.residency import ResidencyPlan
from dfcompile.report.plain_values import Json, plain_fields, rounded
from dfcompile.report.text_tables import Column, Table, folded, page

SCHEMA: Final = "dfcompile-bounds/1"
_UNITS: Final = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B"))


class BoundRow(Struct, frozen=True):
    """What an operator moves at least with a buffer.

    Attributes:
        operator: name.
        type: such as ``Conv``.
        buffer_bytes: size of the buffer.
        proved_bytes: that every schedule of the operator alone moves.
        tiling_bytes: that the best tiling moves; ``None`` if the buffer is too small for any.
        compulsory_bytes: that move with any buffer.
        effectual_buffer_bytes: above which no tiling moves less.
        within_buffer_bytes: smallest buffer that moves at most ``within`` times the least; ``None`` if nobody asked.
        operations: additions and multiplications.
        operations_per_byte: that the best tiling moves.
        is_floor: no tiling is known; the figures say that each word moves once.
        tiling: tile of each rank and the innermost loops.
    """

    operator: str
    type: str
    buffer_bytes: int
    proved_bytes: int
    tiling_bytes: int | None
    compulsory_bytes: int
    effectual_buffer_bytes: int
    within_buffer_bytes: int | None
    operations: int
    operations_per_byte: float | int | None
    is_floor: bool
    tiling: str


class WholeRow(Struct, frozen=True):
    """What a model moves at least with a buffer.

    Attributes:
        buffer_bytes: size of the buffer.
        compulsory_bytes: inputs and parameters once, outputs once.
        proved_bytes: that every run moves that computes each product.
        fused_bytes: with the best order and the best tensors held between operators; ``None``: no tiling fits.
        unfused_bytes: with each operator alone; ``None``: no tiling fits.
        plan: of the fused figure.
    """

    buffer_bytes: int
    compulsory_bytes: int
    proved_bytes: int
    fused_bytes: int | None
    unfused_bytes: int | None
    plan: ResidencyPlan | None


class DieRow(Struct, frozen=True):
    """The division of a chip's die between memory and compute that takes least time.

    Attributes:
        curve: name of the curve that it is for.
        area_pes: of the die, in areas of a multiply-adder.
        sram_share: part of the die that is SRAM as it is.
        memory_share: part that would be.
        buffer_bytes: of that memory.
        multiply_adders: in what is left.
        time_ns: of the operations.
    """

    curve: str
    area_pes: float
    sram_share: float
    memory_share: float
    buffer_bytes: int
    multiply_adders: float
    time_ns: float


class BoundsReport(Struct, frozen=True):
    """I/O bounds of a model or of one shape.

    Attributes:
        subject: name of the model or the shape.
        operators: rows, by operator, then buffer.
        whole: rows of a model, by buffer; empty of one shape.
        within: of ``within_buffer_bytes``; ``None`` if nobody asked.
        notes: what is said of it all.
        slopes: of each shape, or of all operators of a model, each alone.
        die: what a machine's die should be; ``None`` without a machine.
        fusions: rows of a chain or of attention, by what stays on the chip (`type`), then buffer.
        sram_bytes: of the machine's chip; ``None`` without a machine, or if it is not limited.
    """

    subject: str
    operators: tuple[BoundRow, ...]
    whole: tuple[WholeRow, ...]
    within: float | None
    notes: tuple[str, ...]
    slopes: tuple[Slope, ...]
    fusions: tuple[BoundRow, ...] = ()
    die: DieRow | None = None
    sram_bytes: int | None = None


def bounds_rows(rows: Sequence[BoundRow]) -> list[dict[str, Json]]:
    """Return rows as plain values."""
    return [plain_fields(row) for row in rows]


def bounds_record(report: BoundsReport) -> dict[str, Json]:
    """Return all of a report as plain values."""
    return {
        "schema": SCHEMA,
        "subject": report.subject,
        "within": None if report.within is None else rounded(report.within),
        "operators": list(bounds_rows(report.operators)),
        "fusions": list(bounds_rows(report.fusions)),
        "whole": [_whole_record(row) for row in report.whole],
        "notes": list(report.notes),
        "sram_bytes": report.sram_bytes,
        "operations": report.slopes[-1].operations if report.slopes else 0,
        "die": None if report.die is None else plain_fields(report.die),
        "curves": [
            {
                "name": slope.name,
                "operations": slope.operations,
                "buffer_bytes": list(slope.curve.sizes.tolist()),
                "traffic_bytes": list(slope.curve.traffic.tolist()),
            }
            for slope in report.slopes
        ],
    }


def _whole_record(row: WholeRow) -> dict[str, Json]:
    held: dict[str, Json] = dict.fromkeys(("is_exact", "kept", "operators"))
    if row.plan is not None:
        operators: list[Json] = [
            {"operator": share.name, "traffic_bytes": share.traffic_bytes, "free_bytes": share.free_bytes}
            for share in row.plan.operators
        ]
        held = {"is_exact": row.plan.is_exact, "kept": list(row.plan.kept), "operators": operators}
    return plain_fields(row, without="plan") | held


def bounds_table(report: BoundsReport, width: int) -> str:
    """Return bounds as tables for people, with what is said of them."""
    lines = [line for table in _tables(report) for line in table.lines(width)]
    return page(lines + [line for note in report.notes for line in folded(note, width, "  ")])


def _tables(report: BoundsReport) -> Iterator[Table]:
    whole, fusions, operators = report.whole, report.fusions, report.operators
    columns: tuple[Column, ...]
    if whole:
        columns = (
            Column("proved\nbytes", tuple(f"{row.proved_bytes:,}" for row in whole)),
            Column("with tensors\nheld, bytes", tuple(_bytes(row.fused_bytes) for row in whole)),
            Column("each operator\nalone, bytes", tuple(_bytes(row.unfused_bytes) for row in whole)),
            Column("tensors\nheld", tuple("-" if row.plan is None else str(len(row.plan.kept)) for row in whole)),
            Column("exact", tuple("-" if row.plan is None else "yes" if row.plan.is_exact else "no" for row in whole)),
        )
        yield Table("whole model", (_buffers(whole),), columns)
    if fusions:
        labels = (Column("on the chip", tuple(row.type for row in fusions), is_text=True), _buffers(fusions))
        yield Table(fusions[0].operator, labels, tuple(_figures(fusions, report.within, "best known\nbytes")))
    if operators:
        labels = (Column("operator", tuple(row.operator for row in operators), is_text=True), _buffers(operators))
        columns = (
            Column("type", tuple(row.type for row in operators), is_text=True),
            *_figures(operators, report.within, "best tiling\nbytes"),
            Column("tiling", tuple(row.tiling for row in operators), is_text=True),
        )
        yield Table("operators", labels, columns)


def _buffers(rows: Sequence[BoundRow | WholeRow]) -> Column:
    return Column("buffer", tuple(size_text(row.buffer_bytes) for row in rows))


def _figures(rows: Sequence[BoundRow], within: float | None, moved: str) -> list[Column]:
    rates = ("-" if not row.operations_per_byte else f"{row.operations_per_byte:,.1f}" for row in rows)
    columns = [
        Column("proved\nbytes", tuple(f"{row.proved_bytes:,}" for row in rows)),
        Column(moved, tuple(_bytes(row.tiling_bytes) for row in rows)),
        Column("ops /\nbyte", tuple(rates)),
        Column("effectual\nbuffer", tuple(size_text(row.effectual_buffer_bytes) for row in rows)),
    ]
    if within is not None:
        texts = tuple("-" if row.within_buffer_bytes is None else size_text(row.within_buffer_bytes) for row in rows)
        columns.append(Column(f"for {within:g} x\nthe least", texts))
    return columns


def _bytes(count: int | None) -> str:
    return "-" if count is None else f"{count:,}"


def size_text(size: int) -> str:
    """Return a size in the largest unit that gives a whole number, or three digits behind the point.

    >>> size_text(65536), size_text(3072 * 1024 + 512)
    ('64 KiB', '3.000 MiB')
    """
    factor, unit = next(pair for pair in _UNITS if size >= pair[0] or pair[0] == 1)
    return f"{size // factor:,} {unit}" if size % factor == 0 else f"{size / factor:,.3f} {unit}"
