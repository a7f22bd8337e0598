"""Compares the cycles that are counted in circuits with those that are printed."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from dfcompile.errors import DisagreementError, UserError
from dfcompile.host.inputs import LARGEST_BYTES, readable_bytes
from dfcompile.rtl.folder import FORMAT, PRINTED, Printed, PrintedFigures
from dfcompile.rtl.simulation import SIMULATORS, WITH_WAVES, Fifos, counted_cycles, installed_simulators

_INTERPRETED_WORK = 100_000_000  # tasks times cycles that Icarus simulates in a minute or two


def read_printed(folder: Path) -> tuple[Printed, ...]:
    """Return what is printed of the circuits of a folder.

    Raises:
        UserError: it is no folder of ``--emit rtl``.
    """
    file = folder / PRINTED
    try:
        figures = msgspec.json.decode(readable_bytes(file, f"rtl: {str(file)!r}", LARGEST_BYTES), type=PrintedFigures)
    except msgspec.DecodeError as error:
        raise UserError(f"rtl: {str(file)!r}: {error} (--emit rtl writes it)") from error
    if figures.format != FORMAT:
        raise UserError(f"rtl: {str(file)!r}: found format {figures.format!r} against {FORMAT!r}")
    return figures.circuits


def chosen_simulator(asked: str, printed: tuple[Printed, ...], *, waves: bool = False) -> str:
    """Return the simulator that is asked for, or the one that is soon done with such circuits.

    Raises:
        UserError: it is not installed, or none is, or it records no waves.
    """
    if waves and asked in SIMULATORS and asked not in WITH_WAVES:
        raise UserError(f"rtl: --waves: found --simulator {asked} against {' or '.join(WITH_WAVES)}")
    installed = [name for name in installed_simulators() if not waves or name in WITH_WAVES]
    if asked in installed:
        return asked
    if asked in SIMULATORS or not installed:
        found, name = ", ".join(installed) or "none", asked if asked in SIMULATORS else "a simulator"
        raise UserError(
            f"rtl: found {found} against {name} (apt-get install iverilog make; or pip install 'dfcompile[rtl]', g++)"
        )
    work = sum(one.tasks * (one.cycles or 0) for one in printed)
    fast = [name for name in installed if name != "icarus"] if work > _INTERPRETED_WORK else []
    return (*fast, *installed)[0]


def compared(folder: Path, asked: str, fifos: Fifos, waves: Path | None = None) -> Iterator[str]:
    """Simulate the circuits of a folder; yield a line for each.

    Args:
        folder: of ``--emit rtl``.
        asked: simulator, or ``auto``.
        fifos: that the circuits are made with; with others than printed, nothing has to agree.
        waves: file for all signals over time.

    Raises:
        UserError: it is no such folder, or no simulator is installed, or it fails.
        DisagreementError: a circuit takes other cycles than are printed.
    """
    printed = read_printed(folder)
    simulator = chosen_simulator(asked, printed, waves=waves is not None)
    counted = counted_cycles(folder, simulator, fifos, waves)
    differing = []
    for one in printed:
        if one.module not in counted:
            raise UserError(f"rtl: {simulator} counted no cycles of {one.module!r} (damaged files in {str(folder)!r})")
        cycles = counted[one.module]
        if not fifos.are_as_printed:
            against = f"against {_text(one.cycles)} printed{_ratio(one, cycles)}"
            yield f"{one.module}: {_text(cycles)} {_with(fifos)}, by {simulator}, {against}"
        elif cycles == one.cycles:
            yield f"{one.module}: {_text(cycles)} by {simulator}, as printed"
        else:
            differing.append(f"{one.module!r}: {simulator} counted {_text(cycles)} against {_text(one.cycles)} printed")
    if differing:
        raise DisagreementError(f"rtl: {len(differing)} of {len(printed)} circuits differ, {differing[0]}")


def _text(cycles: int | None) -> str:
    return "a deadlock" if cycles is None else f"{cycles:,} cycles"


def _with(fifos: Fifos) -> str:
    kind = "registered FIFOs" if fifos.registered else "FIFOs that pass through"
    return f"with {kind}" + (f", each {fifos.places} larger" if fifos.places else "")


def _ratio(printed: Printed, cycles: int | None) -> str:
    return f": {cycles / printed.cycles:.3f} times as many" if cycles and printed.cycles else ""
