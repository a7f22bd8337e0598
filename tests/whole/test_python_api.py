"""What Python programs call gives what the command line prints, and raises what it tells."""

import inspect
import json
import subprocess
import sys
from pathlib import Path

import onnx
import pytest

import dfcompile as df
from dfcompile.api.bound_model import bounds
from dfcompile.api.runs import Shown
from dfcompile.cli.main import main
from tests.onnx_files import save_convolution

DESIGN = Path("tests/data/dfmodel/fft_a100_1024.txt")
HEAVY = ("click", "dace", "numpy", "onnx", "pandas", "torch")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_convolution(tmp_path_factory.mktemp("models") / "small.onnx", shape=(1, 1, 8, 8), filters=(2, 1, 3, 3))


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(list(words)) == 0
    return capsys.readouterr().out


def without_seconds(text: str) -> str:
    record = json.loads(text)
    for result in record.get("results", [record]):
        result.get("mapping", {}).get("perfect_streams", result.get("search", {})).pop("solver_s", None)
    return json.dumps(record)


def test_import_takes_nothing_heavy_with_it() -> None:
    code = f"import dfcompile, sys; print([name for name in {HEAVY} if name in sys.modules], dir(dfcompile))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert run.stdout.startswith("[] ")
    assert all(f"'{name}'" in run.stdout for name in ("compile", "schedule", "solve", "UserError"))
    with pytest.raises(AttributeError, match="module 'dfcompile' has no attribute 'compil'"):
        getattr(df, "compil")  # noqa: B009  # mypy knows that it is not there


@pytest.mark.parametrize("words", [False, True], ids=["values", "texts"])
def test_a_model_gives_what_the_command_prints(model: Path, capsys: pytest.CaptureFixture[str], words: bool) -> None:
    command = [str(model), "--pes", "4,2", "--expand", "MatMul=mv,op", "--chips", "1", "--passes", "drop-dead"]
    if words:
        run = df.compile(str(model), pes="4,2", expand=["MatMul=mv,op"], chips="1", passes="drop-dead")
    else:
        run = df.compile(model, pes=[4, 2], expand={"MatMul": ["mv", "op"]}, chips=1, passes=["drop-dead"])

    assert run.table == printed(capsys, *command)
    expected = printed(capsys, *command, "--format", "json")
    assert without_seconds(run.render("json")) == without_seconds(expected)
    assert without_seconds(json.dumps(run.to_record())) == without_seconds(expected)
    assert [row["pes"] for row in run.to_rows()] == [4, 4, 2, 2]


def test_schedules_are_found_by_their_properties(model: Path, tmp_path: Path) -> None:
    run = df.compile(model, pes=[4, 2], expand={"MatMul": ["mv", "op"]})
    best = run.schedule(pes=4)
    other = run.schedule(pes=2, expansions={"MatMul": "op"})

    assert best.result is run.report.best[4]
    assert best.figures.makespan_cycles == best.schedule.makespan_cycles == best.result.schedule.makespan_cycles
    assert (other.result.pes, other.result.expansions["MatMul"]) == (2, "op")
    assert run.schedule().figures.makespan_cycles == min(one.figures.makespan_cycles or 0 for one in run.schedules)
    with pytest.raises(df.UserError, match=r"schedule: found none like that \(there are: pes=4 partition=best .*"):
        run.schedule(pes=3)
    chart = best.gantt()
    chart.save(tmp_path / "gantt.svg")
    assert chart._repr_svg_() == (tmp_path / "gantt.svg").read_text()
    assert chart.svg.startswith("<svg")
    assert repr(chart) == f"<Picture: SVG of {len(chart.svg.encode()):,} bytes>"
    assert repr(best).startswith("<ScheduleResult: pes=4 partition=best ")
    assert len(repr(best)) < 200
    assert json.loads(best.trace())["traceEvents"]


