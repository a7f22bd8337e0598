"""Circuits that compute come to the outputs of the original, integers bit for bit, says an installed simulator."""

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import pytest

from dfcompile.cli.main import main
from dfcompile.errors import UserError
from dfcompile.rtl.simulation import installed_simulators
from tests.onnx_text import model_from_text
from tests.rtl.values import compared_model

INSTALLED = [name for name in installed_simulators() if name != "cxxrtl"]
simulated = pytest.mark.skipif(not INSTALLED, reason="neither Icarus nor Verilator is installed")

CONV = """g (int8[1,2,5,5] x) => (int8[1,3,2,2] y) {
    c = QLinearConv<pads=[0,0,1,1]>(x, xs, xz, w, ws, wz, cs, cz, b)
    y = MaxPool<kernel_shape=[2,2], strides=[2,2]>(c)
}"""
CONV_WEIGHTS: dict[str, np.ndarray] = {
    "w": np.arange(54, dtype=np.int8).reshape(3, 2, 3, 3) % 23 - 9,
    "b": np.array([40, -3, 7], np.int32),
    **{name: np.array(value, np.float32) for name, value in (("xs", 0.07), ("ws", 0.03), ("cs", 0.011))},
    **{name: np.array(value, np.int8) for name, value in (("xz", 1), ("wz", 0), ("cz", -3))},
}


def lines(folder: Path, graph: str, weights: Mapping[str, np.ndarray], **options: object) -> list[str]:
    """What a simulation of a model's circuits says, of three random inputs."""
    onnx.save(model_from_text(graph, **weights), folder / "model.onnx")
    # What is refused is refused before a simulator is asked for.
    simulator = next(iter(INSTALLED), "icarus")
    return compared_model(folder / "model.onnx", 3, simulator, **options)


@simulated
def test_integer_products_are_bit_for_bit_by_all_expansions(tmp_path: Path) -> None:
    """Streams that one task takes in turn, a broadcast, sums of outer products, trees of partial results."""
    graph = "g (int8[3,6] x) => (int32[3,5] y) { y = MatMulInteger(x, w) }"
    weights: dict[str, np.ndarray] = {"w": np.arange(-15, 15, dtype=np.int8).reshape(6, 5)}
    expand = ["MatMul=mv,lmv,op,ip,rows,split-k{parts=2}"]
    found = lines(tmp_path, graph, weights, pes=[4], expand=expand)

    assert len(found) == 6
    assert all(
        re.search(r": \d+ cycles by \w+, as printed; 45 outputs of 3 inputs bit for bit$", line) for line in found
    )


@simulated
@pytest.mark.parametrize("system", ["canonical", "elastic"])
def test_a_softmax_is_within_the_tolerance_of_verification(tmp_path: Path, system: str) -> None:
    graph = "g (float[2,6] x) => (float[2,6] y) { y = Softmax(x) }"
    (line,) = lines(tmp_path, graph, {}, pes=[3], expand="published", system=system)

    found = re.search(r"as printed; 36 outputs of 3 inputs off by ([\d.e-]+) at most, 5.* allowed$", line)
    assert found is not None
    assert float(found.group(1)) < 1e-6


@simulated
def test_a_quantised_convolution_and_its_largest_values_are_bit_for_bit(tmp_path: Path) -> None:
    """MaxPool goes through rows: it keeps those that are not complete, and writes to memory alone."""
    (line,) = lines(tmp_path, CONV, CONV_WEIGHTS, pes=[2])

    assert line.endswith("36 outputs of 3 inputs bit for bit")


@pytest.mark.parametrize("simulator", INSTALLED)
def test_every_simulator_reads_an_element_before_memory_gives_the_next(
    tmp_path: Path, simulator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Verilator runs parts of a process in an order of its own where it sees no dependence between them."""
    monkeypatch.setenv("MAKEFLAGS", "OPT_GLOBAL=-O0 OPT_FAST=-O0")  # to compile takes seconds, to run no time
    graph = """g (float[8] x) => (float[8] y) {
        q = QuantizeLinear(x, s, z)
        y = DequantizeLinear(q, s, z)
    }"""
    onnx.save(model_from_text(graph, s=np.array(0.037, np.float32), z=np.array(3, np.int8)), tmp_path / "model.onnx")
    (line,) = compared_model(tmp_path / "model.onnx", 2, simulator, pes=[1])

    assert line.endswith("as printed; 16 outputs of 2 inputs bit for bit")


@simulated
def test_other_values_than_the_originals_are_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, folder = tmp_path / "m.onnx", tmp_path / "circuits"
    onnx.save(model_from_text("g (int32[4] x) => (int32[4] y) { y = Neg(x) }"), model)
    assert main([str(model), "--pes", "1", "--emit", "rtl-values", str(folder)]) == 0
    assert main(["rtl", str(folder)]) == 0
    assert "; 4 outputs bit for bit" in capsys.readouterr().out
    assert main(["rtl", str(folder), "--simulator", "cxxrtl"]) == 1
    assert "values: found --simulator cxxrtl against icarus or verilator" in capsys.readouterr().err

    printed = folder / "printed.json"
    printed.write_text(re.sub(r'"(f{8}|0{8}) ', '"00000007 ', printed.read_text(), count=1))
    assert main(["rtl", str(folder), "--simulator", INSTALLED[0]]) == 1
    assert re.search(r"output 'y': found -?\d at 0 against 7, tolerance 0", capsys.readouterr().err)


@pytest.mark.parametrize(
    ("graph", "found"),
    [
        ("g (float[4] x) => (float[4] y) { y = Erf(x) }", "task 'n0_Erf_0': found function 'erf' against"),
        ("g (float16[4] x) => (float16[4] y) { y = Relu(x) }", "found 'x' as float16 against own types"),
        ("g (float[4] x, int64[3] i) => (float[3] y) { y = Gather(x, i) }", "at places that depend on data against"),
    ],
)
def test_tasks_without_values_are_refused_by_name(tmp_path: Path, graph: str, found: str) -> None:
    with pytest.raises(
        UserError, match=r"^--emit rtl-values: task '\w+': found .* \(--emit rtl writes circuits"
    ) as error:
        lines(tmp_path, graph, {}, pes=[1])

    assert re.search(found.replace("task 'n0_Erf_0': ", ""), str(error.value))
