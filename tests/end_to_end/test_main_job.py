"""The main job from the command line to the report, on the first convolution of LeNet."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

import pytest

from dfcompile.cli import main as cli
from dfcompile.host.outputs import PLAIN_WIDTH
from dfcompile.report.figures import report_schema
from tests.onnx_files import save_convolution
from tests.report_schemas import validate

Capture = pytest.CaptureFixture[str]


class Schedule(TypedDict):
    partition: str
    timing: str
    barriers: bool
    io_elements: int
    makespan_cycles: int
    tasks: int


class PerfectStreams(TypedDict):
    time_s: float


class Mapping(TypedDict):
    time_s: float
    bound_time_s: float
    ideal_time_s: float
    perfect_streams: PerfectStreams
    phases: list[dict[str, int]]


class Result(TypedDict):
    pes: int
    expansions: dict[str, str]
    schedule: Schedule
    mapping: Mapping
    verification: dict[str, float]


@pytest.fixture(scope="module")
def convolution(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_convolution(tmp_path_factory.mktemp("models") / "conv1.onnx")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A convolution of the same name on fewer pixels."""
    return save_convolution(tmp_path_factory.mktemp("models") / "conv1.onnx", shape=(1, 1, 12, 12))


def results(capture: Capture, *words: str) -> Sequence[Result]:
    status = cli.main([*words, "--format", "json"])
    printed = capture.readouterr()
    assert (status, printed.err) == (0, "")
    report = json.loads(printed.out)
    validate(report, report_schema)
    found: Sequence[Result] = report["results"]
    return found


# The published table of the first convolution: I/O in elements, makespan in cycles on 16 and 128 processing elements.
WHOLE_ARRAYS = {
    "mv": (129_474, 145_730, 35_138),
    "op": (222_636, 194_113, 107_713),
    "lmv": (150_636, 35_715, 35_715),
}
OWN_SHARES = {"mv": (26_738, 21_938), "op": (28_225, 24_769), "lmv": (35_735, 35_735)}

PUBLISHED = ("--expand", "published")
PLAIN = ("--partition", "sb-rlx", "--timing", "steady")  # the least work of a scheduler
KINDS = ("onnx", "library", "maps", "canonical", "schedule", "rtl")


def test_published_table_with_volumes_of_whole_arrays(convolution: Path, capsys: Capture) -> None:
    found = results(
        capsys, str(convolution), "--pes", "16,128", "--expand", "MatMul=mv,op,lmv", "--volumes", "array",
        "--partition", "sb-rlx", "--timing", "steady", "--system", "contention-free",
    )  # fmt: skip
    table = {(result["expansions"]["MatMul"], result["pes"]): result["schedule"] for result in found}

    for name, (io_elements, on_16, on_128) in WHOLE_ARRAYS.items():
        for pes, makespan in ((16, on_16), (128, on_128)):
            schedule = table[name, pes]
            assert (schedule["io_elements"], schedule["makespan_cycles"]) == (io_elements, makespan), (name, pes)


def test_exact_volumes_are_the_default(convolution: Path, capsys: Capture) -> None:
    words = ("--expand", "MatMul=mv,op,lmv", "--timing", "steady", "--partition", "sb-rlx")
    found = results(capsys, str(convolution), "--pes", "16,128", *words)
    table = {(result["expansions"]["MatMul"], result["pes"]): result["schedule"]["makespan_cycles"] for result in found}

    assert table == {
        (name, pes): makespan
        for name, makespans in OWN_SHARES.items()
        for pes, makespan in zip((16, 128), makespans, strict=True)
    }


def test_results_are_ordered_by_pes_then_by_combination(convolution: Path, capsys: Capture) -> None:
    found = results(capsys, str(convolution), "--pes", "128,16", "--expand", "MatMul=op,mv", *PLAIN)

    assert [(result["pes"], result["expansions"]["MatMul"]) for result in found] == [
        (128, "op"),
        (128, "mv"),
        (16, "op"),
        (16, "mv"),
    ]


def test_a_lowering_has_one_name_whether_an_operator_or_its_type_was_named(convolution: Path, capsys: Capture) -> None:
    for rule in ("conv1:MatMul=lmv", "MatMul=lmv"):
        (found,) = results(capsys, str(convolution), "--pes", "16", "--expand", rule, *PLAIN)

        assert (found["expansions"], found["schedule"]["makespan_cycles"]) == (
            {"Conv": "im2col", "MatMul": "lmv"},
            35_735,
        )


def test_expansions_of_one_operator_that_are_compared_are_named_beside_those_of_its_type(
    convolution: Path, capsys: Capture
) -> None:
    words = (str(convolution), "--pes", "16", "--expand", "conv1:MatMul=lmv,op", *PLAIN)

    assert [found["expansions"] for found in results(capsys, *words)] == [
        {"Conv": "im2col", "conv1:MatMul": "lmv"},
        {"Conv": "im2col", "conv1:MatMul": "op"},
    ]


def test_choice_may_be_lowered_away_by_another_combination(convolution: Path, capsys: Capture) -> None:
    words = ("--expand", "Conv=im2col,direct", "--expand", "MatMul=mv", *PLAIN)
    found = results(capsys, str(convolution), "--pes", "16", *words)

    assert [result["expansions"]["Conv"] for result in found] == ["im2col", "direct"]


