"""I/O bounds of a model, and what bounds mean for a machine: what ``dfcompile bounds`` does."""

from fractions import Fraction
from typing import Final

import numpy as np

from dfcompile.bounds.curve import Curve, front, total
from dfcompile.bounds.die import best_share, die_of
from dfcompile.bounds.einsum.convolution import Convolution
from dfcompile.bounds.einsum.plain import PlainEinsum, innermost_loops
from dfcompile.bounds.einsum.pooling import Pooling
from dfcompile.bounds.fusion.epilogues import least_plan
from dfcompile.bounds.fusion.proved_model import proved_model_bytes
from dfcompile.bounds.fusion.residency import ResidencyPlan
from dfcompile.bounds.operators import BoundedModel, BoundedOperator
from dfcompile.bounds.tilings import Rules
from dfcompile.dfmodel_backend import System, load_system
from dfcompile.errors import InfeasibleError
from dfcompile.host.stages import counted, work_of
from dfcompile.records import replace
from dfcompile.report.plain_values import rounded
from dfcompile.report.traffic_bounds import BoundRow, BoundsReport, DieRow, WholeRow, size_text

DRAWN_STATES: Final = 200  # of a plan in a picture: below a second
DEFAULT_BUFFERS: Final = "64KiB,256KiB,1MiB,16MiB"


def bound_operators(
    bounded: BoundedModel,
    sizes: tuple[int, ...],
    rules: Rules,
    *,
    within: float | None = None,
    per: tuple[str, ...] = ("operator", "model"),
    draws: bool = False,
) -> BoundsReport:
    """Return the bounds of a model and of its operators.

    Args:
        bounded: the model.
        sizes: of buffers, in bytes.
        rules: how traffic is counted.
        within: smallest buffer to be found that moves at most so many times the least.
        per: ``operator``, ``model``: of what rows are made.
        draws: whether plans are made for all powers of two, so that their curve can be drawn.
    """
    with work_of(2 + draws) as steps:
        curves = [(op, op.curve(rules)) for op in counted(bounded.operators)]
        rows = tuple(bound_row(op, curve, size, rules, within) for op, curve in curves for size in sizes)
        steps.add()
        whole = tuple(whole_row(bounded, size, rules) for size in counted(sizes)) if "model" in per else ()
        steps.add()
        slopes = _slopes(bounded, [bytes_curve(curve, op.element_bytes) for op, curve in curves], rules, draws=draws)
    notes, work = notes_of(rules, rows), sum(2 * op.macs for op in bounded.operators)
    return BoundsReport(bounded.name, rows if "operator" in per else (), whole, within, notes, slopes, work)


def _slopes(model: BoundedModel, alone: list[Curve], rules: Rules, *, draws: bool) -> tuple[tuple[str, Curve], ...]:
    """Return the curve of each operator alone and, if it is to be drawn, of plans at powers of two."""
    if not alone:
        return ()
    unfused = total(alone)
    if not draws:
        return ((f"{model.name}, each operator alone", unfused),)
    found = []
    whole = sum(tensor.words * tensor.element_bytes for tensor in model.tensors)
    for size in counted(powers_of_two(unfused.least_size, max(unfused.maximal_effectual_size, whole))):
        try:
            found.append((size, least_plan(model, size, rules, DRAWN_STATES).traffic_bytes))
        except InfeasibleError:  # the next size may be enough
            continue
    held = front(*np.array(found, dtype=np.int64).T)
    return (f"{model.name}, each operator alone", unfused), (f"{model.name}, with tensors held", held)


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


def bound_row(op: BoundedOperator, curve: Curve, size: int, rules: Rules, within: float | None) -> BoundRow:
    """Return what an operator moves at least with a buffer of ``size`` bytes."""
    words = size // op.element_bytes
    moved, effectual, enough = curve_bytes(curve, size, op.element_bytes, within)
    return BoundRow(
        operator=op.name,
        type=op.op_type,
        buffer_bytes=size,
        proved_bytes=op.proved(words) * op.element_bytes,
        tiling_bytes=moved,
        compulsory_bytes=op.compulsory_words * op.element_bytes,
        effectual_buffer_bytes=effectual,
        within_buffer_bytes=enough,
        operations=2 * op.macs,
        operations_per_byte=per_byte(2 * op.macs, moved),
        is_floor=op.is_floor,
        tiling=_tiling(op, curve, words, rules),
    )


def per_byte(operations: int, moved: int | None) -> float | int | None:
    """Return the operations per byte that moves."""
    return rounded(Fraction(operations, moved)) if moved else None


def curve_bytes(curve: Curve, size: int, unit: int, within: float | None) -> tuple[int | None, int, int | None]:
    """Return what a curve of units says in bytes.

    Returns:
        What moves with a buffer of ``size`` bytes; the buffer above which nothing moves less; the smallest that moves
        at most ``within`` times the least. ``None``: no tiling fits, or nobody asked.
    """
    moved = curve.at(size // unit)
    # The float is exact for the factor that was typed; the product is rounded down to whole words.
    enough = None if within is None else curve.size_within(int(Fraction(str(within)) * curve.least_traffic))
    return (
        None if moved is None else moved * unit,
        curve.maximal_effectual_size * unit,
        None if enough is None else enough * unit,
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
