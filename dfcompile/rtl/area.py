"""What circuits take on an FPGA: Yosys makes them of its cells, nextpnr places them and says how fast the clock may be.

The FPGA is the largest of Lattice's ECP5. Memory is outside: each port of a circuit ends in a register, so that the
clock counts the way from memory to a result and back, and not memory itself.
"""

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Sequence
from operator import add
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import astuple

from dfcompile.errors import UserError
from dfcompile.host.inputs import LARGEST_BYTES, readable_bytes
from dfcompile.host.printable import printable
from dfcompile.host.private_folder import ending_with_us, private_folder
from dfcompile.rtl.folder import BUILT, Printed
from dfcompile.rtl.simulation import beside_python

DEVICE = "LFE5U-85F"
SPEED_GRADE = 6
SEED = 1  # of nextpnr: the same circuit comes to the same clock
DEVICE_LUTS = 83_640
_PLACEABLE_LUTS = DEVICE_LUTS * 9 // 10  # more take hours, or find no place
_TARGET_MHZ = 100  # that nextpnr works towards
_LUTS: Final = {"LUT4": 1, "CCU2C": 2, "TRELLIS_DPR16X4": 6}  # the last two: a carry, and 16 words of 4 bits
_LEAVES: Final = (*_LUTS, "TRELLIS_FF", "DP16KD", "MULT18X18D")
_INSTALL = "pip install 'dfcompile[rtl]'"
_REGISTER: Final = {
    "hide_name": 1,
    "type": "TRELLIS_FF",
    "parameters": {"CEMUX": "1 ", "CLKMUX": "INV", "GSR": "DISABLED", "LSRMUX": "LSR", "REGSET": "RESET"},
    "attributes": {},
    "port_directions": {"CLK": "input", "DI": "input", "Q": "output"},
}
_SCRIPT = """\
logger -werror "logic loop"
read_verilog -sv -defer circuit.sv
synth_ecp5 -top {top} -run begin:coarse
proc -latches error
design -save made
flatten
opt_expr
check
design -load made
synth_ecp5 -noflatten -top {top} -run coarse:
write_json netlist.json
write_verilog -noattr netlist.v
"""


class Cells(Struct, frozen=True):
    """What a part of a circuit takes of the FPGA.

    Attributes:
        luts: look-up tables of four inputs; a carry is two, 16 words of 4 bits of a memory are six.
        flip_flops: one bit each.
        block_rams: memories of 18 kbit.
        multipliers: of 18 by 18 bits.
    """

    luts: int = 0
    flip_flops: int = 0
    block_rams: int = 0
    multipliers: int = 0

    def __add__(self, other: "Cells") -> "Cells":
        """Return what both take."""
        return Cells(*map(add, astuple(self), astuple(other)))


class Part(Struct, frozen=True):
    """A part of a circuit: its name, how many tasks it has, and what it takes."""

    name: str
    tasks: int
    cells: Cells


class CircuitArea(Struct, frozen=True):
    """What a circuit takes.

    Attributes:
        module: that it is.
        parts: each family of tasks, FIFOs and buffers, and what is between them.
        clock_mhz: the highest; ``None`` if the circuit does not fit.
        cycles: the makespan; ``None`` if the schedule ends in a deadlock.
    """

    module: str
    parts: tuple[Part, ...]
    clock_mhz: float | None
    cycles: int | None

    @property
    def total(self) -> Cells:
        """What all parts take."""
        return sum((part.cells for part in self.parts), Cells())

    @property
    def time_us(self) -> float | None:
        """The makespan at that clock, in microseconds."""
        return None if self.clock_mhz is None or self.cycles is None else self.cycles / self.clock_mhz


class _Cell(Struct):
    type: str


class _Module(Struct):
    cells: dict[str, _Cell] = {}


class _Netlist(Struct):
    modules: dict[str, _Module]


class Tools(Struct, frozen=True):
    """The commands of Yosys and nextpnr, and what they say of their versions."""

    yosys: str
    nextpnr: str
    versions: str


def installed_tools() -> Tools:
    """Return Yosys and nextpnr.

    Raises:
        UserError: one is not installed.
    """
    commands = []
    for tool in ("yosys", "nextpnr-ecp5"):
        command = beside_python(f"yowasp-{tool}") or beside_python(tool)
        if command is None:
            raise UserError(f"rtl: --area: found no {tool} against one that is installed ({_INSTALL})")
        commands.append(command)
    yosys, nextpnr = commands
    said = _run([yosys, "-V"], Path.cwd())[1] + _run([nextpnr, "--version"], Path.cwd())[1]
    versions = re.findall(r"^Yosys [\w.+]+|nextpnr-[\w.+-]+(?=\))", said, re.MULTILINE)
    return Tools(yosys, nextpnr, ", ".join(versions))


