"""Names of files and paths as a terminal sees them: readable in every script, and without anything that it obeys."""

import json
import unicodedata
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from dfcompile.canonical_dag import dag_from_json, dag_to_json, format_dag, parse_dag
from dfcompile.cli import main as cli
from dfcompile.frontend import read_model
from tests.onnx_files import save_convolution

Capture = pytest.CaptureFixture[str]

EVIL = "\x1b[31m\x07\x9b1m\u202egro.\u2028\u0085\x7f\u200b"
OBEYED = ("Cc", "Cf", "Cs", "Zl", "Zp")


def is_harmless(text: str) -> bool:
    return all(char == "\n" or unicodedata.category(char) not in OBEYED for char in text)


def save_named(path: Path, names: list[str], weight: str = "w") -> Path:
    """Save a convolution and a chain of Neg with the given names."""
    weights = numpy_helper.from_array(np.ones((2, 1, 3, 3), np.float32), weight)
    nodes = [helper.make_node("Conv", ["x" + EVIL, weight], ["t0"])]
    nodes += [helper.make_node("Neg", [f"t{n}"], [f"t{n + 1}"], name=name) for n, name in enumerate(names)]
    inputs = [helper.make_tensor_value_info("x" + EVIL, TensorProto.FLOAT, [1, 1, 5, 5])]
    outputs = [helper.make_tensor_value_info(f"t{len(names)}", TensorProto.FLOAT, [1, 2, 3, 3])]
    graph = helper.make_graph(nodes, "g", inputs, outputs, [weights])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), path)
    return path


def test_names_of_every_script_reach_tables_reports_and_dags(tmp_path: Path, capsys: Capture) -> None:
    model = save_named(tmp_path / "model.onnx", ["слой/активация", "größe", "è", "é", EVIL + "a"], weight="重み.weight")
    status = cli.main(
        [
            str(model),
            "--pes",
            "2",
            "--expand",
            "published",
            "--verify",
            "--format",
            "json",
            "--emit",
            "canonical",
            str(tmp_path / "o"),
        ]
    )
    report = capsys.readouterr().out
    kernels = {
        name
        for configuration in json.loads(report)["results"][0]["mapping"]["configurations"]
        for name in configuration["kernels"]
    }

    assert status == 0
    assert is_harmless(report)
    assert {"重み.im2col", "重み.matmul", "слой_активация", "größe", "è", "é"} <= kernels
    assert "слой" in report
    text = (tmp_path / "o" / "model.dag").read_text()
    assert "origin=слой.активация" in text
    assert all(is_harmless(file.read_text()) for file in (tmp_path / "o").iterdir())
    assert format_dag(dag_from_json(dag_to_json(parse_dag(text)))) == text


def test_origins_keep_letters_and_lose_what_is_not_seen(tmp_path: Path) -> None:
    program = read_model(save_named(tmp_path / "m.onnx", ["a b!", "层 1", "é\x1b[0m", "नमस्ते"])).program

    assert [node.name for node in program.nodes] == ["Conv_0", "a_b_", "层_1", "é_0m", "नमस्ते"]


@pytest.mark.parametrize("name", [EVIL, "a\u2028b", "\x85", 'quote"', "卷积", "a\x1bb"])
def test_any_name_survives_the_text_and_the_json_form_without_being_obeyed(name: str) -> None:
    quoted = json.dumps(name)
    text = f"dfcompile-dag/1 {quoted}\ntask {quoted}\ntask b\nedge {quoted} -> b volume=3\n"
    dag = parse_dag(text)

    assert (dag.name, dag.node_name(0)) == (name, name)
    for form in (format_dag(dag), dag_to_json(dag)):
        assert is_harmless(form)
    assert format_dag(parse_dag(format_dag(dag))) == format_dag(dag)
    assert format_dag(dag_from_json(dag_to_json(dag))) == format_dag(dag)


def test_file_path_option_and_name_in_errors_are_harmless(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "esc.dag").write_text(f'dfcompile-dag/1 a\ntask a\nedge a -> "zz{EVIL}" volume=3\n')
    (tmp_path / "node.dag").write_text(
        f"dfcompile-dag/1 a\ntask a\nedge a -> z{EVIL.replace(chr(0x2028), '')} volume=3\n"
    )
    (tmp_path / "esc.yaml").write_text(json.dumps({"name": EVIL, "accelerator" + EVIL: 1}))
    (tmp_path / "esc.txt").write_text(f'dataflow_graph {{ kernels {{ name: "{EVIL}" id: 1 }} }}')
    model = save_named(tmp_path / "model.onnx", ["a"])
    calls = [
        ["schedule", str(tmp_path / "esc.dag"), "--pes", "2"],
        ["schedule", str(tmp_path / "node.dag"), "--pes", "2"],
        [str(tmp_path / f"{EVIL}.onnx"), "--pes", "2"],
        [str(tmp_path / "esc.txt")],
        [EVIL],
        [str(model), "--pes", EVIL],
        [str(model), "--pes", "2", f"--{EVIL}"],
        [str(model), "--pes", "2", "--system", str(tmp_path / "esc.yaml")],
        [str(model), "--pes", "2", "--system", EVIL],
        [str(model), "--pes", "2", "--expand", f"{EVIL}:Conv=direct"],
        [str(model), "--pes", "2", "--shape", f"{EVIL}=1"],
        [str(model), "--pes", "2", "-o", str(tmp_path / EVIL / "x")],
    ]
    for words in calls:
        assert cli.main(words) == 1, words
        printed = capsys.readouterr()
        assert (printed.out, printed.err.count("\n")) == ("", 1), words
        assert is_harmless(printed.err), words


def test_names_in_tables_csv_and_pictures_are_harmless(tmp_path: Path, capsys: Capture) -> None:
    name = json.dumps(EVIL)
    (tmp_path / "a.dag").write_text(f"dfcompile-dag/1 {name}\ntask {name}\ntask b\nedge {name} -> b volume=3\n")
    (tmp_path / "system.yaml").write_text(
        json.dumps(
            {
                "name": EVIL,
                "accelerator": {
                    "lanes_per_core": 1,
                    "stages_per_core": 1,
                    "frequency_ghz": 1,
                    "sram_bytes_per_core": 0,
                },
                "dram": {"bandwidth_gb_per_s": 1},
                "sources": {"dram": EVIL},
            }
        )
    )
    save_convolution(tmp_path / "conv.onnx", shape=(1, 1, 6, 6))
    model = [str(tmp_path / "conv.onnx"), "--pes", "1", "--system", str(tmp_path / "system.yaml")]
    for words in (
        [*model, "-v"],
        [*model, "--format", "json"],
        [*model, "--format", "csv", "--expand", "conv1:Conv=im2col"],
        ["schedule", str(tmp_path / "a.dag"), "--pes", "2", "--simulate", "--fifo", "1"],
        ["schedule", str(tmp_path / "a.dag"), "--pes", "2", "--gantt", str(tmp_path / "a.svg")],
        ["schedule", str(tmp_path / "a.dag"), "--pes", "2", "--trace", str(tmp_path / "a.trace")],
    ):
        assert cli.main(words) == 0, capsys.readouterr().err
        printed = capsys.readouterr()
        assert is_harmless(printed.out + printed.err)
    assert is_harmless((tmp_path / "a.trace").read_text())
    assert is_harmless((tmp_path / "a.svg").read_text())
