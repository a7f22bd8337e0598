"""How little a model or a shape can move, and what that means for a machine: what ``dfcompile bounds`` does."""

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from dfcompile.api.bound_traffic import bounds_of
from dfcompile.api.runs import Shown
from dfcompile.dfmodel_backend import System, load_system
from dfcompile.errors import UserError
from dfcompile.io_bounds.curve import Slope
from dfcompile.io_bounds.die import best_share, die_of
from dfcompile.options import ShowStage, read_options, show_nothing, takes
from dfcompile.options.commands import BoundsOptions
from dfcompile.options.readers import File
from dfcompile.records import replace
from dfcompile.report.plain_values import Json
from dfcompile.report.traffic_bounds import BoundsReport, DieRow, bounds_record, bounds_rows, bounds_table, size_text
from dfcompile.visualization.ski_slopes import EffectualBuffer


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BoundsRun(Shown):
    """How little a model or a shape can move.

    Attributes:
        report: all figures.
        files: that were read.
    """

    report: BoundsReport
    files: tuple[Path, ...] = ()

    def tables(self, width: int, *, verbose: bool) -> str:
        """Return the bounds as tables, the notes below."""
        del verbose
        return bounds_table(self.report, width)

    def to_record(self) -> dict[str, Json]:
        """Return the report as the plain values of its JSON contract."""
        return bounds_record(self.report)

    def to_rows(self) -> list[dict[str, Json]]:
        """Return a row per operator, or way to hold tensors, and buffer."""
        return bounds_rows((*self.report.fusions, *self.report.operators))

    @property
    def answer(self) -> str:
        """The report in one line."""
        return f"{self.report.subject}: {len(self.to_rows())} bounds"


@takes(BoundsOptions)
def bounds(model: File | None = None, *, show: ShowStage = show_nothing, **options: Any) -> BoundsRun:
    """Say how little a model, a product, a convolution, a chain or attention can move, for every buffer size.

    Args:
        model: a file; or a shape is given as ``gemm="4096,4096,4096"``.
        show: gives a context that lasts as long as a stage, for showing progress.
        options: by name.

    Raises:
        UserError: the model cannot be read, or an option has another form.
    """
    return bounded(read_options(BoundsOptions, {"model": model, **options}), draws=True, show=show)


def bounded(options: BoundsOptions, *, draws: bool, cloud: bool = False, show: ShowStage = show_nothing) -> BoundsRun:
    """Say it with options that were read already; see `bounds` and, for what is kept to be drawn, `bounds_of`."""
    found = bounds_of(options, draws=draws, cloud=cloud, show=show)
    if options.system is not None:
        found = with_machine(found, options.system)
    return BoundsRun(found, tuple(Path(name) for name in (options.model, options.system) if name is not None))


def with_machine(found: BoundsReport, system: str) -> BoundsReport:
    """Return bounds with what they mean for a machine; nothing of one whose SRAM is not limited.

    Raises:
        UserError: there is no such machine, or its file is not right.
    """
    chip = load_system(system).one_chip
    sram = int(chip.accelerator.sram_bytes) or None
    if sram is None:
        return found
    notes = list(found.notes)
    for slope in found.slopes:
        moved = slope.curve.at(sram)
        if moved is not None:
            share = Fraction(moved, slope.curve.least_traffic)
            notes.append(
                f"{slope.name} with {size_text(sram)} of SRAM: {moved:,} bytes, {float(share):.3g} x the least"
            )
    best = _die_share(found.slopes[-1], sram, chip) if found.slopes else None
    if best is not None:
        notes.append(
            f"of a die of {float(best.area_pes):,.0f} areas of a multiply-adder (0.5 x kB of SRAM + multiply-adders "
            f"[asa23]), {best.sram_share:.1%} are SRAM; least time with {best.memory_share:.1%}: "
            f"{size_text(best.buffer_bytes)} and {best.multiply_adders:,.0f} multiply-adders, {best.time_ns:,.4g} ns "
            f"for {best.curve}"
        )
    return replace(found, notes=tuple(notes), die=best, sram_bytes=sram)


def _die_share(slope: Slope, sram: int, chip: System) -> DieRow | None:
    """Return the best division of the chip's die for a curve: that which comes last holds most on the chip."""
    if not slope.operations:
        return None
    core = chip.accelerator
    adders = core.cores * core.lanes_per_core * core.stages_per_core
    die = die_of(sram, adders, Fraction(core.peak_gflops), Fraction(chip.dram_gb_per_s))
    best = best_share(slope.curve, slope.operations, die)
    if best is None:
        return None
    return DieRow(
        curve=slope.name,
        area_pes=float(die.area_pes),
        sram_share=float(1 - adders / die.area_pes),
        memory_share=float(best.memory_share),
        buffer_bytes=best.buffer_bytes,
        multiply_adders=float(best.pes),
        time_ns=float(best.time_ns),
    )


def effectual_buffers(found: BoundsReport) -> tuple[EffectualBuffer, ...]:
    """Return how large a buffer still saves traffic: of every shape, or operator of a model, that has tilings.

    Raises:
        UserError: the report has none.
    """
    rows = dict.fromkeys(
        (row.operator, row.type, row.effectual_buffer_bytes, row.compulsory_bytes)
        for row in (*found.operators, *found.fusions)
        if not row.is_floor
    )
    if not rows:
        raise UserError("--effectual: found no operator with tilings (a model needs --per operator)")
    fused = {row.type for row in found.fusions}
    return tuple(
        EffectualBuffer(f"{name}, {kind}" if kind in fused else name, effectual, operands)
        for name, kind, effectual, operands in rows
    )
