"""``dfcompile schedule`` of foreign designs: sizes of channels, stalls and deadlocks, in every form."""

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

import dfcompile as df
from dfcompile.actor_graphs.graph import ActorGraph
from dfcompile.api.schedule_dag import schedule_actors
from dfcompile.audit.actor_graphs import audit_actors
from dfcompile.cli import main as cli
from dfcompile.errors import VerificationError
from tests.unit.actor_graphs.graphs import EXAMPLE, MODEM, sdf3_of

Capture = pytest.CaptureFixture[str]


def said(capsys: Capture, file: Path, *options: str, status: int = 0) -> str:
    assert cli.main(["schedule", str(file), *options]) == status
    captured = capsys.readouterr()
    return captured.out if status == 0 else captured.err


@pytest.fixture
def example(tmp_path: Path) -> Path:
    (tmp_path / "example.xml").write_text(sdf3_of(EXAMPLE))
    return tmp_path / "example.xml"


def test_sizes_are_minimal_or_as_stated(capsys: Capture, example: Path) -> None:
    minimal = "example has a period of 4 cycles with 10 tokens in its channels, as with channels of any size; no single"
    slow = (
        "example has a period of 7 cycles with 8 tokens in its channels, 1.75 times the least: full channels stall it."
    )
    assert said(capsys, example, "--pes", "3").startswith(minimal)
    assert said(capsys, example, "--pes", "3", "--fifo", "4").startswith(slow)
    deadlock = said(capsys, example, "--pes", "3", "--fifo", "3", "-v")
    assert deadlock.startswith("example ends in a deadlock: 'a' waits for places for tokens to 'b' in 'c1'; 'b' waits")
    assert all(words in deadlock for words in ("deadlock       4", "actors", "[stuijk06]"))
    example.write_text(example.read_text().replace("<sdfProperties>", '<sdfProperties><channelProperties channel="c1">'
        '<bufferSize sz="4"/></channelProperties>'))  # fmt: skip
    assert "channel 'c2': found no size against one, as others have" in said(capsys, example, "--pes", "3", status=1)
    assert said(capsys, example, "--pes", "3", "--fifo", "minimal").startswith(minimal)


def test_json_rows_and_the_page_have_it(capsys: Capture, example: Path, tmp_path: Path) -> None:
    page, report = tmp_path / "page.html", tmp_path / "report.json"
    said(capsys, example, "--pes", "4", "--html", str(page), "--format", "json", "-o", str(report))
    record = json.loads(report.read_text())

    assert (record["schema"], record["sizes"]) == ("dfcompile-actors/1", "minimal")
    assert (record["period_cycles"], record["least_period_cycles"], record["first_cycles"]) == (4, 4, 8)
    assert [channel["size_tokens"] for channel in record["channels"]] == [7, 3]
    assert [actor["firings"] for actor in record["actors"]] == [3, 2, 1]
    assert "4 cycles an iteration in the long run, with 10 tokens in its channels." in page.read_text()
    rows = said(capsys, example, "--pes", "4", "--format", "csv").splitlines()
    assert rows == ["name,source,written,read,target,tokens,size_tokens", "c1,a,2,3,b,0,7", "c2,b,1,2,c,0,3"]
    other = tmp_path / "other.json"
    other.write_text(said(capsys, example, "--pes", "4", "--fifo", "4", "--format", "json"))
    assert cli.main(["compare", str(report), str(other)]) == 0
    assert "period_cycles" in capsys.readouterr().out


def test_a_list_of_nodes_stalls_if_its_fifos_are_small(capsys: Capture, tmp_path: Path) -> None:
    nodes = [{"name": name, "cycles": 64, "latency": latency} for name, latency in (("a", 0), ("b", 20), ("c", 0))]
    edges = [{"source": ends[0], "target": ends[1], "words": 16, "depth": 4} for ends in ("ab", "bc", "ac")]
    file = tmp_path / "nodes.json"
    file.write_text(json.dumps({"format": "dfcompile-nodes/1", "name": "bypass", "nodes": nodes, "edges": edges}))

    stalled = said(capsys, file, "--pes", "3")
    assert "full channels stall it." in stalled
    assert "bypass has a period of 64 cycles" in said(capsys, file, "--pes", "3", "--fifo", "minimal")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--pes", "2"], "--pes: found 2 against one number, 3 or more (an element for each actor)"),
        (["--pes", "3,4"], "--pes: found 3, 4 against one number"),
        (["--pes", "3", "--simulate"], "--simulate: found with a graph of actors, against --pes, --fifo"),
        (["--pes", "3", "--what-if", "ports=1"], "--what-if: found with a graph of actors"),
        (["--pes", "3", "--show", "bounds"], "--show: found with a graph of actors"),
        (["--pes", "3", "--fifo", "rule"], "--fifo: found 'rule' against minimal or a number"),
    ],
)
def test_other_options_are_refused(capsys: Capture, example: Path, options: list[str], message: str) -> None:
    assert message in said(capsys, example, *options, status=1)


def test_names_cannot_write_to_the_terminal(capsys: Capture, tmp_path: Path) -> None:
    name, file = "a\n\x1b[31m", tmp_path / "hostile.json"
    nodes = [{"name": each, "cycles": 4} for each in (name, "b")]
    edges = [{"source": name, "target": "b", "words": 4, "depth": 1}]
    file.write_text(json.dumps({"format": "dfcompile-nodes/1", "name": name, "nodes": nodes, "edges": edges}))
    printed = said(capsys, file, "--pes", "2", "-v")

    assert printed.startswith("a\\n\\x1b[31m has a period")
    assert "\x1b" not in printed


def test_python_reads_the_same_files(example: Path, tmp_path: Path) -> None:
    run = df.schedule_actors(example, fifo=4)

    assert run.answer.startswith("example has a period of 7 cycles")
    assert run.files == (example,)
    (tmp_path / "other.dag").write_text("dfcompile-dag/1 other\n")
    with pytest.raises(df.UserError, match=r"other\.dag: found neither XML of SDF3 nor a list of nodes"):
        df.schedule_actors(tmp_path / "other.dag")


def test_a_wrong_file_is_named(capsys: Capture, example: Path) -> None:
    example.write_text(example.read_text().replace('time="2"', ""))

    assert "example.xml: actor 'b': found executionTime '' against" in said(capsys, example, "--pes", "3", status=1)


@pytest.mark.parametrize("graph", [EXAMPLE, MODEM])
def test_the_audit_refuses_any_other_number(graph: ActorGraph) -> None:
    run = schedule_actors(graph)
    for name in ("period_cycles", "first_cycles", "size_tokens"):
        wrong = replace(run.report, **{name: getattr(run.report, name) + 1})
        with pytest.raises(VerificationError, match=f"report.{name}"):
            audit_actors(wrong, graph)
    channels, actors = run.report.channels, run.report.actors
    fewer = replace(channels[0], size_tokens=channels[0].size_tokens - 1)  # type: ignore[operator]
    for wrong in (
        replace(run.report, channels=(fewer, *channels[1:])),
        replace(run.report, channels=channels[1:]),
        replace(run.report, actors=(replace(actors[0], busy_cycles=99), *actors[1:])),
        replace(run.report, least_period_cycles=Fraction(1, 2)),
        replace(run.report, least_period_cycles=run.report.least_period_cycles + 1),
    ):
        with pytest.raises(VerificationError, match="report"):
            audit_actors(wrong, graph)
