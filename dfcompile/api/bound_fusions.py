"""I/O bounds of chains of products and of attention: what stays on the chip between operators, way by way."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from dfcompile.api.bound_requests import Chain, GroupedAttention, parse_buffers
from dfcompile.api.bound_traffic import bound_row, bytes_curve, notes_of, powers_of_two
from dfcompile.bounds.curve import Curve
from dfcompile.bounds.fusion.chain import Fusion, chain_curve
from dfcompile.bounds.fusion.proved_model import proved_model_bytes
from dfcompile.bounds.fusion.small_models import attention_curves, attention_model, chain_model
from dfcompile.bounds.operators import BoundedModel, BoundedOperator
from dfcompile.bounds.tilings import Rules
from dfcompile.report.traffic_bounds import BoundRow, BoundsReport

_NOTE: Final = (
    "on the chip: what is held between operators (docs/bounds.md); proved there: every run moves as much, whatever it "
    "holds, if it computes each product"
)


def bound_fusion(
    shape: Chain | GroupedAttention,
    *,
    buffers: str | None = None,
    word_bytes: int = 4,
    rules: Rules | None = None,
    within: float | None = None,
) -> BoundsReport:
    """Return the bounds of a chain of products or of attention, and of its operators, each alone.

    Args:
        shape: from `dfcompile.api.bound_requests`.
        buffers: sizes; all powers of two between the least and the maximal effectual one of all ways if none are given.
        word_bytes: of each operand and of the result.
        rules: how traffic is counted.
        within: smallest buffer to be found that moves at most so many times the least.

    Raises:
        UserError: a size has another form or is too large.
    """
    rules = Rules() if rules is None else rules
    model: BoundedModel
    curves: Mapping[str, Curve]
    match shape:
        case Chain():
            model = chain_model(shape.rows, shape.widths, word_bytes)
            curves = {str(way): chain_curve(shape.rows, shape.widths, rules, way) for way in Fusion}
        case GroupedAttention():
            model = attention_model(shape.groups, shape.of_group, word_bytes)
            found = attention_curves(shape.groups, shape.of_group, rules)
            curves = {str(way): curve for way, curve in found.items()}
    everywhere = powers_of_two(
        min(curve.least_size for curve in curves.values()) * word_bytes,
        max(curve.maximal_effectual_size for curve in curves.values()) * word_bytes,
    )
    sizes = everywhere if buffers is None else parse_buffers(buffers, word_bytes)
    alone = [(op, op.curve(rules)) for op in model.operators]
    rows = tuple(bound_row(op, curve, size, rules, within) for op, curve in alone for size in sizes)
    fused = tuple(_fused_row(model, name, curve, size, within) for name, curve in curves.items() for size in sizes)
    slopes = tuple((name, bytes_curve(curve, word_bytes)) for name, curve in curves.items())
    notes = (*notes_of(rules, rows), _NOTE)
    return BoundsReport(str(shape), rows, (), within, notes, slopes, _operations(model.operators), fused)


def _fused_row(model: BoundedModel, name: str, curve: Curve, size: int, within: float | None) -> BoundRow:
    unit = model.operators[0].element_bytes
    words = curve.at(size // unit)
    enough = None if within is None else curve.size_within(int(Fraction(str(within)) * curve.least_traffic))
    return BoundRow(
        operator=model.name,
        op_type=name,
        buffer_bytes=size,
        proved_bytes=proved_model_bytes(model, size),
        tiling_bytes=None if words is None else words * unit,
        compulsory_bytes=model.compulsory_bytes,
        effectual_buffer_bytes=curve.maximal_effectual_size * unit,
        within_buffer_bytes=None if enough is None else enough * unit,
        operations=_operations(model.operators),
        is_floor=False,
        tiling="",
    )


def _operations(operators: tuple[BoundedOperator, ...]) -> int:
    return sum(2 * op.macs for op in operators)