def built_area(folder: Path, printed: Printed, tools: Tools, netlist: Path | None = None) -> CircuitArea:
    """Build a circuit of a folder; return what it takes.

    Args:
        folder: of ``--emit rtl-values``.
        printed: the circuit.
        tools: that build it.
        netlist: file for the circuit of the FPGA's cells, as Verilog.

    Raises:
        UserError: it cannot be built: it computes no values, or a task has operations that are no circuits, or its
            handshakes lead in a circle; or a tool fails.
    """
    where = f"rtl: --area: {printed.module!r}"
    if printed.unbuilt or not printed.outputs:
        raise UserError(f"{where}: {printed.unbuilt or 'found no values against a circuit of --emit rtl-values'}")
    source = folder / f"{printed.module}{BUILT}"
    text = readable_bytes(source, f"rtl: {str(source)!r}", LARGEST_BYTES)
    top = f"{printed.module}_circuit"
    # Tools of YoWASP see the folder that they run in, and no other.
    with private_folder() as build, ending_with_us():
        (build / "circuit.sv").write_bytes(text)
        (build / "build.ys").write_text(_SCRIPT.format(top=top))
        status, said = _run([tools.yosys, "-s", "build.ys"], build)
        if status:
            if "logic loop" in said:
                raise UserError(
                    f"{where}: found handshakes in a circle against registers in each circle of FIFOs (with "
                    "registered FIFOs, such as those of --system elastic)"
                )
            raise UserError(f"{where}: yosys: {_reason(said)}")
        made = (build / "netlist.json").read_bytes()
        parts = circuit_parts(made, top, text.decode())
        if netlist is not None:
            shutil.copyfile(build / "netlist.v", netlist)
        area = CircuitArea(printed.module, parts, None, printed.cycles)
        if area.total.luts > _PLACEABLE_LUTS:
            return area
        (build / "placed.json").write_bytes(_with_registers(made, top))
        options = f"--85k --speed {SPEED_GRADE} --seed {SEED} --freq {_TARGET_MHZ} --out-of-context --timing-allow-fail"
        status, said = _run(
            [tools.nextpnr, *options.split(), "--json", "placed.json", "--top", top, "--report", "report.json"], build
        )
        if status:
            if re.search(r"ERROR: .*\bplac", said):
                return area
            raise UserError(f"{where}: nextpnr: {_reason(said)}")
        return CircuitArea(printed.module, parts, clock_mhz((build / "report.json").read_bytes()), printed.cycles)


def circuit_parts(netlist: bytes, top: str, text: str) -> tuple[Part, ...]:
    """Return what each part of a circuit takes.

    Args:
        netlist: as Yosys writes it in JSON, with its hierarchy.
        top: module of the circuit.
        text: of the circuit, in the order of whose families parts come.
    """
    modules = msgspec.json.decode(netlist, type=_Netlist).modules
    tasks, found = Counter[str](), dict[str, Cells]()
    for name, cell in modules[top].cells.items():
        family = re.match(r"(t_\w+?)(_apart\[\d+\]\.values)?$", name)
        part = "FIFOs and buffers" if re.match(r"(fifos|words)_\d+$", name) else "rest"
        if family and _has_cells(modules, cell.type):
            part = family[1]
            tasks[part] += bool(family[2])
        found[part] = found.get(part, Cells()) + _cells(modules, cell.type)
    families = sorted(tasks, key=lambda family: text.index(f" {family}_may_run"))
    named = [Part(family.removeprefix("t_"), tasks[family], found[family]) for family in families]
    return (*named, *(Part(name, 0, found[name]) for name in ("FIFOs and buffers", "rest") if name in found))


def _cells(modules: dict[str, _Module], kind: str) -> Cells:
    if _has_cells(modules, kind):
        return sum((_cells(modules, cell.type) for cell in modules[kind].cells.values()), Cells())
    return Cells(_LUTS.get(kind, 0), int(kind == "TRELLIS_FF"), int(kind == "DP16KD"), int(kind == "MULT18X18D"))


def _has_cells(modules: dict[str, _Module], kind: str) -> bool:
    """Return whether a type of cells is a module of the circuit, and no cell of the FPGA."""
    return kind not in _LEAVES and kind in modules and bool(modules[kind].cells)


def clock_mhz(report: bytes) -> float:
    """Return the highest clock that a report of nextpnr says."""
    clocks = msgspec.json.decode(report)["fmax"].values()
    return float(min(clock["achieved"] for clock in clocks))


def _with_registers(netlist: bytes, top: str) -> bytes:
    """Return a netlist with a register at each port of the circuit but the clock."""
    design = msgspec.json.decode(netlist)
    module = design["modules"][top]
    clock = module["ports"]["clk"]["bits"]
    last = max(bit for net in module["netnames"].values() for bit in net["bits"] if isinstance(bit, int))
    for name, port in module["ports"].items():
        if name == "clk":
            continue
        for place, inner in enumerate(port["bits"]):
            if not isinstance(inner, int):
                continue
            last += 1
            port["bits"][place] = last
            data, out = (last, inner) if port["direction"] == "input" else (inner, last)
            pins = {"CLK": clock, "DI": [data], "Q": [out]}
            module["cells"][f"port${name}${place}"] = {**_REGISTER, "connections": pins}
        module["netnames"].pop(name, None)
    return msgspec.json.encode(design)


def _run(command: Sequence[str], folder: Path) -> tuple[int, str]:
    """Run a tool in a folder; return its exit status and what it says."""
    done = subprocess.run(  # noqa: S603  # the user asks for it
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False
    )
    return done.returncode, done.stdout


def _reason(said: str) -> str:
    lines = said.splitlines()
    return printable(next((line for line in lines if "ERROR" in line), lines[-1] if lines else "no message"))
