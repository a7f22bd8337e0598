"""``dfcompile explore``: what it prints, what it keeps, and that nothing is lost when it is killed."""

import csv
import io
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import pandas as pd
import pytest

from dfcompile.cli.main import main
from tests.onnx_text import model_from_text

QUESTION = ("--pes", "8,32", "--on-chip-memory", "1,4", "--expand", "MatMul=mv,op", "--jobs", "1")


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


def test_a_machine_whose_fifos_do_not_pass_through_is_refused(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explore", str(model), *QUESTION, "--system", "elastic"]) == 1
    assert "explore: system 'elastic': found 2 cycles through a FIFO against" in capsys.readouterr().err


def test_forms_tell_the_same(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cache = tmp_path / "c.cache"
    table = explored(model, cache, "-v", capsys=capsys)
    record = json.loads(explored(model, cache, "--format", "json", capsys=capsys))
    rows = list(csv.DictReader(io.StringIO(explored(model, cache, "--format", "csv", capsys=capsys))))
    frame = pd.DataFrame(rows).astype({"io_bytes": int, "area_pes": float})

    assert [row["makespan_cycles"] for row in record["front"]] == [int(row["makespan_cycles"]) for row in rows]
    assert frame["io_bytes"].tolist() == [row["io_bytes"] for row in record["front"]]
    assert frame["area_pes"].tolist() == [
        0.5 * row["on_chip_memory_bytes"] / 1024 + row["pes"] for row in record["front"]
    ]
    for row in rows:
        assert f"{int(row['makespan_cycles']):,}" in table
        assert f"{int(row['io_bytes']):,}" in table
    assert "area: 0.5 x on-chip memory in kB" in table
    assert record["combinations"] == 8
    assert record["schema"] == "dfcompile-exploration/2"


@pytest.mark.slow
def test_killed_at_any_moment_it_goes_on_to_the_same_bytes(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = explored(model, tmp_path / "whole.cache", "--format", "json", capsys=capsys)
    cache = tmp_path / "killed.cache"
    command = [sys.executable, "-m", "dfcompile", "explore", str(model), *QUESTION, "--cache", str(cache)]
    kept = []
    for more in (1, 4):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        wanted = results(cache) + more
        while process.poll() is None and results(cache) < wanted:
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        assert process.stderr is not None
        said = process.stderr.read().decode()
        assert said in (
            "",
            f"dfcompile: warning: cache {str(cache)!r}: 1 entry is damaged: computed anew\n",
        )  # half a line
        process.wait()
        process.stderr.close()
        kept.append(results(cache))

    assert kept == sorted(kept)
    assert kept[-1] > 0
    assert explored(model, cache, "--format", "json", capsys=capsys) == whole


def results(cache: Path) -> int:
    return cache.read_bytes().count(b" result/") if cache.exists() else 0


def test_a_damaged_byte_is_said_and_computed_anew(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "c.cache"
    first = explored(model, cache, capsys=capsys)
    content = bytearray(cache.read_bytes())
    content[content.index(b'"makespan_cycles"') + 3] = 0xFF
    cache.write_bytes(content)

    assert main(["explore", str(model), *QUESTION, "--cache", str(cache)]) == 0
    again = capsys.readouterr()
    assert again.out == first
    assert again.err == f"dfcompile: warning: cache {str(cache)!r}: 1 entry is damaged: computed anew\n"
    monkeypatch.setattr("dfcompile.exploration.workers.run_job", never)
    assert main(["explore", str(model), *QUESTION, "--cache", str(cache)]) == 0
    assert capsys.readouterr() == (first, "")


def test_a_cache_is_none_of_the_files_that_are_read(
    apart: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is no cache is moved out of the way, but not the model's own data."""
    for name in ("weights.bin", "apart.onnx"):
        before = (tmp_path / name).read_bytes()

        assert main(["explore", str(apart), *QUESTION, "--cache", str(tmp_path / name)]) == 1
        assert f"{name}': found a file that this run reads against another file" in capsys.readouterr().err
        assert (tmp_path / name).read_bytes() == before


def never(*_: object) -> None:
    raise AssertionError("a result is computed")


@pytest.fixture
def apart(tmp_path: Path, model: Path) -> Path:
    """The model with its weights in a file beside it."""
    proto = onnx.load(model)
    onnx.save(proto, tmp_path / "apart.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    return tmp_path / "apart.onnx"


def test_results_that_are_gone_are_found_anew(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cache = tmp_path / "c.cache"
    first = explored(model, cache, capsys=capsys)
    cache.write_bytes(b"".join(cache.read_bytes().splitlines(keepends=True)[3:]))
    before = results(cache)

    assert explored(model, cache, capsys=capsys) == first
    assert results(cache) == before + 3


@pytest.mark.slow
def test_processes_find_the_same(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = explored(model, tmp_path / "one.cache", "--tries", "20", capsys=capsys)
    question = [*QUESTION[:-2], "--jobs", "2", "--tries", "20", "--cache", str(tmp_path / "two.cache")]

    assert main(["explore", str(model), *question]) == 0
    assert capsys.readouterr().out == one


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--objective", "time"], "--objective 'time': unknown"),
        (["--on-chip-memory", "3apples"], "--on-chip-memory: found unit 'apples'"),
        (["--granularity", "fine"], "granularity 'fine'"),
        (["--partition", "nobody"], "nobody"),
        (["--tries", "0"], "--tries: found '0' against 1 to"),
        (["--jobs", "0"], "--jobs: found '0' against 1 to"),
        (["--format", "html"], "--format 'html': unknown"),
        (["--expand", "Conv=direct"], "no such operator"),
        (["--expand", "auto"], "an exploration chooses in any case"),
        (["--pes", "8,8"], "8 is given twice"),
        (["--cache", "/proc/nowhere/c.cache"], "cache '/proc/nowhere/c.cache'"),
    ],
)
def test_mistakes_are_one_line(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    given = {"--pes": "4", "--on-chip-memory": "1", "--cache": str(tmp_path / "c.cache")}
    given.update(zip(options[::2], options[1::2], strict=True))

    assert main(["explore", str(model), *(word for pair in given.items() for word in pair)]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert message in said.err
