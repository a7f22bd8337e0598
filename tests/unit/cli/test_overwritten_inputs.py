"""No output overwrites an input, whatever the command, the option, the path and the link."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import external_data_helper, numpy_helper, parser

from dfcompile.cli.main import main
from dfcompile.errors import UserError
from dfcompile.host.inputs import note_read_files
from dfcompile.host.outputs import MARKER, write_text
from tests.examples import examples
from tests.fuzz.command_inputs import write_inputs
from tests.fuzz.draw import Draw
from tests.fuzz.outcome import Verdict
from tests.fuzz.overwrite_cases import drawn_overwrite, judge_overwrite
from tests.onnx_files import save_convolution

WAYS: dict[str, Callable[[Path], Path]] = {
    "itself": lambda file: file,
    "dotted": lambda file: file.parent / "." / ".." / file.parent.name / file.name,
    "symbolic": lambda file: linked(file, os.symlink),
    "hard": lambda file: linked(file, os.link),
}


def linked(file: Path, link: Callable[[Path, Path], None]) -> Path:
    other = file.with_name(f"other{file.suffix}")
    link(file, other)
    return other


COMMANDS = (
    ("{} --pes 2 {}", "model.onnx", ("-o", "--html", "--gantt", "--trace")),
    ("model.onnx --pes 2 --system {} {}", "machine.yaml", ("-o", "--html")),
    ("bounds {} {}", "model.onnx", ("-o", "--html", "--svg")),
    ("schedule {} --pes 2 {}", "graph.dag", ("-o", "--html", "--trace", "--gantt")),
    ("explore {} --pes 2 --on-chip-memory 1 {}", "model.onnx", ("-o", "--html", "--cache")),
    ("explore model.onnx --pes 2 --on-chip-memory 1 --cache {} {}", "kept.cache", ("-o", "--html")),
    ("compare {} report.json {}", "report.json", ("-o", "--html")),
    ("llm --config {} --system h100-sxm {}", "config.json", ("-o", "--html")),
    ("llm --config llama-3.1-8b --system {} {}", "machine.yaml", ("-o", "--html")),
)
CASES = [(line, name, option) for line, name, options in COMMANDS for option in options]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("line", "name", "option"), CASES)
def test_an_output_that_is_an_input_is_refused(
    line: str, name: str, option: str, way: str, tmp_path: Path,
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    for file in (name, "model.onnx"):
        Path(file).write_bytes(b"content")
    target = WAYS[way](tmp_path / name)

    assert main(line.format(name, f"{option} {target}").split()) == 1

    error = capsys.readouterr().err
    assert error == f"dfcompile: error: output {str(target)!r}: found a file that this run reads against another file\n"
    assert Path(name).read_bytes() == b"content"


def test_a_folder_that_holds_an_input_is_not_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "model.onnx"
    save_convolution(model)
    (tmp_path / ".dfcompile-emit").touch()

    assert main([str(model), "--pes", "2", "--emit", "onnx", str(tmp_path)]) == 1
    assert "found a file that this run reads" in capsys.readouterr().err
    assert model.exists()


def test_external_data_are_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They are no word of the command line: what was read is known when the output is written."""
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[4] x) => (float[4] y) { y = Add(x, w) }'
    )
    model.graph.initializer.append(numpy_helper.from_array(np.ones(4, np.float32), "w"))
    external_data_helper.convert_model_to_external_data(model, location="weights.bin", size_threshold=0)
    onnx.save(model, tmp_path / "model.onnx")
    before = (tmp_path / "weights.bin").read_bytes()

    assert main([str(tmp_path / "model.onnx"), "--pes", "2", "-o", str(tmp_path / "weights.bin")]) == 1
    assert "weights.bin': found a file that this run reads against another file" in capsys.readouterr().err
    assert (tmp_path / "weights.bin").read_bytes() == before


@given(st.integers(0, 10**9))
@examples(30)
def test_no_command_writes_over_what_it_reads(seed: int) -> None:
    draw = Draw(str(seed))
    case = drawn_overwrite(draw)

    outcome = judge_overwrite(Path("case.json"), case, draw, lambda _phase: None)

    assert outcome.verdict is Verdict.ACCEPTED, (outcome.cause, outcome.detail)


@pytest.mark.parametrize("option", ["-o helper.py", "--html helper.py", "--emit maps ."])
def test_a_module_is_an_input_also_where_only_its_compiled_code_is_read(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_inputs(tmp_path)
    monkeypatch.chdir(tmp_path / "p")
    (tmp_path / "p" / MARKER).touch()

    assert main(["code.py", "--pes", "2", *option.split()]) == 1
    assert "found a file that this run reads against another file" in capsys.readouterr().err
    assert Path("helper.py").read_text() == "WIDTH = 4\n"


def test_a_folder_with_external_data_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_inputs(tmp_path)
    monkeypatch.chdir(tmp_path)
    Path("m", "data", MARKER).touch()

    assert main(["m/m.onnx", "--pes", "2", "--emit", "onnx", "m/data"]) == 1
    assert "output 'm/data': found a file that this run reads" in capsys.readouterr().err
    assert Path("m/data/w.bin").exists()


def test_standard_input_may_be_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_inputs(tmp_path)
    monkeypatch.chdir(tmp_path)
    before = Path("g.dag").read_bytes()
    kept = os.dup(0)
    try:
        with Path("g.dag").open("rb") as file:
            os.dup2(file.fileno(), 0)
        with open(0, encoding="utf-8", closefd=False) as stream:  # a number
            monkeypatch.setattr("sys.stdin", stream)

            assert main(["schedule", "-", "--pes", "2", "-o", "g.dag"]) == 1
    finally:
        os.dup2(kept, 0)
        os.close(kept)
    assert "output 'g.dag': found a file that this run reads" in capsys.readouterr().err.replace(f"{tmp_path}/", "")
    assert Path("g.dag").read_bytes() == before


def test_what_was_read_is_known_from_every_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("one", "other"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.txt").write_text(folder)
    monkeypatch.chdir(tmp_path / "one")
    note_read_files()
    assert Path("a.txt").read_text() == "one"
    monkeypatch.chdir(tmp_path / "other")

    write_text("written", Path("a.txt"))
    with pytest.raises(UserError, match="found a file that this run reads"):
        write_text("written", tmp_path / "one" / "a.txt")


def test_an_earlier_output_is_replaced(tmp_path: Path) -> None:
    note_read_files()
    write_text("one", tmp_path / "a.txt")
    write_text("two", tmp_path / "a.txt")

    assert (tmp_path / "a.txt").read_text() == "two"


def test_what_an_earlier_run_of_the_process_read_may_be_written(tmp_path: Path) -> None:
    note_read_files()
    file = tmp_path / "a.txt"
    file.write_text("one")
    assert file.read_text() == "one"
    with pytest.raises(UserError, match="found a file that this run reads"):
        write_text("two", file)

    note_read_files()
    write_text("two", file)

    assert file.read_text() == "two"
