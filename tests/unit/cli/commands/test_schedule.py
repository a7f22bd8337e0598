"""`dfcompile schedule`: schedules of a DAG file, compared, replayed and drawn."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from dfcompile.canonical_dag import critical_path, dag_to_json, format_dag, streaming_depth, total_work
from dfcompile.cli import main as cli
from dfcompile.generators.canonical_dags import cholesky, gaussian
from dfcompile.report.figures import report_schema
from dfcompile.scheduler import ScheduleOptions, lower_bound_cycles, schedule
from tests.report_schemas import validate

Capture = pytest.CaptureFixture[str]
Results = list[dict[str, Any]]  # plain JSON

DAG = gaussian(5, 64, 1)

# The direct way from 'fork' to 'join' has to hold all elements while 'sum' waits for the last of them.
RECONVERGENT = """\
dfcompile-dag/1 reconvergent
pseudo_source in
task fork
task sum
task spread
task join
pseudo_sink out
edge in -> fork volume=8
edge fork -> sum volume=8
edge sum -> spread volume=1
edge spread -> join volume=8
edge fork -> join volume=8
edge join -> out volume=8
"""


@pytest.fixture(autouse=True)
def _in_folder_with_dags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dag.json").write_text(dag_to_json(DAG))
    (tmp_path / "small.json").write_text(dag_to_json(gaussian(4, 64, 1)))
    (tmp_path / "reconvergent.dag").write_text(RECONVERGENT)


def printed(capture: Capture, *words: str) -> str:
    status = cli.main(["schedule", *words])
    found = capture.readouterr()
    assert (status, found.err) == (0, "")
    return found.out


def results(capture: Capture, *words: str) -> Results:
    report = json.loads(printed(capture, *words, "--format", "json"))
    validate(report, report_schema)
    found: Results = report["results"]
    return found


def test_report_has_bounds_and_depths(capsys: Capture) -> None:
    (found,) = results(capsys, "dag.json", "--pes", "4")
    figures = found["schedule"]

    assert (found["pes"], found["expansions"], "mapping" in found) == (4, {}, False)
    assert figures["total_work_cycles"] == total_work(DAG)
    assert figures["critical_path_cycles"] == critical_path(DAG)
    assert figures["streaming_depth_cycles"] == streaming_depth(DAG)
    assert figures["lower_bound_cycles"] == lower_bound_cycles(DAG, 4)
    assert figures["sslr"] == pytest.approx(figures["makespan_cycles"] / streaming_depth(DAG))
    assert figures["makespan_cycles"] >= figures["lower_bound_cycles"]


def test_partitioners_are_compared_per_number_of_elements_and_the_best_is_marked(capsys: Capture) -> None:
    found = results(capsys, "small.json", "--pes", "2,3", "--partition", "work-ordered,sb-lts,best")
    table = printed(capsys, "small.json", "--pes", "2,3", "--partition", "work-ordered,sb-lts,best")
    marked = [line.split()[:3] for line in table.splitlines() if " * " in line]

    assert [(each["pes"], each["schedule"]["partition"]) for each in found] == [
        (pes, name) for pes in (2, 3) for name in ("work-ordered", "sb-lts", "best")
    ]
    for pes in (2, 3):
        fastest = min(
            (each for each in found if each["pes"] == pes), key=lambda each: each["schedule"]["makespan_cycles"]
        )
        assert marked.count([str(pes), "*", fastest["schedule"]["partition"]]) == 2  # in the schedule and the bounds


def test_options_reach_the_scheduler(capsys: Capture) -> None:
    rlx = ("dag.json", "--pes", "4", "--partition", "sb-rlx")
    (plain,) = results(capsys, *rlx)
    (free,) = results(capsys, *rlx, "--no-barrier")
    (steady,) = results(capsys, *rlx, "--timing", "steady", "--simulate")
    (exact,) = results(capsys, *rlx, "--simulate")
    (best,) = results(capsys, "dag.json", "--pes", "4")
    (held,) = results(capsys, "dag.json", "--pes", "4", "--partition", "best", "--barrier")

    assert [each["schedule"]["barriers"] for each in (plain, free, best, held)] == [True, False, False, True]
    assert free["schedule"]["makespan_cycles"] == schedule(DAG, ScheduleOptions(4, barrier=False)).makespan_cycles
    assert (steady["schedule"]["timing"], exact["schedule"]["timing"]) == ("steady", "exact")
    assert exact["schedule"] == plain["schedule"]
    assert exact["simulation"]["makespan_cycles"] == exact["schedule"]["makespan_cycles"]


def test_default_is_the_best_of_a_budget_and_more_effort_is_never_longer(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "cholesky.json").write_text(dag_to_json(cholesky(4, 64, 2)))
    words = ("cholesky.json", "--pes", "8")
    effort = {name: results(capsys, *words, "--effort", name) for name in ("quick", "default", "high")}
    plain = results(capsys, *words)
    cycles = {name: [each["schedule"]["makespan_cycles"] for each in found] for name, found in effort.items()}

    assert plain == effort["default"]
    assert {each["schedule"]["partition"] for each in plain} == {"best"}
    assert all(high <= default <= quick for high, default, quick in zip(*reversed(cycles.values()), strict=True))


def test_simulation_says_how_long_tasks_wait(capsys: Capture) -> None:
    (found,) = results(capsys, "reconvergent.dag", "--pes", "4", "--simulate")
    table = printed(capsys, "reconvergent.dag", "--pes", "4", "--simulate")

    assert found["simulation"]["makespan_cycles"] == found["schedule"]["makespan_cycles"]
    assert found["simulation"]["deadlock"] == []
    assert "simulation" in table
    assert "deadlock" not in table


def test_deadlock_names_who_waits_for_whom(capsys: Capture) -> None:
    (found,) = results(capsys, "reconvergent.dag", "--pes", "4", "--fifo", "1", "--simulate")
    table = printed(capsys, "reconvergent.dag", "--pes", "4", "--fifo", "1", "--simulate")

    assert found["simulation"]["makespan_cycles"] is None
    assert found["simulation"]["deadlock"] == [
        "'fork' waits for a place for an element to 'join'",
        "'join' waits for an element from 'spread'",
        "'spread' waits for an element from 'sum'",
        "'sum' waits for an element from 'fork'",
    ]
    assert "deadlock on 4 PEs: 'fork' waits for a place" in table
    figures = found["schedule"]
    assert [figures[name] for name in ("makespan_cycles", "gap", "speedup", "pe_utilization", "sslr")] == [None] * 5


def test_a_deadlock_is_never_the_best(capsys: Capture) -> None:
    words = ("reconvergent.dag", "--pes", "4", "--partition", "work-ordered,sb-rlx", "--fifo", "1")
    assert " * " not in printed(capsys, *words)  # both end in a deadlock
    ends = printed(capsys, *words[:-3], "sb-lts,sb-rlx", "--fifo", "1", "--pes", "2")

    (marked,) = [line.split()[:3] for line in ends.splitlines() if " * " in line][:1]
    assert marked == ["2", "*", "sb-lts"]


def test_minimal_fifos_are_no_larger_and_no_slower(capsys: Capture) -> None:
    words = ("reconvergent.dag", "--pes", "4", "--simulate")
    (rule,), (minimal,) = results(capsys, *words, "--fifo", "rule"), results(capsys, *words, "--fifo", "minimal")

    assert minimal["schedule"]["fifo_elements"] < rule["schedule"]["fifo_elements"]
    assert minimal["simulation"]["makespan_cycles"] <= rule["simulation"]["makespan_cycles"]


def test_csv_tells_scheduled_and_simulated_makespans_apart(capsys: Capture) -> None:
    head, row = printed(capsys, "reconvergent.dag", "--pes", "4", "--simulate", "--format", "csv").splitlines()
    figures = dict(zip(head.split(","), row.split(","), strict=True))

    assert figures["makespan_cycles"] == figures["simulated_makespan_cycles"] == "18"


def test_trace_and_chart_are_of_the_one_schedule(capsys: Capture, tmp_path: Path) -> None:
    table = printed(capsys, "dag.json", "--pes", "4", "--trace", "out.json", "--gantt", "out.svg")
    trace = json.loads((tmp_path / "out.json").read_text())

    assert f"{trace['otherData']['makespan_cycles']:,}" in table
    assert ET.parse(tmp_path / "out.svg").getroot().tag.endswith("svg")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--partition", "sb-rlx,beast"], "--partition 'beast': unknown (did you mean 'best'?)"),
        (["--partition", "best,best"], "--partition: best is given twice"),
        (["--partition", "best,"], "--partition: found 'best,' against NAME[,NAME…]"),
        (["--timing", "real"], "'real' is not one of 'steady', 'exact'"),
        (["--fifo", "0"], "--fifo: found '0' against a positive integer"),
        (["--fifo", "tiny"], "--fifo: found 'tiny' against in-flight, rule, minimal or a number of elements"),
        (["--partition", "best,sb-lts", "--trace", "t.json"], "--trace: found 2 schedules against one"),
        (["--gantt", "out", "--trace", "out"], "output 'out': given for two things against one"),
        (["--gantt", "missing/out.svg"], "no folder"),
    ],
)
def test_wrong_options_of_a_schedule_are_one_line(
    words: list[str], expected: str, capsys: Capture, tmp_path: Path
) -> None:
    before = sorted(tmp_path.iterdir())
    status = cli.main(["schedule", "dag.json", "--pes", "4", *words])
    found = capsys.readouterr()

    assert (status, found.out, found.err.count("\n")) == (1, "", 1)
    assert expected in found.err
    assert sorted(tmp_path.iterdir()) == before


def test_chart_of_too_many_tasks_is_refused_before_anything_is_scheduled(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "large.dag").write_text(format_dag(cholesky(50)))
    status = cli.main(["schedule", "large.dag", "--pes", "4", "--gantt", "out.svg"])

    assert status == 1
    assert "--gantt: found 22,100 tasks against at most 20,000" in capsys.readouterr().err
    assert not (tmp_path / "out.svg").exists()


def test_front_has_the_options_that_give_each_schedule(capsys: Capture) -> None:
    words = ("small.json", "--pes", "2,8", "--front", "--partition", "sb-rlx")
    found, table = results(capsys, *words), printed(capsys, *words)

    assert [each["pes"] for each in found] == sorted(each["pes"] for each in found)
    assert {each["pes"] for each in found} == {2, 8}
    for each in found:
        figures = each["schedule"]
        (again,) = results(capsys, "small.json", "--pes", str(each["pes"]), *figures["choice"].split())
        assert "choice" not in again["schedule"]
        assert again["schedule"] == {name: value for name, value in figures.items() if name != "choice"}
    assert "* least makespan of its number of PEs" in table


def test_smallest_fifos_within_a_slack_are_chosen(capsys: Capture) -> None:
    words = ("dag.json", "--pes", "8", "--no-barrier", "--partition", "sb-rlx")
    (short,) = results(capsys, *words)
    (lean,) = results(capsys, *words, "--objective", "fifo")
    (none,) = results(capsys, *words, "--objective", "fifo", "--slack", "0")
    table = printed(capsys, *words, "--objective", "fifo")
    cost = [(each["schedule"]["makespan_cycles"], each["schedule"]["fifo_elements"]) for each in (short, lean, none)]

    assert cost[1][0] <= 1.1 * cost[0][0]
    assert cost[1][1] < cost[0][1]
    assert cost[2][0] <= cost[0][0]
    assert f"chosen: {lean['schedule']['choice']}" in table


def test_no_fifo_is_larger_than_allowed(capsys: Capture) -> None:
    words = ("dag.json", "--pes", "8", "--no-barrier", "--partition", "sb-rlx")
    (free,), (limited,) = results(capsys, *words), results(capsys, *words, "--max-fifo", "1")
    streams = limited["schedule"]["fifo_elements"]

    assert streams < free["schedule"]["fifo_elements"]
    assert streams <= DAG.edges_count


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--max-fifo", "0"], "--max-fifo: found '0' against a positive integer"),
        (["--max-fifo", "2", "--fifo", "8"], "fifo: found 8 elements against at most 2 (max-fifo)"),
        (["--slack", "5"], "--slack: found 5 % without --objective fifo"),
        (["--objective", "fifo", "--slack", "5%"], "--slack: found '5%' against a percentage from 0 to 1000"),
        (["--front", "--objective", "fifo"], "--front: found --objective fifo, which chooses one"),
        (["--front", "--gantt", "x.svg"], "--gantt: found a front of schedules against one (leave out --front)"),
    ],
)
def test_wishes_that_do_not_fit_are_refused(capsys: Capture, words: list[str], message: str) -> None:
    status = cli.main(["schedule", "dag.json", "--pes", "4", *words])
    found = capsys.readouterr()

    assert (status, found.out) == (1, "")
    assert message in found.err
    assert found.err.count("\n") == 1
