"""One makespan on one screen: what is printed first of a model, what more is shown, choices kept, unlimited memory."""

import json
import math
import re
from functools import cache
from importlib import resources
from pathlib import Path

import numpy as np
import onnx
import pytest

import dfcompile as df
from dfcompile.api.runs import ModelRun
from dfcompile.cli import main as cli
from dfcompile.dfmodel_backend.machine import systems
from dfcompile.options.shared import SECTIONS
from dfcompile.page.comparison import compare_reports
from dfcompile.page.records import read_report
from dfcompile.records import replace
from dfcompile.report.screen import screen_lines
from tests.locations import ROOT
from tests.onnx_text import model_from_text

Capture = pytest.CaptureFixture[str]

PES = (4, 32)
HEADINGS = {
    "schedule": "schedule on the contention-free machine",
    "bounds": "bounds on the contention-free machine",
    "time": "where the time goes",
}


@pytest.fixture(scope="module")
def residual(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A block with a residual connection: two convolutions, what they take added to what they give."""
    text = (
        "residual (float[1,2,6,6] x) => (float[1,2,6,6] z) "
        "{ a = Conv(x, v) r = Relu(a) b = Conv(r, w) s = Add(b, x) z = Relu(s) }"
    )
    weights = {name: np.ones((2, 2, 1, 1), np.float32) for name in ("v", "w")}
    file = tmp_path_factory.mktemp("models") / "residual.onnx"
    onnx.save(model_from_text(text, **weights), file)
    return file


@cache
def compiled(model: Path, *expand: str, system: str = "canonical", pes: tuple[int, ...] = PES) -> ModelRun:
    return df.compile(model, pes=pes, expand=expand, system=system)


@pytest.fixture(params=["residual", "attention"])  # LeNet's first screen is in README.md
def model(request: pytest.FixtureRequest, residual: Path) -> Path:
    return {"residual": residual, "attention": ROOT / "tests" / "models" / "attention.py"}[request.param]


@pytest.fixture
def both(residual: Path) -> ModelRun:
    """The residual block on both numbers of elements, by default options."""
    return compiled(residual)


def printed(capsys: Capture, *words: str) -> str:
    assert cli.main([str(word) for word in words]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("expand", [(), ("published",)])
def test_two_numbers_of_elements_are_one_screen_with_the_best_marked(model: Path, expand: tuple[str, ...]) -> None:
    run = compiled(model, *expand)
    lines, narrow = run.table.splitlines(), run.render("table", width=80, verbose=False).splitlines()
    makespans = [result.makespan_cycles for result in run.report.results]

    assert len(lines) <= 20
    assert max(map(len, lines)) <= 100
    assert max(map(len, narrow)) <= 80
    assert "results, continued" not in narrow
    rows = {line.split()[0]: line for line in lines if re.match(r" +\d+ +(\*|\d)", line)}
    assert list(rows) == ["4", "32"]
    best = str(PES[makespans.index(min(makespans))])  # type: ignore[type-var]  # a mapping ends
    assert [pes for pes, line in rows.items() if " * " in line] == [best]
    for pes, cycles in zip(rows, makespans, strict=True):
        assert f" {cycles:,} " in rows[pes]
    assert sum(line.startswith("lowering on ") for line in lines) in (1, 2)
    assert [line.split(":")[0] for line in lines if re.search("-bound|mostly idle", line)] == ["4 PEs", "32 PEs"]
    assert sum(line.startswith(("hint:", "more:")) for line in lines) <= 2


def test_the_makespan_is_the_time_in_cycles_rounded_up(residual: Path) -> None:
    for system, hz in (("canonical", 1e9), ("sn30", 1.25e9)):
        run = compiled(residual, "published", system=system, pes=(16,))
        record = json.loads(run.report_json)["results"][0]

        assert record["mapping"]["machine"] == system
        assert record["makespan_cycles"] == math.ceil(round(record["mapping"]["time_s"] * hz, 3))
        assert run.to_rows()[0]["makespan_cycles"] == record["makespan_cycles"]


@pytest.mark.parametrize("expand", [(), ("published",)])
def test_on_the_contention_free_machine_the_makespan_is_that_of_the_schedule_or_less(
    residual: Path, expand: tuple[str, ...], tmp_path: Path
) -> None:
    run = df.compile(residual, pes=PES, expand=expand, overlap="none", system="contention-free")

    for result in run.report.results:
        assert result.mapping is not None
        assert result.makespan_cycles <= result.schedule.makespan_cycles  # type: ignore[operator]  # a mapping ends
        assert result.mapping.time_s == pytest.approx(result.makespan_cycles * 1e-9)  # type: ignore[operator]
        assert result.mapping.roofs.dram_bytes_per_s is None
        assert result.mapping.cost_usd < 10
    assert not re.search("Infinity|NaN|e-2", run.report_json)
    run.html(tmp_path / "page.html")
    assert "contention-free" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize("name", SECTIONS)
def test_a_section_follows_the_first_screen(name: str, both: ModelRun) -> None:
    first, text = both.table.rstrip(), both.render("table", verbose=False, show=(name,))

    assert text.startswith(f"{first}\n\n")
    titles = [HEADINGS.get(each, each) for each in SECTIONS if f"\n{HEADINGS.get(each, each)}\n" in text]
    assert titles == [HEADINGS.get(name, name)]


def test_where_nothing_is_done_nothing_limits(tmp_path: Path, capsys: Capture) -> None:
    onnx.save(model_from_text("g (float[0,3] x) => (float[0,3] y) { y = Atanh(x) }"), file := tmp_path / "none.onnx")

    assert "4 PEs: nothing to do, at the proved bound" in printed(capsys, str(file), "--pes", "4")


def test_the_cycles_of_a_clock_that_no_float_counts_are_those_of_the_time(residual: Path, tmp_path: Path) -> None:
    shipped = resources.files(systems).joinpath("sn30.yaml").read_text()
    (file := tmp_path / "fast.yaml").write_text(
        shipped.replace("frequency_ghz: 1.25", "frequency_ghz: 9223372036854775808")
    )
    (result,) = df.compile(residual, pes=4, expand="published", system=file).report.results

    assert result.mapping is not None
    assert result.makespan_cycles == pytest.approx(result.mapping.time_s * 2**63 * 1e9)


def test_all_sections_are_everything(residual: Path, capsys: Capture) -> None:
    words = (str(residual), "--pes", "4")
    everything = printed(capsys, *words, "-v")

    assert printed(capsys, *words, "--show", "all") == printed(capsys, *words, "--show", ",".join(SECTIONS))
    assert everything == printed(capsys, *words, "--show", "all")
    assert "T_s_inf: the same where tasks stream" in everything
    assert "T_s_inf" not in printed(capsys, *words, "--show", "schedule,mapping")


def test_an_unknown_section_is_an_error(residual: Path, capsys: Capture) -> None:
    assert cli.main([str(residual), "--pes", "4", "--show", "bonds"]) == 1
    assert capsys.readouterr().err == "dfcompile: error: --show 'bonds': unknown (did you mean 'bounds'?)\n"


def test_a_choice_that_was_saved_gives_the_same_report(residual: Path, tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "choice.txt"
    words = (str(residual), "--pes", "4,32", "--format", "json")
    chosen = json.loads(printed(capsys, *words, "--save-choice", str(file)))["results"]
    again = json.loads(printed(capsys, *words, "--choice", str(file)))

    for left, right in zip(chosen, again["results"], strict=True):
        assert left.pop("automatic")["is_taken"]
        for result in (left, right):
            del result["mapping"]["perfect_streams"]["solver_s"]
        assert left == right
    assert {"name": "granularity of tasks", "value": "as saved", "source": "--choice"} in again["assumptions"]
    rows = printed(capsys, *words[:3], "--choice", str(file), "--show", "operators").partition("\noperators\n")[2]
    assert re.search(r" 4 +Conv_0, Conv_1 +Conv=\w+.* \d+\.\d\n", rows)


def test_parts_of_the_time_are_in_one_unit_and_the_schedule_is_said_to_be_another(both: ModelRun) -> None:
    text = " ".join(both.render("table", verbose=False, show=("time", "bounds", "schedule")).split(" "))
    headings = text.partition("\nwhere the time goes\n")[2].split("\n")[2]

    assert len(set(re.findall(r"\b[mµn]?s\b", headings))) == 1
    assert "makespan and bound of the first table are of another one, made for the machine" in " ".join(text.split())
    only = both.render("table", verbose=False, show=("bounds",))
    assert "This is a schedule of its own" in only


def test_a_comparison_of_reports_begins_with_the_makespan_of_the_machine(residual: Path, tmp_path: Path) -> None:
    files = []
    for system in ("canonical", "contention-free"):
        files.append(tmp_path / f"{system}.json")
        files[-1].write_text(compiled(residual, "published", system=system, pes=(16,)).report_json)
    reports = [(file.stem, read_report(file)) for file in files]

    headlines = [change.figure for change in compare_reports(reports).changes if change.is_headline]
    assert headlines.count("makespan_cycles") <= 1
    assert {"cost_usd", "energy_j"} <= set(headlines)


def test_what_a_choice_cannot_be_is_said(residual: Path, tmp_path: Path, capsys: Capture) -> None:
    file, words = tmp_path / "choice.txt", (str(residual), "--pes", "4")

    def told(*more: str) -> str:
        assert cli.main([*words, *more]) == 1
        return capsys.readouterr().err.strip()

    folder = tmp_path / "written"
    emitted = ("--emit", "canonical", str(folder))
    assert told("--save-choice", str(file), "--expand", "Conv=direct", *emitted).endswith(
        "--save-choice: nothing was chosen (leave out --choice, and rules without --expand auto)"
    )
    assert not file.exists()
    assert not folder.exists()
    assert "cannot be read" in told("--choice", str(file))
    file.write_text("--pes 8 --expand Conv=direct\n")
    assert told("--choice", str(file)).endswith("found choices for 8 PEs against 4")
    assert told("--choice", str(file), "--expand", "Conv=direct").endswith(
        "--expand: found beside --choice, which says all of it, against one of them"
    )
    file.write_text("--pes 4 --expand Conv=dirct\n")
    assert "dirct" in told("--choice", str(file))
    assert "found a file that this run reads" in told("--choice", str(file), "--save-choice", str(file))


@pytest.mark.parametrize(("gap", "is_told"), [(0.05, False), (0.3, True)])
def test_a_quick_choice_far_above_its_bound_tells_of_a_longer_search(
    both: ModelRun, gap: float, *, is_told: bool
) -> None:
    results = []
    for result in both.report.results:
        assert result.mapping is not None
        results.append(replace(result, mapping=replace(result.mapping, gap=gap)))

    lines = screen_lines(replace(both.report, results=tuple(results)), 100)

    hint = f"hint: --expand auto compares more lowerings on {PES[0]} and {PES[1]} PEs, and takes longer"
    assert (hint in lines) == is_told
