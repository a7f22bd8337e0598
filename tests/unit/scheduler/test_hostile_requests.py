"""Requests that ask for too much, or for what cannot be: answered as far as possible, never with a crash."""

import json
import tracemalloc
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from dfcompile.canonical_dag.forms.json_form import dag_to_json
from dfcompile.cli import main as cli
from dfcompile.generators.canonical_dags import gaussian
from dfcompile.scheduler import ScheduleOptions, schedule, schedule_non_streaming

# All that JSON can put into a name; quoted, as brackets are members.
NAME = json.dumps("a\x01\x1b[31m<b>&\"'\n\u2028\ufffe\U0001f600")


@pytest.mark.parametrize("partition", ["sb-rlx", "sb-lts", "work-ordered", "best"])
@pytest.mark.parametrize("barrier", [True, False])
def test_more_processing_elements_than_tasks_cost_nothing(partition: str, barrier: bool) -> None:
    dag = gaussian(4, 64, 1)
    tracemalloc.start()
    found = schedule(dag, ScheduleOptions(10**6, partition, barrier=barrier))
    baseline = schedule_non_streaming(dag, 10**6)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 20e6
    assert baseline.end.tolist() == schedule_non_streaming(dag, dag.tasks_count).end.tolist()
    enough = schedule(dag, ScheduleOptions(dag.tasks_count, partition, barrier=barrier))
    assert found.makespan_cycles == enough.makespan_cycles


def test_names_of_any_characters_leave_picture_and_trace_well_formed(tmp_path: Path) -> None:
    record = {
        "format": "dfcompile-dag/1",
        "name": json.loads(NAME),
        "nodes": [{"nodes": NAME, "origin": json.loads(NAME)}, {"nodes": "b"}],
        "edges": [{"source": NAME, "target": "b", "volume": 4}],
    }
    (tmp_path / "dag.json").write_text(json.dumps(record))
    picture, trace = tmp_path / "picture.svg", tmp_path / "trace.json"
    words = ["schedule", str(tmp_path / "dag.json"), "--pes", "2", "--gantt", str(picture), "--trace", str(trace)]

    assert cli.main([*words, "-o", str(tmp_path / "report.txt")]) == 0
    titles = [str(title.text) for title in ET.parse(picture).iter("{http://www.w3.org/2000/svg}title")]
    assert len(titles) == 3
    assert titles[0].startswith("a\ufffd\ufffd[31m<b>&\"'\\n\\u2028\ufffd\U0001f600: 0 to 4")
    assert titles[2].startswith("a\ufffd\ufffd[31m<b>&\"'\\n\\u2028\ufffd\U0001f600 \u2192 b: 4 elements")
    assert json.loads(NAME) in [event["name"] for event in json.loads(trace.read_text())["traceEvents"]]


@pytest.mark.parametrize("option", ["-o", "--trace", "--gantt"])
def test_file_that_is_read_is_not_written_over(option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "dag.json"
    text = dag_to_json(gaussian(4, 16, 1))
    file.write_text(text)
    (tmp_path / "link").symlink_to(file)

    assert cli.main(["schedule", str(file), "--pes", "4", option, str(tmp_path / "link")]) == 1
    assert capsys.readouterr().err == (
        f"dfcompile: error: output {str(tmp_path / 'link')!r}: found a file that this run reads against another file\n"
    )
    assert file.read_text() == text
