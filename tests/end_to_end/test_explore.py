"""``dfcompile explore``: what it prints, what it keeps, and that nothing is lost when it is killed."""

import csv
import io
import json
import random
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pandas as pd
import pytest

from dfcompile.api.explore_model import explore_model
from dfcompile.cli.main import main
from dfcompile.report.plain_values import Json
from tests.onnx_text import model_from_text

QUESTION = ("--pes", "8,32", "--on-chip-memory", "1,4", "--expand", "MatMul=mv,op,lmv,ip", "--jobs", "1")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    generator = np.random.default_rng(0)
    found = model_from_text(
        "g (float[16,24] x) => (float[16,12] y) "
        "{ a = MatMul(x, w) b = Relu(a) c = MatMul(b, v) d = Softmax(c) y = MatMul(d, u) }",
        w=generator.random((24, 20), dtype=np.float32),
        v=generator.random((20, 28), dtype=np.float32),
        u=generator.random((28, 12), dtype=np.float32),
    )
    onnx.save(found, tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def explored(model: Path, cache: Path, *options: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["explore", str(model), *QUESTION, "--cache", str(cache), *options]) == 0
    return capsys.readouterr().out


def test_forms_tell_the_same(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cache, saved = tmp_path / "c.sqlite", tmp_path / "front.sqlite"
    table = explored(model, cache, "-v", capsys=capsys)
    record = json.loads(explored(model, cache, "--format", "json", "--save", str(saved), capsys=capsys))
    rows = list(csv.DictReader(io.StringIO(explored(model, cache, "--format", "csv", capsys=capsys))))
    with sqlite3.connect(saved) as database:
        frame = pd.read_sql("SELECT * FROM front", database)
    database.close()

    assert [row["makespan_cycles"] for row in record["front"]] == [int(row["makespan_cycles"]) for row in rows]
    assert frame["io_bytes"].tolist() == [row["io_bytes"] for row in record["front"]]
    assert frame["area_pes"].tolist() == [
        0.5 * row["on_chip_memory_bytes"] / 1024 + row["pes"] for row in record["front"]
    ]
    for row in rows:
        assert f"{int(row['makespan_cycles']):,}" in table
        assert f"{int(row['io_bytes']):,}" in table
    assert "area: 0.5 x on-chip memory in kB" in table
    assert record["combinations"] == 64
    assert record["schema"] == "dfcompile-exploration/1"


@pytest.mark.slow
def test_killed_at_any_moment_it_goes_on_to_the_same_bytes(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = explored(model, tmp_path / "whole.sqlite", "--format", "json", capsys=capsys)
    cache = tmp_path / "killed.sqlite"
    command = [sys.executable, "-m", "dfcompile", "explore", str(model), *QUESTION, "--cache", str(cache)]
    kept = []
    for _ in range(4):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        before = results(cache)
        wanted = before + random.randint(0, 12)
        while process.poll() is None and results(cache) < wanted:
            pass
        process.send_signal(signal.SIGKILL)
        assert process.stderr is not None
        assert process.stderr.read() == b""
        process.wait()
        process.stderr.close()
        kept.append(results(cache))

    assert kept == sorted(kept)
    assert kept[-1] > 0
    assert explored(model, cache, "--format", "json", capsys=capsys) == whole


def results(cache: Path) -> int:
    if not cache.exists():
        return 0
    try:
        database = sqlite3.connect(f"file:{cache}?mode=ro", uri=True)
        try:
            return int(database.execute("SELECT COUNT(*) FROM results").fetchone()[0])
        finally:
            database.close()
    except sqlite3.OperationalError:
        return 0  # it is just being made


def test_corrupted_entry_is_said_and_computed_anew(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cache = tmp_path / "c.sqlite"
    first = explored(model, cache, capsys=capsys)
    with sqlite3.connect(cache) as database:
        key = database.execute("SELECT key FROM results ORDER BY key").fetchone()[0]
        database.execute("UPDATE results SET makespan_cycles = 1 WHERE key = ?", (key,))
    database.close()

    assert main(["explore", str(model), *QUESTION, "--cache", str(cache)]) == 0
    again = capsys.readouterr()
    assert again.out == first
    assert again.err.count("\n") == 1
    assert "is corrupted: computed anew" in again.err
    assert main(["explore", str(model), *QUESTION, "--cache", str(cache)]) == 0
    assert capsys.readouterr().err == ""


def never(*_: object) -> None:
    raise AssertionError("the model is read")


@pytest.fixture
def apart(tmp_path: Path, model: Path) -> Path:
    """The model with its weights in a file beside it."""
    proto = onnx.load(model)
    onnx.save(proto, tmp_path / "apart.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    return tmp_path / "apart.onnx"


@pytest.mark.parametrize("name", ["model", "apart"])
def test_second_run_reads_no_model(
    name: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path, cache = request.getfixturevalue(name), tmp_path / "c.sqlite"
    forms = [["--format", form, "-v"] for form in ("table", "json", "csv")]
    first = [explored(path, cache, *form, capsys=capsys) for form in forms]

    monkeypatch.setattr("dfcompile.api.explore_model.read_model", never)
    assert [explored(path, cache, *form, capsys=capsys) for form in forms] == first
    with pytest.raises(AssertionError, match="the model is read"):  # another question
        explore_model(path, pes=8, on_chip_memory="1", cache=cache, jobs=1)


@pytest.mark.parametrize("changed", ["apart.onnx", "weights.bin"])
def test_changed_model_is_read_again(
    changed: str, apart: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def front() -> list[dict[str, Json]]:
        cache = tmp_path / "c.sqlite"
        return explore_model(apart, pes=8, on_chip_memory="1", expand="MatMul=mv,op", cache=cache, jobs=1).rows

    first = front()
    file = tmp_path / changed
    content = file.read_bytes()
    file.write_bytes(content + b"\x7a\x00")  # a field of no bytes that ONNX does not know
    assert front() == first

    monkeypatch.setattr("dfcompile.api.explore_model.read_model", never)
    assert front() == first
    file.write_bytes(content + b"\x7a\x00\x7a\x00")
    with pytest.raises(AssertionError, match="the model is read"):
        front()


def test_corrupted_answer_is_said_and_found_anew(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "c.sqlite"
    first = explored(model, cache, capsys=capsys)
    with sqlite3.connect(cache) as database:
        database.execute("UPDATE answers SET answer = replace(answer, 'tries', 'trees')")
    database.close()

    assert main(["explore", str(model), *QUESTION, "--cache", str(cache)]) == 0
    again = capsys.readouterr()
    assert again.out == first
    assert again.err.count("\n") == 1
    assert "is corrupted: found anew" in again.err
    monkeypatch.setattr("dfcompile.api.explore_model.read_model", never)
    assert explored(model, cache, capsys=capsys) == first


def test_answer_whose_results_are_gone_is_found_anew(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cache = tmp_path / "c.sqlite"
    first = explored(model, cache, capsys=capsys)
    with sqlite3.connect(cache) as database:
        database.execute("DELETE FROM results WHERE key IN (SELECT key FROM results ORDER BY key LIMIT 3)")
    database.close()
    before = results(cache)

    assert explored(model, cache, capsys=capsys) == first
    assert results(cache) == before + 3


@pytest.mark.slow
def test_processes_find_the_same(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = explored(model, tmp_path / "one.sqlite", "--tries", "20", capsys=capsys)
    question = [*QUESTION[:-2], "--jobs", "2", "--tries", "20", "--cache", str(tmp_path / "two.sqlite")]

    assert main(["explore", str(model), *question]) == 0
    assert capsys.readouterr().out == one


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--objective", "time"], "--objective 'time': unknown"),
        (["--on-chip-memory", "3apples"], "--on-chip-memory: found '3apples'"),
        (["--granularity", "fine"], "granularity 'fine'"),
        (["--partition", "nobody"], "nobody"),
        (["--tries", "0"], "--tries: found 0 against 1 to"),
        (["--jobs", "0"], "--jobs: found 0 against 1 to"),
        (["--format", "html"], "--format 'html': unknown"),
        (["--save", "front.xls"], "against .sqlite or .parquet"),
        (["--expand", "Conv=direct"], "no such operator"),
        (["--expand", "auto"], "an exploration chooses in any case"),
        (["--pes", "8,8"], "8 is given twice"),
        (["--cache", "/proc/nowhere/c.sqlite"], "cache '/proc/nowhere/c.sqlite'"),
        (["--cluster", "tcp://127.0.0.1:1"], "--cluster"),
    ],
)
def test_mistakes_are_one_line(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    given = {"--pes": "4", "--on-chip-memory": "1", "--cache": str(tmp_path / "c.sqlite")}
    given.update(zip(options[::2], options[1::2], strict=True))

    assert main(["explore", str(model), *(word for pair in given.items() for word in pair)]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert message in said.err


def test_parquet_needs_its_library(
    model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)

    assert main(["explore", str(model), *QUESTION, "--save", "front.parquet"]) == 1
    assert "'pyarrow' is not installed" in capsys.readouterr().err