def test_pictures_are_those_of_the_command(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gantt, trace = tmp_path / "gantt.svg", tmp_path / "trace.json"
    printed(capsys, str(model), "--pes", "4", "--gantt", str(gantt), "--trace", str(trace))
    found = df.compile(model, pes=4).schedule()

    assert (found.gantt().svg, found.trace()) == (gantt.read_text(), trace.read_text())


def test_a_dag_gives_what_the_command_prints(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "chain.dag"
    printed(capsys, "generate", "chain", "--size", "6", "-o", str(file))
    options = ("--pes", "2,3", "--partition", "sb-rlx,best", "--simulate", "--fifo", "1", "--timing", "exact")
    expected = printed(capsys, "schedule", str(file), *options)
    run = df.schedule(file, pes=[2, 3], partition=["sb-rlx", "best"], simulate=True, fifo=1, timing="exact")
    again = df.schedule(
        run.schedules[0].dag, pes="2,3", partition="sb-rlx,best", simulate=True, fifo="1", timing="exact"
    )

    assert run.table == again.table == expected
    assert str(run) == run.table
    assert run.schedule(partition="best", pes=2).schedule.partition == "best"


def test_a_design_gives_what_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    run = df.solve(DESIGN, compat="dfmodel", sharding_objective="time")
    words = (str(DESIGN), "--compat", "dfmodel", "--sharding-objective", "time")

    assert run.table == printed(capsys, *words)
    assert without_seconds(run.render("json")) == without_seconds(printed(capsys, *words, "--format", "json"))
    assert run.graph()._repr_svg_().startswith("<svg")
    assert dict(run.placements()) == {}
    assert run._repr_html_().count("<table>") == 4


def test_an_onnx_model_in_memory_is_the_one_in_the_file(model: Path) -> None:
    run = df.compile(onnx.load(str(model)), pes=4, name="small", verify=True)

    assert run.report.results[0].verification is not None
    assert without_seconds(run.render("json")) == without_seconds(df.compile(model, pes=4, verify=True).render("json"))


def test_a_module_in_memory_is_compiled_and_stays_as_it_was() -> None:
    import torch

    class Scaled(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.drop = torch.nn.Dropout(0.5)
            self.line = torch.nn.Linear(4, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            found: torch.Tensor = torch.relu(self.line(self.drop(x)))
            return found

    module = Scaled()
    module.line.eval()
    run = df.compile(module, example_inputs=torch.ones(2, 4), pes=4, name="scaled", verify=True)

    verified = run.report.results[0].verification
    assert verified is not None
    assert verified.max_abs_error < 1e-6
    assert run.report.model.name == "scaled"
    assert (module.training, module.drop.training, module.line.training) == (True, True, False)
    with pytest.raises(df.UserError, match=r"model: found a torch\.nn\.Module without example_inputs"):
        df.compile(module, pes=4)
    with pytest.raises(df.UserError, match=r"scaled.*: the model cannot be exported to ONNX"):
        df.compile(module, example_inputs=torch.ones(2, 5), pes=4, name="scaled")
    assert module.training


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pes": 0}, "--pes: found '0' against a positive integer"),
        ({"pes": []}, "--pes: found '' against a positive integer"),
        ({"pes": 4, "expand": {"MatMul": "nope"}}, "MatMul has no 'nope'"),
        ({"pes": 4, "expand": ["MatMul"]}, "--expand: found 'MatMul' against"),
        ({"pes": 4, "volumes": "exakt"}, r"--volumes 'exakt': unknown \(did you mean 'exact'\?\)"),
        ({"pes": 4, "timing": "slow"}, "--timing 'slow': unknown"),
        ({"pes": 4, "overlap": "full"}, "--overlap 'full': unknown"),
        ({"pes": 4, "partition": "sb"}, "--partition 'sb': unknown"),
        ({"pes": 4, "solver": "none"}, "--solver 'none': unknown"),
        ({"pes": 4, "shapes": {"x": (-1,)}}, "--shape x: found '-1' against an integer from 0"),
        ({"pes": 4, "example_inputs": 1}, "example_inputs: given beside the file"),
    ],
)
def test_wrong_options_are_errors_of_the_user(model: Path, options: dict[str, object], message: str) -> None:
    with pytest.raises(df.UserError, match=message):
        df.compile(model, **options)


def test_wrong_values_and_files_are_errors_of_the_user(model: Path, tmp_path: Path) -> None:
    with pytest.raises(df.UserError, match="model: found a value of type int against a file"):
        df.compile(7, pes=4)
    with pytest.raises(df.UserError, match="example_inputs: given beside an ONNX model"):
        df.compile(onnx.load(str(model)), pes=4, example_inputs=())
    with pytest.raises(df.UserError, match="no such file"):
        df.compile(tmp_path / "missing.onnx", pes=4)
    with pytest.raises(df.UserError, match=r"missing\.dag: No such file"):
        df.schedule(tmp_path / "missing.dag", pes=4)
    with pytest.raises(df.UserError, match="--sharding-objective 'bites': unknown"):
        df.solve(DESIGN, sharding_objective="bites")
    with pytest.raises(df.UserError, match="format 'xml': unknown"):
        df.solve(DESIGN).render("xml")


def test_every_call_gives_a_value_of_one_line_that_a_notebook_shows(model: Path, tmp_path: Path) -> None:
    runs = (
        df.compile(model, pes=[4, 2]), df.schedule("tests/goldens/softmax.dag", pes=[4, 8]), df.solve(DESIGN),
        df.explore(model, pes=4, on_chip_memory="1kB", tries=2, jobs=1, cache=tmp_path / "c.cache"),
        df.llm("llama-3.1-8b", "h100-sxm", decode="4096x8"), df.bounds(gemm="64,64,64", buffers=["1k", 4096]),
    )  # fmt: skip
    (tmp_path / "a.json").write_text(runs[0].report_json)
    for run in (*runs, df.compare(runs[0], tmp_path / "a.json")):
        assert len(repr(run).splitlines()) == 1
        assert 20 < len(repr(run)) < 300
        assert run._repr_html_().isprintable() or "<" in run._repr_html_()
        assert len(run._repr_html_()) < 100_000
        assert "<script" not in run._repr_html_()
        assert json.loads(run.report_json) == run.to_record()


def test_the_answer_of_each_call_has_its_figures(pairs: dict[str, tuple[Shown, Shown]]) -> None:
    explored, design = pairs["explore"][1], pairs["solve"][0]
    fastest = min(explored.to_rows(), key=lambda row: float(str(row["makespan_cycles"])))

    assert explored.answer.endswith(f"the fastest {fastest['makespan_cycles']:,} cycles on {fastest['pes']} PEs")
    assert pairs["compare"][0].answer.startswith(f"{len(pairs['compare'][0].to_rows())} differences among ")
    assert design.answer == "fft_a100_1024: 0.3546 s on 1,024 chips"


def test_the_module_shows_what_there_is_to_call() -> None:
    assert dir(df) == sorted(df.__all__)
    for name in df.__all__:
        assert callable(getattr(df, name)) or name == "__version__"


def test_every_keyword_of_every_call_has_a_type() -> None:
    for call in (bounds, df.compare, df.compile, df.explore, df.llm, df.open_page, df.run, df.schedule, df.solve):
        signature = inspect.signature(call)
        assert all(one.annotation is not one.empty for one in signature.parameters.values()), call
        assert signature.return_annotation is not signature.empty
        assert not any(one.kind is one.VAR_KEYWORD for one in signature.parameters.values()), call


def test_comparing_two_runs_names_what_changed(model: Path) -> None:
    one, other = (df.compile(model, pes=4, expand={"MatMul": name}) for name in ("mv", "op"))

    assert any(row["figure"] == "time_s" for row in df.compare(one, other).to_rows())
    assert not df.compare(one, one).to_rows()
    with pytest.raises(df.UserError, match="compare: found 1 reports against two or more"):
        df.compare(one)


def test_a_page_is_written_and_opened(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    run = df.compile(model, pes=4)

    files = [df.open_page(run, tmp_path / "named.html"), df.open_page(run)]
    assert opened == [file.as_uri() for file in files]
    assert all(file.is_relative_to(tmp_path) and "<!doctype html>" in file.read_text().lower() for file in files)


@pytest.mark.parametrize("pes", [4, [2, 8]])
def test_kinds_of_columns_do_not_depend_on_values(model: Path, pes: int | list[int]) -> None:
    kinds = df.compile(model, pes=pes).to_pandas().dtypes.astype(str)

    assert set(kinds) <= {"Float64", "boolean", "string"}
    assert (kinds["mapping_gap"], kinds["makespan_cycles"], kinds["partition"]) == ("Float64", "Float64", "string")


@pytest.fixture(scope="module")
def pairs(model: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Shown, Shown]]:
    """Two answers of each call: of the first some figures are missing that the second has, or they are integers."""
    cache = tmp_path_factory.mktemp("cache") / "c.cache"
    runs = [df.compile(model, pes=4, expand={"MatMul": names}) for names in ("mv", ["mv", "op"])]
    explored = [
        df.explore(model, pes=pes, on_chip_memory=memory, tries=3, jobs=1, cache=cache)
        for pes, memory in ((4, "1kB"), ([4, 8], ["1kB", "64kB"]))
    ]
    studies = [
        df.llm("llama-3.1-8b", "h100-sxm", decode="4096x8", time=time, sweep=sweep)
        for time in ("roofline", "tiling")
        for sweep in (None, "batch=1,100000")
    ]
    dag = "tests/goldens/softmax.dag"
    return {
        "bounds": (
            bounds(chain="64,64,64,64", buffers=16),
            bounds(chain="64,64,64,64", buffers=["1k", 65536], within=1.5),
        ),
        "compare": (df.compare(runs[0], runs[1]), df.compare(runs[1], runs[0])),
        "compile": (runs[0], runs[1]),
        "explore": (explored[0], explored[1]),
        "llm": (studies[0], studies[2]),
        "llm with a sweep": (studies[1], studies[3]),
        "schedule": (df.schedule(dag, pes=4), df.schedule(dag, pes=[4, 8], objective="fifo")),
        "solve": (df.solve(DESIGN), df.solve(DESIGN, compat="dfmodel")),
    }


@pytest.mark.parametrize(
    "call", ["bounds", "compare", "compile", "explore", "llm", "llm with a sweep", "schedule", "solve"]
)
def test_kinds_of_columns_are_the_same_where_values_are_missing(
    pairs: dict[str, tuple[Shown, Shown]], call: str
) -> None:
    one, other = (run.to_pandas().dtypes.astype(str).to_dict() for run in pairs[call])

    assert {name: one[name] for name in one if name in other} == {name: other[name] for name in one if name in other}
    assert set(one.values()) | set(other.values()) <= {"Float64", "boolean", "string"}
    assert len(one.keys() & other.keys()) > 5


def test_a_sweep_is_in_every_form() -> None:
    run = df.llm("llama-3.1-8b", "h100-sxm", decode="4096x8", sweep="batch=1,8,100000")

    assert [row["degrees"] for row in run.to_rows()] == ["one chip", "one chip", "does not fit"]
    assert run.text("csv").startswith("change,value,step,time_ms")
    assert json.loads(run.report_json)["sweep"] == run.to_rows()
    assert "does not fit" in run.table
    with pytest.raises(
        df.UserError, match=r"llm: found from_graph against a study of kernels \(dfcompile llm --from-g"
    ):
        df.llm("llama-3.1-8b", "h100-sxm", decode="4096x8", from_graph=True)


@pytest.mark.slow
def test_what_a_notebook_shows_of_a_large_model_is_small() -> None:
    run = df.compile("benchmarks/models/encoder_layer.py", pes=512)

    assert len(run._repr_html_()) < 30_000
    assert "<script" not in run._repr_html_()
    assert repr(run).startswith("<ModelRun: encoder_layer: 28 of 28 operators lowered; ")
    assert len(repr(run).splitlines()) == 1


def test_rows_become_a_data_frame(model: Path) -> None:
    frame = df.compile(model, pes=[4, 2]).to_pandas()

    assert frame["pes"].tolist() == [4, 2]
    assert {"makespan_cycles", "mapping_gap", "energy_j"} <= set(frame.columns)


def test_without_pandas_one_line_says_how_to_get_it(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = df.compile(model, pes=4)
    monkeypatch.setitem(sys.modules, "pandas", None)

    with pytest.raises(df.UserError, match=r"to_pandas: needs pandas, which is not installed \(pip install pandas\)"):
        run.to_pandas()
