"""Compares the cycles that are counted in circuits with those that are printed."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np

from dfcompile.errors import DisagreementError, UserError
from dfcompile.host.inputs import LARGEST_BYTES, readable_bytes
from dfcompile.rtl.folder import FORMAT, PRINTED, Array, Printed, PrintedFigures, from_words
from dfcompile.rtl.simulation import EVENT_DRIVEN, SIMULATORS, Fifos, Simulated, installed_simulators, simulated

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
        UserError: it is not installed, or none is, or it gives no waves or values.
    """
    wanted = "--waves" if waves else "values" if any(one.outputs for one in printed) else ""
    able = EVENT_DRIVEN if wanted else SIMULATORS
    if asked in SIMULATORS and asked not in able:
        raise UserError(f"rtl: {wanted}: found --simulator {asked} against {' or '.join(able)}")
    installed = [name for name in installed_simulators() if name in able]
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
        DisagreementError: a circuit takes other cycles than are printed, or comes to other outputs than the original.
    """
    printed = read_printed(folder)
    simulator = chosen_simulator(asked, printed, waves=waves is not None)
    runs = simulated(folder, simulator, fifos, max((one.inputs for one in printed), default=1), waves)
    differing = []
    for one in printed:
        if one.module not in runs:
            raise UserError(f"rtl: {simulator} counted no cycles of {one.module!r} (damaged files in {str(folder)!r})")
        cycles, values = _cycles(one, runs[one.module]), compared_values(one, runs[one.module])
        if not fifos.are_as_printed:
            against = f"against {_text(one.cycles)} printed{_ratio(one, cycles)}"
            yield f"{one.module}: {_text(cycles)} {_with(fifos)}, by {simulator}, {against}{values}"
        elif cycles == one.cycles:
            yield f"{one.module}: {_text(cycles)} by {simulator}, as printed{values}"
        else:
            differing.append(f"{one.module!r}: {simulator} counted {_text(cycles)} against {_text(one.cycles)} printed")
    if differing:
        raise DisagreementError(f"rtl: {len(differing)} of {len(printed)} circuits differ, {differing[0]}")


def _cycles(printed: Printed, runs: Sequence[Simulated]) -> int | None:
    """Return the cycles of a circuit: of runs that differ, those that are not as printed."""
    return next((run.cycles for run in runs if run.cycles != printed.cycles), printed.cycles)


def compared_values(printed: Printed, runs: Sequence[Simulated]) -> str:
    """Return how near the outputs of a circuit are to those of the original.

    Raises:
        DisagreementError: an output differs by more than is allowed.
        UserError: the simulator has not shown all outputs.
    """
    if not printed.outputs or printed.cycles is None:
        return ""
    elements, worst, allowed = 0, 0.0, 0.0
    for number, run in enumerate(runs[: printed.inputs]):
        if len(run.outputs) != len(printed.outputs):
            raise UserError(f"rtl: {printed.module!r}: found {len(run.outputs)} outputs against {len(printed.outputs)}")
        for output, words in zip(printed.outputs, run.outputs, strict=True):
            where = f"rtl: {printed.module!r}: output {output.name!r}" + f" of input {number}" * (len(runs) > 1)
            if re.search("[xz]", words):
                raise DisagreementError(f"{where}: found elements that nothing has written against all of them")
            found, expected = (from_words(text.split(), output.dtype) for text in (words, output.words[number]))
            if found.shape != expected.shape:
                raise DisagreementError(f"{where}: found {found.size} elements against {expected.size}")
            elements += found.size
            if words == output.words[number]:
                continue
            error, at = largest_error(found, expected)
            limit = output.limits[number]
            if not error <= limit:
                raise DisagreementError(
                    f"{where}: found {found[at]} at {at} against {expected[at]}, tolerance {limit:.3g}"
                )
            worst, allowed = max((worst, allowed), (error, limit))
    of_inputs = f" of {printed.inputs} inputs" if printed.inputs > 1 else ""
    near = f"off by {worst:.2g} at most, {allowed:.2g} allowed" if allowed else "bit for bit"
    return f"; {elements:,} outputs{of_inputs} {near}"


def largest_error(found: Array, expected: Array) -> tuple[float, int]:
    """Return the largest difference between two arrays, and where it is; NaN is no error where it is expected."""
    ours, exact = (value.astype(np.float64) for value in (found, expected))
    is_same = (ours == exact) | (np.isnan(ours) & np.isnan(exact))
    with np.errstate(invalid="ignore"):
        errors = np.where(is_same, 0.0, np.abs(ours - exact))
    at = int(np.argmax(np.where(np.isnan(errors), np.inf, errors)))
    return float(errors[at]), at


def _text(cycles: int | None) -> str:
    return "a deadlock" if cycles is None else f"{cycles:,} cycles"


def _with(fifos: Fifos) -> str:
    kind = "registered FIFOs" if fifos.registered else "FIFOs that pass through"
    return f"with {kind}" + (f", each {fifos.places} larger" if fifos.places else "")


def _ratio(printed: Printed, cycles: int | None) -> str:
    return f": {cycles / printed.cycles:.3f} times as many" if cycles and printed.cycles else ""
