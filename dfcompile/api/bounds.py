"""I/O bounds of what is asked for: a model, a product, a convolution, a chain or attention."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from dfcompile.api.bound_requests import PARSERS, Chain, CountedShape, GroupedAttention, parse_buffers
from dfcompile.api.bound_traffic import (
    DEFAULT_BUFFERS,
    bound_operators,
    bound_row,
    bytes_curve,
    curve_bytes,
    notes_of,
    per_byte,
    powers_of_two,
)
from dfcompile.bounds.curve import Curve
from dfcompile.bounds.einsum.convolution import Convolution
from dfcompile.bounds.einsum.plain import PlainEinsum
from dfcompile.bounds.fusion.chain import Fusion, chain_curve
from dfcompile.bounds.fusion.proved_model import proved_model_bytes
from dfcompile.bounds.fusion.small_models import attention_curves, attention_model, chain_model
from dfcompile.bounds.operators import BoundedModel, BoundedOperator, Operand
from dfcompile.bounds.tilings import Halo, Rules, Tiles
from dfcompile.frontend import ReadOptions, read_model
from dfcompile.operator_shapes import bounded_model
from dfcompile.options import ShowStage, of_stage, show_nothing
from dfcompile.options.bounding import ROWS, BoundsOptions
from dfcompile.options.readers import one_of
from dfcompile.report.traffic_bounds import BoundRow, BoundsReport


def bounds_of(options: BoundsOptions, *, draws: bool = False, show: ShowStage = show_nothing) -> BoundsReport:
    """Return the bounds of what is asked for.

    Args:
        options: of ``dfcompile bounds``.
        draws: whether plans of models are made for all powers of two, so that their curve can be drawn.
        show: gives a context that lasts as long as a stage.

    Raises:
        UserError: the model cannot be read, or an option has another form.
    """
    rules = Rules(
        one_of("--tiles", options.tiles, tuple(Tiles)),
        one_of("--halo", options.halo, tuple(Halo)),
        not options.first_read,
    )
    sizes, word_bytes, factor = options.buffers, options.word, options.within
    if options.model is not None:
        named = options.per.split(",") if options.per else ROWS
        rows = tuple(dict.fromkeys(one_of("--per", each, ROWS) for each in named))
        buffers = parse_buffers(DEFAULT_BUFFERS if sizes is None else sizes, 1)
        with show(f"reading {options.model}"):
            program = read_model(options.model, ReadOptions(**of_stage(options, "reading"))).program
        with show(f"bounding {program.name}"):
            return bound_operators(bounded_model(program), buffers, rules, within=factor, per=rows, draws=draws)
    name, text = next((name, text) for name, text in options.shapes_asked.items() if text)
    shape = PARSERS[name](text)
    with show("bounding the chain" if name in ("chain", "attention") else f"bounding {text}"):
        return bound_shape(shape, buffers=sizes, word_bytes=word_bytes, rules=rules, within=factor)


_NOTE: Final = (
    "on the chip: what is held between operators (docs/bounds.md); proved there: every run moves as much, whatever it "
    "holds, if it computes each product"
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


def bound_shape(
    shape: CountedShape | Chain | GroupedAttention,
    *,
    buffers: str | None = None,
    word_bytes: int = 4,
    rules: Rules | None = None,
    within: float | None = None,
) -> BoundsReport:
    """Return the bounds of a shape, and of the operators of a chain or of attention, each alone.

    Args:
        shape: from `dfcompile.api.bound_requests`.
        buffers: sizes; all powers of two between the least and the maximal effectual one of all ways, and that, if none
            are given.
        word_bytes: of each operand and of the result.
        rules: how traffic is counted.
        within: smallest buffer to be found that moves at most so many times the least.

    Raises:
        UserError: a size has another form or is too large.
    """
    rules = Rules() if rules is None else rules
    asked = _asked(shape, word_bytes, rules)
    curves, model = asked.curves, asked.model
    everywhere = powers_of_two(
        min(curve.least_size for curve in curves.values()) * word_bytes,
        max(curve.maximal_effectual_size for curve in curves.values()) * word_bytes,
    )
    sizes = everywhere if buffers is None else parse_buffers(buffers, word_bytes)
    alone = [(op, op.curve(rules)) for op in asked.operators]
    rows = tuple(bound_row(op, curve, size, rules, within) for op, curve in alone for size in sizes)
    fused = () if model is None else tuple(
        _fused_row(model, name, curve, size, within) for name, curve in curves.items() for size in sizes
    )  # fmt: skip
    slopes = tuple((name, bytes_curve(curve, word_bytes)) for name, curve in curves.items())
    notes = (*notes_of(rules, rows), *((_NOTE,) if fused else ()))
    return BoundsReport(asked.name, rows, (), within, notes, slopes, _operations(asked.operators), fused)


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


def _fused_row(model: BoundedModel, name: str, curve: Curve, size: int, within: float | None) -> BoundRow:
    operations = _operations(model.operators)
    moved, effectual, enough = curve_bytes(curve, size, model.operators[0].element_bytes, within)
    return BoundRow(
        operator=model.name,
        type=name,
        buffer_bytes=size,
        proved_bytes=proved_model_bytes(model, size),
        tiling_bytes=moved,
        compulsory_bytes=model.compulsory_bytes,
        effectual_buffer_bytes=effectual,
        within_buffer_bytes=enough,
        operations=operations,
        operations_per_byte=per_byte(operations, moved),
        is_floor=False,
        tiling="",
    )


def _operations(operators: tuple[BoundedOperator, ...]) -> int:
    return sum(2 * op.macs for op in operators)
