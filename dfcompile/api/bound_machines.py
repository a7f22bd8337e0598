"""What I/O bounds mean for a machine: its SRAM, and the division of its die between memory and compute."""

from fractions import Fraction

from dfcompile.bounds.die import best_share, die_of
from dfcompile.dfmodel_backend import System, load_system
from dfcompile.records import replace
from dfcompile.report.traffic_bounds import BoundsReport, DieRow, size_text


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
