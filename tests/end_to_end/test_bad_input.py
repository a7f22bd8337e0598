"""Whatever the user gets wrong ends with one clear line and exit status 1, and writes nothing."""

from collections.abc import Callable
from importlib import resources
from pathlib import Path

import pytest

from dfcompile.cli import main as cli
from dfcompile.dfmodel_backend.machine import systems
from tests.onnx_files import save_convolution

Capture = pytest.CaptureFixture[str]


def expect_refusal(capture: Capture, folder: Path, *words: str) -> str:
    """Run, and return the one line; the only files afterwards are those of before."""
    before = sorted(folder.rglob("*"))
    status = cli.main(list(words))
    printed = capture.readouterr()
    assert (status, printed.out, printed.err.count("\n")) == (1, "", 1), printed.err
    assert sorted(folder.rglob("*")) == before
    return printed.err.removeprefix("dfcompile: error: ").rstrip("\n")


@pytest.fixture(autouse=True)
def _in_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def truncated(path: Path) -> None:
    content = save_convolution(path).read_bytes()
    path.write_bytes(content[: len(content) // 2])


MODELS: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing.onnx": (lambda path: path, "no such file"),
    "empty.onnx": (lambda path: path.write_bytes(b""), "an empty file"),
    "truncated.onnx": (truncated, "truncated"),
    "noise.onnx": (lambda path: path.write_bytes(bytes(range(256))), "not an ONNX model"),
    "channels.onnx": (
        lambda path: save_convolution(path, shape=(1, 7, 28, 28), filters=(4, 8, 3, 3)),
        "node 'conv1': input 'x' has 7 channels against weights for 8",
    ),
    "operator.onnx": (lambda path: save_convolution(path, op_type="Frobnicate"), "Frobnicate"),
    "negative.onnx": (lambda path: save_convolution(path, shape=(-1, 1, 28, 28)), "dimension 0 is -1"),
    "symbolic.onnx": (lambda path: save_convolution(path, shape=("N", 1, 28, 28)), "--shape x=1x1x28x28"),
    "model.md": (lambda path: path.write_text("x"), "against a model file (.onnx, .pt2, .py)"),
    "raises.py": (lambda path: path.write_text("raise ValueError('boom')"), "ValueError: boom"),
    "leaves.py": (lambda path: path.write_text("import sys; sys.exit(0)"), "SystemExit"),
    "syntax.py": (lambda path: path.write_text("def model(:\n"), "syntax.py"),
    "nameless.py": (lambda path: path.write_text("x = 1\n"), "no 'model' is defined"),
}


@pytest.mark.parametrize("name", MODELS)
def test_model_that_cannot_be_compiled(name: str, capsys: Capture, tmp_path: Path) -> None:
    write, expected = MODELS[name]
    write(tmp_path / name)

    assert expected in expect_refusal(capsys, tmp_path, name, "--pes", "16", "-o", "out.json", "--emit", "maps", "out")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--expand", "MatMul=lvm"], "MatMul has no 'lvm' (did you mean 'lmv'?)"),
        (["--expand", "Matmul=mv"], "no operator type 'Matmul' and no operator 'Matmul' (did you mean 'MatMul'?)"),
        (["--expand", "conv2:MatMul=mv"], "no operator 'conv2' (did you mean 'conv1'?)"),
        (["--expand", "conv1:Softmax=stable"], "operator 'conv1' has no Softmax"),
        (["--passes", "nothing"], "--passes 'nothing': unknown"),
        (["--partition", "sb-lst"], "--partition 'sb-lst': unknown (did you mean 'sb-lts'?)"),
        (["--solver", "gurobi"], "--solver 'gurobi': unknown"),
        (["--granularity", "split=0"], "split '0' against a whole number"),
        (["--shape", "y=1x1x28x28"], "shape 'y': no input of that name"),
        (["--system", "canonicle"], "system 'canonicle'"),
        (["--system", "missing.yaml"], "no such file"),
        (["--emit", "maps", "out", "--emit", "library", "out"], "folder 'out' is given twice"),
    ],
)
def test_option_that_names_nothing(words: list[str], expected: str, capsys: Capture, tmp_path: Path) -> None:
    save_convolution(tmp_path / "conv1.onnx")

    assert expected in expect_refusal(capsys, tmp_path, "conv1.onnx", "--pes", "16", *words)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("frequency_ghz", "frequenzy_ghz", "unknown key 'accelerator.frequenzy_ghz' (did you mean 'frequency_ghz'?)"),
        ("bandwidth_gb_per_s: ", "bandwidth_gb_per_s: -", "greater than 0"),
        ("bandwidth_gb_per_s: ", "bandwidth_gb_per_s: .nan #", "'dram.bandwidth_gb_per_s'"),
        ("accelerator:", "accelerator: [", "machine.yaml"),
    ],
)
def test_system_file_that_is_wrong(old: str, new: str, expected: str, capsys: Capture, tmp_path: Path) -> None:
    save_convolution(tmp_path / "conv1.onnx")
    text = resources.files(systems).joinpath("canonical.yaml").read_text(encoding="utf-8")
    (tmp_path / "machine.yaml").write_text(text.replace(old, new, 1))

    assert expected in expect_refusal(capsys, tmp_path, "conv1.onnx", "--pes", "16", "--system", "machine.yaml")


@pytest.mark.parametrize(
    ("text", "expected"), [("", "dfcompile-dag/1"), ("{", "line 1"), ("dfcompile-dag/1 g\nnode\n", "line 2")]
)
def test_dag_file_that_is_wrong(text: str, expected: str, capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "graph.dag").write_text(text)

    line = expect_refusal(capsys, tmp_path, "schedule", "graph.dag", "--pes", "4")
    assert line.startswith("graph.dag: ")
    assert expected in line


def test_folder_of_the_user_is_not_overwritten(capsys: Capture, tmp_path: Path) -> None:
    save_convolution(tmp_path / "conv1.onnx")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "precious.txt").write_text("1")

    line = expect_refusal(capsys, tmp_path, "conv1.onnx", "--pes", "16", "--emit", "maps", "mine")
    assert "found other files in it against a new or empty folder" in line
