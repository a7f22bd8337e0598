"""I/O bounds of a model or of one shape: what ``dfcompile bounds`` does."""

from fractions import Fraction
from pathlib import Path
from typing import Final

import numpy as np

from dfcompile.api.bound_requests import CountedShape, parse_buffers
from dfcompile.bounds.curve import Curve, front, total
from dfcompile.bounds.die import best_share, die_of
from dfcompile.bounds.einsum.convolution import Convolution, Pooling
from dfcompile.bounds.einsum.plain import PlainEinsum, innermost_loops
from dfcompile.bounds.fusion.epilogues import least_plan
from dfcompile.bounds.fusion.proved_model import proved_model_bytes
from dfcompile.bounds.fusion.residency import ResidencyPlan
from dfcompile.bounds.operators import BoundedModel, BoundedOperator, Operand
from dfcompile.bounds.tilings import Halo, Rules
from dfcompile.dfmodel_backend import System, load_system
from dfcompile.errors import InfeasibleError
from dfcompile.frontend import ReadOptions, read_model
from dfcompile.host.stages import counted, work_of
from dfcompile.operator_shapes import bounded_model
from dfcompile.options import ShowStage, show_nothing
from dfcompile.records import replace
from dfcompile.report.traffic_bounds import BoundRow, BoundsReport, DieRow, WholeRow, size_text

DRAWN_STATES: Final = 200  # of a plan in a picture: below a second
DEFAULT_BUFFERS: Final = "64KiB,256KiB,1MiB,16MiB"


def bound_shape(
    shape: CountedShape,
    *,
    buffers: str | None = None,
    word_bytes: int = 4,
    rules: Rules | None = None,
    within: float | None = None,
) -> BoundsReport:
    """Return the bounds of a product or a convolution.

    Args:
        shape: from `dfcompile.api.bound_requests`.
        buffers: sizes; all powers of two between the least and the maximal effectual one, and that, if none are given.
        word_bytes: of each operand and of the result.
        rules: how traffic is counted.
        within: smallest buffer to be found that moves at most so many times the least.

    Raises:
        UserError: a size has another form or is too large.
    """
    rules = Rules() if rules is None else rules
    count, einsum = _normal(shape, rules)
    operator = _operator(count, einsum, word_bytes)
    name = operator.name
    curve = operator.curve(rules)
    sizes = (
        powers_of_two(curve.least_size * word_bytes, curve.maximal_effectual_size * word_bytes)
        if buffers is None
        else parse_buffers(buffers, word_bytes)
    )
    rows = tuple(bound_row(operator, curve, size, rules, within) for size in sizes)
    return BoundsReport(
        name, rows, (), within, notes_of(rules, rows), ((name, bytes_curve(curve, word_bytes)),), 2 * operator.macs
    )


def _normal(shape: CountedShape, rules: Rules) -> CountedShape:
    """Return a convolution whose windows are single words as products; the tool of [huang24] has none of that."""
    _, einsum = shape
    if isinstance(einsum, Convolution) and rules.halo is Halo.TRUE:
        return einsum.product or shape
    return shape


def bound_model(
    model: Path,
    reading: ReadOptions,
    *,
    buffers: str | None = None,
    rules: Rules | None = None,
    within: float | None = None,
    per: tuple[str, ...] = ("operator", "model"),
    draws: bool = False,
    show: ShowStage = show_nothing,
) -> BoundsReport:
    """Return the bounds of a model and of its operators.

    Args:
        model: file.
        reading: what reading it needs to be told.
        buffers: sizes; a few common ones if none are given.
        rules: how traffic is counted.
        within: smallest buffer to be found that moves at most so many times the least.
        per: ``operator``, ``model``: of what rows are made.
        draws: whether plans are made for all powers of two, so that their curve can be drawn.
        show: gives a context that lasts as long as a stage.

    Raises:
        UserError: the model cannot be read, or a size has another form.
    """
    rules = Rules() if rules is None else rules
    sizes = parse_buffers(DEFAULT_BUFFERS if buffers is None else buffers, 1)
    with show(f"reading {model}"):
        read = read_model(model, reading)
    with show(f"bounding {read.program.name}"):
        return bound_operators(bounded_model(read.program), sizes, rules, within=within, per=per, draws=draws)


def bound_operators(
    bounded: BoundedModel,
    sizes: tuple[int, ...],
    rules: Rules,
    *,
    within: float | None = None,
    per: tuple[str, ...] = ("operator", "model"),
    draws: bool = False,
) -> BoundsReport:
    """Return the bounds of a model that is read, as of `bound_model`, with buffers of ``sizes`` bytes."""
    with work_of(2 + draws) as steps:
        curves = [(op, op.curve(rules)) for op in counted(bounded.operators)]
        rows = tuple(bound_row(op, curve, size, rules, within) for op, curve in curves for size in sizes)
        steps.add()
        whole = tuple(whole_row(bounded, size, rules) for size in counted(sizes)) if "model" in per else ()
        steps.add()
        slopes = _slopes(bounded, [bytes_curve(curve, op.element_bytes) for op, curve in curves], rules, draws=draws)
    return BoundsReport(
        bounded.name, rows if "operator" in per else (), whole, within, notes_of(rules, rows), slopes, _work(bounded)
    )


