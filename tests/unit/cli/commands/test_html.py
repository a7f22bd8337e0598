"""`--html` of every command: a page with the JSON that the command prints, and what repeats the run."""

import hashlib
import html
import json
import re
from pathlib import Path

import pytest

from dfcompile.canonical_dag import dag_to_json
from dfcompile.cli import main as cli
from dfcompile.generators.canonical_dags import gaussian
from dfcompile.page.provenance import subject_of
from dfcompile.page.records import read_report
from tests.locations import DESIGNS
from tests.onnx_files import save_convolution

Capture = pytest.CaptureFixture[str]

DESIGN = str(DESIGNS / "dlrm_A_zionex_128.txt")


@pytest.fixture(autouse=True)
def _in_folder_with_inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dag.json").write_text(dag_to_json(gaussian(4, 64, 1)))
    save_convolution(tmp_path / "conv.onnx", shape=(1, 1, 12, 12))


@pytest.mark.parametrize(
    "words",
    [
        ["conv.onnx", "--pes", "4,8", "--expand", "Conv=direct,im2col"],
        ["schedule", "dag.json", "--pes", "2,4"],
        ["explore", "conv.onnx", "--pes", "4", "--on-chip-memory", "4kB,1MB", "--tries", "4", "--jobs", "1"],
        ["bounds", "conv.onnx", "--buffer", "1KiB,16KiB"],
        ["bounds", "--gemm", "16,16,16", "--buffer", "1KiB"],
        ["llm", "--config", "llama-3.1-8b", "--system", "h100-sxm", "--decode", "64x2"],
        [DESIGN],
    ],
    ids=["model", "schedule", "explore", "bounds of a model", "bounds of a product", "llm", "design"],
)
def test_the_json_in_the_page_is_the_report(words: list[str], tmp_path: Path, capsys: Capture) -> None:
    assert cli.main([*words, "--format", "json", "--html", "page.html"]) == 0
    printed = capsys.readouterr().out

    held = read_report(tmp_path / "page.html").values
    assert held == json.loads(printed)
    text = (tmp_path / "page.html").read_text()
    assert f'id="command">dfcompile {" ".join(words)} --format json --html page.html<' in html.unescape(text)
    for file in ("conv.onnx", "dag.json"):
        digest = hashlib.sha256((tmp_path / file).read_bytes()).hexdigest()
        assert (digest in text) == (file in words)


def test_a_page_leads_to_the_files_of_its_run(tmp_path: Path) -> None:
    words = ["--emit", "onnx", "o", "--emit", "schedule", "s", "--trace", "t.json", "--html", "pages/conv.html"]
    (tmp_path / "pages").mkdir()

    assert cli.main(["conv.onnx", "--pes", "4", *words]) == 0
    text = (tmp_path / "pages" / "conv.html").read_text()
    found = re.findall(r'<a href="([^"]*)">', text)
    assert found == [
        *("./../t.json", "./../o/conv.txt", "./../o/conv.sdfg"),
        *("./../s/conv-4.json", "./../s/conv-4.trace.json"),
    ]
    assert all((tmp_path / "pages" / address).is_file() for address in found)


def test_a_model_py_is_called_by_its_folder() -> None:
    assert subject_of([Path("examples/lenet/model.py"), Path("h100")]) == "lenet"
    assert subject_of([Path("examples/linear.py")]) == ""
    assert subject_of([]) == ""


def test_a_schedule_that_never_ends_is_not_drawn_but_explained(tmp_path: Path) -> None:
    edges = ("in fork 8", "fork sum 8", "sum spread 1", "spread join 8", "fork join 8", "join out 8")
    lines = ["dfcompile-dag/1 g", "pseudo_source in", "task fork", "task sum", "task spread", "task join"]
    lines += ["pseudo_sink out"]
    lines += [f"edge {a} -> {b} volume={volume}" for a, b, volume in map(str.split, edges)]
    (tmp_path / "dead.dag").write_text("\n".join(lines) + "\n")

    assert cli.main(["schedule", "dead.dag", "--pes", "4", "--fifo", "1", "--html", "page.html"]) == 0
    text = html.unescape((tmp_path / "page.html").read_text())
    assert "<li>Deadlock: 'fork' waits for a place for an element to 'join'; " in text
    assert 'id="timeline"' not in text


def test_pages_and_json_are_compared(tmp_path: Path, capsys: Capture) -> None:
    written = (("2", "--html", "a.html"), ("2", "--format", "json", "-o", "b.json"), ("4", "--html", "c.html"))
    for pes, *options in written:
        assert cli.main(["schedule", "dag.json", "--pes", pes, *options]) == 0
    capsys.readouterr()

    assert cli.main(["compare", "a.html", "b.json"]) == 0
    assert capsys.readouterr().out.startswith("no difference: all ")
    assert cli.main(["compare", "a.html", "c.html", "--format", "json", "--html", "d.html"]) == 0
    printed = json.loads(capsys.readouterr().out)
    changes = {(change["where"], change["figure"]): (change["base"], change["value"]) for change in printed["changes"]}
    assert changes["results:", "pes"] == (2, 4)
    read = [read_report(tmp_path / name).parts("results")[0] for name in ("a.html", "c.html")]
    makespans = [result.number("schedule.makespan_cycles") for result in read]
    assert changes["results: schedule", "makespan_cycles"] == tuple(makespans)
    assert read_report(tmp_path / "d.html").values == printed


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["schedule", "dag.json", "--pes", "2", "--html", "dag.json"], "a file that this run reads"),
        (["schedule", "dag.json", "--pes", "2", "--html", "x", "-o", "x"], "given for two things against one"),
        (["schedule", "dag.json", "--pes", "2", "--html", "."], "found a folder against a file name"),
        (["llm", "--config", "llama-3.1-8b", "--system", "h100-sxm", "--from-graph", "--html", "x"],
         "--html: found --from-graph or --from-onnx"),
        (["compare", "dag.json"], "compare: found 1 reports against two or more"),
        (["compare", "dag.json", "dag.json"], "found format 'dfcompile-dag/1' against dfcompile-report"),
        (["compare", "dag.json", "dag.json", "--html", "dag.json"], "a file that this run reads"),
        (["compare", "dag.json", "none.json"], "report 'none.json': no such file"),
    ],
)  # fmt: skip
def test_what_cannot_be_written_or_compared_is_said_in_a_line(words: list[str], message: str, capsys: Capture) -> None:
    assert cli.main(words) == 1
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.err.count("\n") == 1
