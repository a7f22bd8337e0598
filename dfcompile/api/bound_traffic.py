"""I/O bounds of what is asked for: a model, a product, a convolution, a chain or attention."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Final

import numpy as np
from msgspec import Struct

from dfcompile.api.bound_requests import PARSERS, Chain, CountedShape, GroupedAttention, check_buffers
from dfcompile.errors import InfeasibleError
from dfcompile.frontend import ReadOptions, read_model
from dfcompile.host.stages import counted, work_of
from dfcompile.io_bounds.curve import Curve, Halo, Int64, Rules, Slope, Tiles, front, total
from dfcompile.io_bounds.einsum.convolution import Convolution, Pooling
from dfcompile.io_bounds.einsum.plain import PlainEinsum, all_tilings, innermost_loops
from dfcompile.io_bounds.fusion.chain import Fusion, chain_curve
from dfcompile.io_bounds.fusion.epilogues import least_plan
from dfcompile.io_bounds.fusion.proved_model import attention_curves, attention_model, chain_model, proved_model_bytes
from dfcompile.io_bounds.fusion.residency import ResidencyPlan
from dfcompile.io_bounds.operators import BoundedModel, BoundedOperator, Operand
from dfcompile.operator_shapes import bounded_model
from dfcompile.options import ShowStage, of_stage, show_nothing
from dfcompile.options.commands import ROWS, BoundsOptions
from dfcompile.options.readers import one_of
from dfcompile.records import replace
from dfcompile.report.plain_values import rounded
from dfcompile.report.traffic_bounds import BoundRow, BoundsReport, WholeRow

_NOTE: Final = (
    "on the chip: what is held between operators (docs/bounds.md); proved there: every run moves as much, whatever it "
    "holds, if it computes each product"
)
DRAWN_STATES: Final = 200  # of a plan in a picture: below a second
DEFAULT_BUFFERS: Final = (2**16, 2**18, 2**20, 2**24)  # of a model


def bounds_of(
    options: BoundsOptions, *, draws: bool = False, cloud: bool = False, show: ShowStage = show_nothing
) -> BoundsReport:
    """Return the bounds of what is asked for.

    Args:
        options: of ``dfcompile bounds``.
        draws: whether plans of models are made for all powers of two, so that their curve can be drawn.
        cloud: whether all tilings of products are kept, so that they can be drawn.
        show: gives a context that lasts as long as a stage.

    Raises:
        UserError: the model cannot be read, or an option has another form.
    """
    tiles, halo = one_of("--tiles", options.tiles, tuple(Tiles)), one_of("--halo", options.halo, tuple(Halo))
    rules = Rules(tiles, halo, not options.first_read)
    if options.model is not None:
        return _model_bounds(options, options.model, rules, show, draws=draws)
    reports = []
    for name, text in options.shapes_asked:
        shape = PARSERS[name](text)
        with show("bounding the chain" if name in ("chain", "attention") else f"bounding {text}"):
            reports.append(_shape_bounds(options, shape, rules, cloud=cloud))
    return reports[0] if len(reports) == 1 else _together(reports)


def _together(reports: Sequence[BoundsReport]) -> BoundsReport:
    """Return one report of several shapes."""
    return BoundsReport(
        ", ".join(report.subject for report in reports),
        tuple(row for report in reports for row in report.operators),
        (),
        reports[0].within,
        tuple(dict.fromkeys(note for report in reports for note in report.notes)),
        tuple(
            replace(slope, name=slope.name if len(report.slopes) == 1 else f"{report.subject}: {slope.name}")
            for report in reports
            for slope in report.slopes
        ),
        tuple(replace(row, operator=report.subject) for report in reports for row in report.fusions),
    )


class _Shape(Struct, frozen=True):
    """What is bounded.

    Attributes:
        name: of the shape.
        operators: each bounded alone.
        curves: of all of them, in words, by what stays on the chip; of a single operator its own.
        model: of the operators, where something may stay on the chip between them.
    """

    name: str
    operators: tuple[BoundedOperator, ...]
    curves: Mapping[str, Curve]
    model: BoundedModel | None = None


def _shape_bounds(
    options: BoundsOptions, shape: CountedShape | Chain | GroupedAttention, rules: Rules, *, cloud: bool
) -> BoundsReport:
    """Return the bounds of a shape, and of the operators of a chain or of attention, each alone.

    Without sizes of buffers they are all powers of two between the least and the maximal effectual one of all ways.
    """
    word_bytes, within = options.word, options.within
    asked = _asked(shape, word_bytes, rules)
    curves, model = asked.curves, asked.model
    everywhere = powers_of_two(
        min(curve.least_size for curve in curves.values()) * word_bytes,
        max(curve.maximal_effectual_size for curve in curves.values()) * word_bytes,
    )
    sizes = check_buffers(options.buffers, word_bytes) or everywhere
    alone = [(op, op.curve(rules)) for op in asked.operators]
    rows = tuple(_operator_row(op, curve, size, rules, within) for op, curve in alone for size in sizes)
    operations = sum(2 * op.macs for op in asked.operators)
    fused = []
    if model is not None:
        for (name, curve), size in product(curves.items(), sizes):
            moved = proved_model_bytes(model, size), model.compulsory_bytes, operations
            fused.append(_row((model.name, name), curve, (size, word_bytes), within, *moved))
    slopes = tuple(Slope(name, _bytes_curve(curve, word_bytes), operations) for name, curve in curves.items())
    if cloud and len(asked.operators) == 1:
        slopes = tuple(replace(slope, cloud=_cloud(asked.operators[0], rules)) for slope in slopes)
    notes = (*notes_of(rules, rows), *((_NOTE,) if fused else ()))
    return BoundsReport(asked.name, rows, (), within, notes, slopes, tuple(fused))


def _cloud(op: BoundedOperator, rules: Rules) -> Int64:
    """Return buffer and traffic of all tilings of a product, in bytes; of other operators none."""
    if not isinstance(op.shape, PlainEinsum):
        return np.empty((2, 0), dtype=np.int64)
    sizes, traffic = all_tilings(op.shape, rules)
    return np.stack((sizes, traffic * op.count)) * op.element_bytes


def _asked(shape: CountedShape | Chain | GroupedAttention, word_bytes: int, rules: Rules) -> _Shape:
    match shape:
        case Chain():
            model = chain_model(shape.rows, shape.widths, word_bytes)
            curves = {str(way): chain_curve(shape.rows, shape.widths, rules, way) for way in Fusion}
        case GroupedAttention():
            model = attention_model(shape.groups, shape.of_group, word_bytes)
            curves = {str(way): one for way, one in attention_curves(shape.groups, shape.of_group, rules).items()}
        case (count, einsum):
            if isinstance(einsum, Convolution) and rules.halo is Halo.TRUE:
                # Windows that are single words are products; the tool of [huang24] has none of that.
                count, einsum = einsum.product or shape
            operator = _operator(count, einsum, word_bytes)
            return _Shape(operator.name, (operator,), {operator.name: operator.curve(rules)})
    return _Shape(str(shape), model.operators, curves, model)


def _operator(count: int, einsum: PlainEinsum | Convolution, word_bytes: int) -> BoundedOperator:
    contracted = einsum.contracted
    if isinstance(einsum, PlainEinsum):
        words = tuple(einsum.words(tensor) for tensor in einsum.tensors if not tensor.is_result)
    else:
        words = (einsum.touched_words, contracted.compulsory_words - contracted.result_words - einsum.touched_words)
    reads = tuple(Operand(name, count * size) for name, size in zip(("a", "b"), words, strict=True))
    writes = (Operand("c", count * contracted.result_words),)
    op_type = "product" if isinstance(einsum, PlainEinsum) else "convolution"
    name = einsum.name if count == 1 else f"{count} x {einsum.name}"
    return BoundedOperator(name, op_type, count, einsum, reads, writes, word_bytes)


def _model_bounds(options: BoundsOptions, file: Path, rules: Rules, show: ShowStage, *, draws: bool) -> BoundsReport:
    """Return the bounds of the model of a file."""
    sizes = check_buffers(options.buffers, 1) or DEFAULT_BUFFERS
    with show(f"reading {file}"):
        program = read_model(file, ReadOptions(**of_stage(options, "reading"), reads_weights=False)).program
    with show(f"bounding {program.name}"):
        return bound_operators(bounded_model(program), sizes, rules, options.within, options.per or ROWS, draws=draws)


def bound_operators(
    bounded: BoundedModel,
    sizes: tuple[int, ...],
    rules: Rules,
    within: float | None = None,
    tables: Collection[str] = ROWS,
    *,
    draws: bool = False,
) -> BoundsReport:
    """Return the bounds of a model and of its operators.

    Args:
        bounded: the model.
        sizes: of buffers, in bytes.
        rules: how traffic is counted.
        within: factor of the least traffic, of which the buffer is asked; ``None``: none is.
        tables: of operators, of the model.
        draws: whether plans are made for all powers of two.
    """
    with work_of(2 + draws) as steps:
        curves = [(op, op.curve(rules)) for op in counted(bounded.operators)]
        rows = tuple(_operator_row(op, curve, size, rules, within) for op, curve in curves for size in sizes)
        steps.add()
        whole = tuple(whole_row(bounded, size, rules) for size in counted(sizes)) if "model" in tables else ()
        steps.add()
        slopes = _slopes(bounded, [_bytes_curve(curve, op.element_bytes) for op, curve in curves], rules, draws=draws)
    shown = rows if "operator" in tables else ()
    return BoundsReport(bounded.name, shown, whole, within, notes_of(rules, rows), slopes)


def _slopes(model: BoundedModel, alone: list[Curve], rules: Rules, *, draws: bool) -> tuple[Slope, ...]:
    """Return the curve of each operator alone and, if it is to be drawn, of plans at powers of two."""
    if not alone:
        return ()
    unfused, found = total(alone), []
    operations = sum(2 * op.macs for op in model.operators)
    slopes = (Slope(f"{model.name}, each operator alone", unfused, operations),)
    if not draws:
        return slopes
    whole = sum(tensor.words * tensor.element_bytes for tensor in model.tensors)
    for size in counted(powers_of_two(unfused.least_size, max(unfused.maximal_effectual_size, whole))):
        with suppress(InfeasibleError):  # the next size may be enough
            found.append((size, least_plan(model, size, rules, DRAWN_STATES).traffic_bytes))
    return *slopes, Slope(f"{model.name}, with tensors held", front(*np.array(found, dtype=np.int64).T), operations)


def whole_row(model: BoundedModel, size: int, rules: Rules) -> WholeRow:
    """Return what a model moves at least with a buffer."""
    alone = [(op.curve(rules).at(size // op.element_bytes), op.element_bytes) for op in model.operators]
    moved = [words * unit for words, unit in alone if words is not None]
    unfused = sum(moved) if len(moved) == len(alone) else None
    plan: ResidencyPlan | None = None
    with suppress(InfeasibleError):
        plan = least_plan(model, size, rules)
    proved = proved_model_bytes(model, size)
    return WholeRow(size, model.compulsory_bytes, proved, None if plan is None else plan.traffic_bytes, unfused, plan)


def _operator_row(op: BoundedOperator, curve: Curve, size: int, rules: Rules, within: float | None) -> BoundRow:
    """Return what an operator moves at least with a buffer of ``size`` bytes."""
    unit = op.element_bytes
    words = size // unit
    moved = op.proved(words) * unit, op.compulsory_words * unit, 2 * op.macs
    row = _row((op.name, op.op_type), curve, (size, unit), within, *moved)
    return replace(row, is_floor=op.is_floor, tiling=_tiling(op, curve, words, rules))


def _row(
    named: tuple[str, str],
    curve: Curve,
    buffer: tuple[int, int],
    within: float | None,
    proved_bytes: int,
    compulsory_bytes: int,
    operations: int,
) -> BoundRow:
    """Return what a curve says of a buffer.

    Args:
        named: what moves, and of which kind it is.
        curve: in units.
        buffer: its size and that of a unit, in bytes.
        within: factor of the least traffic, of which the buffer is asked; ``None``: none is.
        proved_bytes: that move in any case with this buffer.
        compulsory_bytes: that move with any.
        operations: additions and multiplications.
    """
    size, unit = buffer
    moved = curve.at(size // unit)
    moved_bytes = None if moved is None else moved * unit
    # The float is exact for the factor that was typed; the product is rounded down to whole words.
    enough = None if within is None else curve.size_within(int(Fraction(str(within)) * curve.least_traffic))
    return BoundRow(
        *named,
        size,
        proved_bytes,
        moved_bytes,
        compulsory_bytes,
        effectual_buffer_bytes=curve.maximal_effectual_size * unit,
        within_buffer_bytes=None if enough is None else enough * unit,
        operations=operations,
        operations_per_byte=rounded(Fraction(operations, moved_bytes)) if moved_bytes else None,
        is_floor=False,
        tiling="",
    )


def _tiling(op: BoundedOperator, curve: Curve, words: int, rules: Rules) -> str:
    """Return the tile of each rank, and of products the innermost loops."""
    step = curve.step_at(words)
    shape = op.shape.windows if isinstance(op.shape, Pooling) else op.shape
    if step < 0 or not curve.tilings.shape[1] or not isinstance(shape, PlainEinsum | Convolution):
        return "each word once" if op.is_floor else ""
    tiles = tuple(curve.tilings[step].tolist())
    text = " ".join(f"{rank}={tile}" for rank, tile in zip(shape.ranks, tiles, strict=True))
    loops = innermost_loops(shape, tiles, rules) if isinstance(shape, PlainEinsum) else ()
    return f"{text}, {' '.join(loops)} innermost" if loops else text


def powers_of_two(least: int, most: int) -> tuple[int, ...]:
    """Return the powers of two from a size to a larger one, and that; in bytes."""
    powers = [1 << power for power in range((least - 1).bit_length(), most.bit_length()) if 1 << power < most]
    return (*powers, most)


def _bytes_curve(curve: Curve, word_bytes: int) -> Curve:
    """Return a curve of words in bytes."""
    return front(curve.sizes * word_bytes, curve.traffic * word_bytes)


def notes_of(rules: Rules, rows: tuple[BoundRow, ...]) -> tuple[str, ...]:
    """Return what is said of rows of operators."""
    first = "" if rules.elides_first_read else ", first visits of results read"
    said = [f"tiles: {rules.tiles}, halo: {rules.halo}{first}; proved: no schedule of the operator alone moves less"]
    if any(row.is_floor for row in rows):
        said.append("each word once: no tiling is known, the figures are floors")
    return tuple(said)