def _slopes(model: BoundedModel, alone: list[Curve], rules: Rules, *, draws: bool) -> tuple[tuple[str, Curve], ...]:
    """Return the curve of each operator alone and, if it is to be drawn, of plans at powers of two."""
    if not alone:
        return ()
    unfused = total(alone)
    if not draws:
        return ((f"{model.name}, each operator alone", unfused),)
    found = []
    for size in counted(powers_of_two(unfused.least_size, max(unfused.maximal_effectual_size, _all_bytes(model)))):
        try:
            found.append((size, least_plan(model, size, rules, DRAWN_STATES).traffic_bytes))
        except InfeasibleError:  # the next size may be enough
            continue
    held = front(*np.array(found, dtype=np.int64).T)
    return (f"{model.name}, each operator alone", unfused), (f"{model.name}, with tensors held", held)


def _all_bytes(model: BoundedModel) -> int:
    return sum(tensor.words * tensor.element_bytes for tensor in model.tensors)


def whole_row(model: BoundedModel, size: int, rules: Rules) -> WholeRow:
    """Return what a model moves at least with a buffer."""
    unfused: int | None = 0
    for op in model.operators:
        words = op.curve(rules).at(size // op.element_bytes)
        unfused = None if unfused is None or words is None else unfused + words * op.element_bytes
    plan: ResidencyPlan | None
    try:
        plan = least_plan(model, size, rules)
    except InfeasibleError:
        plan = None
    proved = proved_model_bytes(model, size)
    return WholeRow(size, model.compulsory_bytes, proved, None if plan is None else plan.traffic_bytes, unfused, plan)


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


def bound_row(op: BoundedOperator, curve: Curve, size: int, rules: Rules, within: float | None) -> BoundRow:
    """Return what an operator moves at least with a buffer of ``size`` bytes."""
    words = size // op.element_bytes
    moved = curve.at(words)
    # The float is exact for the factor that was typed; the product is rounded down to whole words.
    enough = None if within is None else curve.size_within(int(Fraction(str(within)) * curve.least_traffic))
    return BoundRow(
        operator=op.name,
        op_type=op.op_type,
        buffer_bytes=size,
        proved_bytes=op.proved(words) * op.element_bytes,
        tiling_bytes=None if moved is None else moved * op.element_bytes,
        compulsory_bytes=op.compulsory_words * op.element_bytes,
        effectual_buffer_bytes=curve.maximal_effectual_size * op.element_bytes,
        within_buffer_bytes=None if enough is None else enough * op.element_bytes,
        operations=2 * op.macs,
        is_floor=op.is_floor,
        tiling=_tiling(op, curve, words, rules),
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


def bytes_curve(curve: Curve, word_bytes: int) -> Curve:
    """Return a curve of words in bytes."""
    return front(curve.sizes * word_bytes, curve.traffic * word_bytes)


def notes_of(rules: Rules, rows: tuple[BoundRow, ...]) -> tuple[str, ...]:
    """Return what is said of rows of operators."""
    first = "" if rules.elides_first_read else ", first visits of results read"
    said = [f"tiles: {rules.tiles}, halo: {rules.halo}{first}; proved: no schedule of the operator alone moves less"]
    if any(row.is_floor for row in rows):
        said.append("each word once: no tiling is known, the figures are floors")
    return tuple(said)


def _work(model: BoundedModel) -> int:
    return sum(2 * op.macs for op in model.operators)


def with_machine(found: BoundsReport, system: str) -> tuple[BoundsReport, int | None]:
    """Return bounds with what they mean for a machine, and the SRAM of its chip; ``None`` if that is not limited.

    Raises:
        UserError: there is no such machine, or its file is not right.
    """
    chip = load_system(system).one_chip
    sram = int(chip.accelerator.sram_bytes) or None
    if sram is None:
        return found, None
    notes = list(found.notes)
    for name, curve in found.curves:
        moved = curve.at(sram)
        if moved is not None:
            share = Fraction(moved, curve.least_traffic)
            notes.append(f"{name} with {size_text(sram)} of SRAM: {moved:,} bytes, {float(share):.3g} x the least")
    best = _die_share(found, sram, chip)
    if best is not None:
        notes.append(
            f"of a die of {float(best.area_pes):,.0f} areas of a multiply-adder (0.5 x kB of SRAM + multiply-adders "
            f"[asa23]), {best.sram_share:.1%} are SRAM; least time with {best.memory_share:.1%}: "
            f"{size_text(best.buffer_bytes)} and {best.multiply_adders:,.0f} multiply-adders, {best.time_ns:,.4g} ns "
            f"for {best.curve}"
        )
    return replace(found, notes=tuple(notes), die=best, sram_bytes=sram), sram


def _die_share(found: BoundsReport, sram: int, chip: System) -> DieRow | None:
    """Return the best division of the chip's die for the curve that comes last: what holds most on the chip."""
    if not found.curves or not found.operations:
        return None
    core = chip.accelerator
    adders = core.cores * core.lanes_per_core * core.stages_per_core
    die = die_of(sram, adders, Fraction(core.peak_gflops), Fraction(chip.dram_gb_per_s))
    name, curve = found.curves[-1]
    best = best_share(curve, found.operations, die)
    if best is None:
        return None
    return DieRow(
        curve=name,
        area_pes=float(die.area_pes),
        sram_share=float(1 - adders / die.area_pes),
        memory_share=float(best.memory_share),
        buffer_bytes=best.buffer_bytes,
        multiply_adders=float(best.pes),
        time_ns=float(best.time_ns),
    )