def test_solvers_agree(convolution: Path, capsys: Capture) -> None:
    words = ("--pes", "16", *PUBLISHED, *PLAIN)
    by_dp, *others = (
        results(capsys, str(convolution), *words, "--solver", solver)[0]["mapping"]["perfect_streams"]["time_s"]
        for solver in ("dp", "cbc", "highs")
    )

    assert others == pytest.approx([by_dp, by_dp], rel=1e-6)


def test_lowered_model_agrees_with_the_reference(convolution: Path, capsys: Capture) -> None:
    (found,) = results(capsys, str(convolution), "--pes", "16", *PUBLISHED, *PLAIN, "--verify")

    assert 0 <= found["verification"]["max_abs_error"] < 1e-5


def test_stages_are_written_with_the_same_bytes_each_time(small: Path, capsys: Capture, tmp_path: Path) -> None:
    for run in ("first", "second"):
        (tmp_path / run).mkdir()
        words = [word for kind in KINDS for word in ("--emit", kind, str(tmp_path / run / kind))]
        results(capsys, str(small), "--pes", "16", *words)

    first, second = (
        {file.relative_to(tmp_path / run): file.read_bytes() for file in sorted((tmp_path / run).rglob("conv1*"))}
        for run in ("first", "second")
    )
    assert len(first) == 12
    assert first == second


def test_every_stage_can_be_written_and_the_dag_scheduled_again(
    convolution: Path, capsys: Capture, tmp_path: Path
) -> None:
    words = [word for kind in KINDS for word in ("--emit", kind, str(tmp_path / kind))]
    (before,) = results(capsys, str(convolution), "--pes", "16", *PUBLISHED, "--partition", "sb-rlx", *words)
    for dag in ("conv1.dag", "conv1.json"):
        (after,) = results(
            capsys, "schedule", str(tmp_path / "canonical" / dag), "--pes", "16", "--partition", "sb-rlx"
        )
        assert after["schedule"] == before["schedule"]

    schedule = json.loads((tmp_path / "schedule" / "conv1-16.json").read_text())
    phases = before["mapping"]["phases"]
    assert (schedule["partition"], schedule["timing"], schedule["barriers"]) == ("sb-rlx", "exact", True)
    assert schedule["makespan_cycles"] == phases[-1]["end_cycle"]  # what is written is what the mapping takes
    assert before["mapping"]["bound_time_s"] <= before["mapping"]["time_s"] == schedule["makespan_cycles"] * 1e-9
    assert {kind: sorted(file.suffix for file in (tmp_path / kind).glob("conv1*")) for kind in KINDS} == {
        "onnx": [".sdfg", ".txt"],
        "library": [".sdfg", ".txt"],
        "maps": [".sdfg", ".txt"],
        "canonical": [".dag", ".dot", ".json"],
        "schedule": [".json", ".json"],
        "rtl": [".sv"],
    }


def test_way_of_scheduling_is_chosen_and_reported(small: Path, capsys: Capture) -> None:
    found = [
        results(capsys, str(small), "--pes", "16", *PUBLISHED, *words)[0]["schedule"]
        for words in ((), ("--barrier",), ("--timing", "steady"), ("--partition", "sb-rlx"))
    ]

    assert [(each["barriers"], each["timing"], each["partition"]) for each in found] == [
        (False, "exact", "best"),
        (True, "exact", "best"),
        (False, "steady", "best"),
        (True, "exact", "sb-rlx"),
    ]
    assert found[0]["makespan_cycles"] < found[1]["makespan_cycles"] <= found[3]["makespan_cycles"]


def test_schedule_of_a_model_is_drawn_with_its_operators(small: Path, capsys: Capture, tmp_path: Path) -> None:
    words = ("--trace", str(tmp_path / "out.json"), "--gantt", str(tmp_path / "out.svg"))
    (found,) = results(capsys, str(small), "--pes", "16", *PUBLISHED, *words)
    events = json.loads((tmp_path / "out.json").read_text())["traceEvents"]
    tasks = [event for event in events if event["ph"] == "X" and "kernel" in event["args"]]

    assert len(tasks) == found["schedule"]["tasks"]
    cycles = found["mapping"]["phases"][-1]["end_cycle"]  # the schedule that fits the chip is drawn
    assert cycles >= found["schedule"]["makespan_cycles"]
    assert max(event["ts"] + event["dur"] for event in tasks) == cycles
    assert {event["args"]["kernel"] for event in tasks} >= {"conv1.im2col", "conv1.matmul", "conv1.bias"}
    assert f"{cycles:,} cycles" in (tmp_path / "out.svg").read_text()


@pytest.mark.parametrize("words", [("--pes", "16,128"), ("--pes", "16", "--expand", "MatMul=mv,op")])
def test_several_schedules_are_not_drawn_in_one_picture(
    words: tuple[str, ...], convolution: Path, capsys: Capture, tmp_path: Path
) -> None:
    status = cli.main([str(convolution), *words, "--gantt", str(tmp_path / "out.svg")])

    assert status == 1
    assert "--gantt: found 2 schedules against one" in capsys.readouterr().err
    assert not (tmp_path / "out.svg").exists()


def test_tables_fit_a_narrow_page(convolution: Path, capsys: Capture) -> None:
    status = cli.main([str(convolution), "--pes", "16,128"])

    text = capsys.readouterr().out
    assert status == 0
    assert "1 of 1 operators lowered" in text
    assert max(map(len, text.splitlines())) <= PLAIN_WIDTH
