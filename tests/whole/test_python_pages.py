"""``html`` of a run writes the page that the command writes, but for how it is made again."""

import html
import re
from pathlib import Path

import onnx
import pytest

import dfcompile as df
from dfcompile.api.explore_model import explore_model
from dfcompile.api.runs import FROM_PYTHON
from dfcompile.cli.main import main
from tests.onnx_files import save_convolution

DESIGN = Path("tests/data/dfmodel/fft_a100_1024.txt")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_convolution(tmp_path_factory.mktemp("models") / "small.onnx", shape=(1, 1, 8, 8), filters=(2, 1, 3, 3))


def of_command(folder: Path, *words: str) -> str:
    file = folder / "command.html"
    assert main([*words, "--html", str(file)]) == 0
    page = file.read_text(encoding="utf-8")
    command = re.search(r'<code id="command">(.*?)</code>', page, re.DOTALL)
    assert command is not None
    assert html.unescape(command.group(1)).startswith("dfcompile ")
    return without_seconds(page.replace(command.group(1), FROM_PYTHON))


def without_seconds(page: str) -> str:
    """A page without how long solvers took."""
    return re.sub(r'("solver_s": ?)[0-9.e-]+', r"\g<1>0", page)


def test_a_model(model: Path, tmp_path: Path) -> None:
    run = df.compile(model, pes=[2, 4], chips=[1, 2], system="a100", expand={"MatMul": "mv"})
    run.html(tmp_path / "page.html")
    command = (str(model), "--pes", "2,4", "--chips", "1,2", "--system", "a100", "--expand", "MatMul=mv")
    page = without_seconds((tmp_path / "page.html").read_text(encoding="utf-8"))

    assert page == of_command(tmp_path, *command)
    assert f"SHA-256 of {model}" in page


def test_a_schedule(tmp_path: Path) -> None:
    dag = tmp_path / "dag.json"
    assert main(["generate", "cholesky", "--size", "4", "-o", str(dag)]) == 0
    df.schedule(dag, pes=[2, 4], partition=["sb-rlx", "best"]).html(str(tmp_path / "page.html"))
    expected = of_command(tmp_path, "schedule", str(dag), "--pes", "2,4", "--partition", "sb-rlx,best")

    assert without_seconds((tmp_path / "page.html").read_text(encoding="utf-8")) == expected


def test_a_set_up_file(tmp_path: Path) -> None:
    df.solve(DESIGN).html(tmp_path / "page.html")

    assert without_seconds((tmp_path / "page.html").read_text(encoding="utf-8")) == of_command(tmp_path, str(DESIGN))


def test_an_exploration(model: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    explore_model(model, pes="2,4", on_chip_memory="1", tries=4, jobs=1, cache=cache).html(tmp_path / "page.html")
    command = ("explore", str(model), "--pes", "2,4", "--on-chip-memory", "1", "--tries", "4", "--cache", str(cache))

    assert (tmp_path / "page.html").read_text(encoding="utf-8") == of_command(tmp_path, *command)


def test_a_model_in_memory_has_no_file(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model").write_text("not what was read")
    df.compile(onnx.load(model), pes=2).html("page.html", command="python mine.py <1>")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")

    assert "SHA-256 of" not in page
    assert "python mine.py &lt;1&gt;" in page


def test_a_folder_is_refused(model: Path, tmp_path: Path) -> None:
    with pytest.raises(df.UserError, match="found a folder against a file name"):
        df.compile(model, pes=2).html(tmp_path)
