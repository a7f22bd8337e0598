"""A DAG file that holds no canonical DAG ends with one line that names the node or the edge, at once."""

import json
import time
from pathlib import Path

import pytest

from dfcompile.cli import main as cli

Capture = pytest.CaptureFixture[str]

HEAD = "dfcompile-dag/1 bad\n"
CHAIN = HEAD + "task a\ntask b\ntask c\nedge a -> b volume=4\nedge b -> c volume=4\n"

TEXTS = {
    "cycle": (CHAIN + "edge c -> a volume=4\n", "node 'a': a cycle 'a' -> 'b' -> 'c' -> 'a' against an acyclic graph"),
    "own successor": (CHAIN + "edge b -> b volume=4\n", "edge 'b' -> 'b': a node that follows itself"),
    "unequal joins": (
        CHAIN + "edge a -> c volume=8\n",
        "node 'c': 4 elements on input edge 'b' -> 'c' against 8 on another",
    ),
    "unequal forks": (
        CHAIN + "task d\nedge a -> d volume=8\n",
        "node 'a': 4 elements on output edge 'a' -> 'b' against 8 on another",
    ),
    "volume of zero": (CHAIN + "edge a -> c volume=0\n", "line 7: edge 'a' -> 'c': volume 0 against 1 to"),
    "negative volume": (CHAIN + "edge a -> c volume=-4\n", "line 7: edge 'a' -> 'c': volume -4 against 1 to"),
    "fractional volume": (CHAIN + "edge a -> c volume=4.5\n", "line 7: edge 'a' -> 'c': volume '4.5' against a whole"),
    "volume of many digits": (CHAIN + f"edge a -> c volume={'9' * 5000}\n", "line 7: edge 'a' -> 'c': volume '9"),
    "huge volume": (CHAIN + f"edge a -> c volume={2**60}\n", f"line 7: edge 'a' -> 'c': volume {2**60} against 1 to"),
    "unknown kind": (HEAD + "elementwize a\n", "line 2: node 'a': kind 'elementwize' against task, elementwise"),
    "kind that volumes contradict": (
        HEAD + "upsampler a\ntask b\ntask c\nedge b -> a volume=4\nedge a -> c volume=4\n",
        "node 'a': kind upsampler against volume in 4, out 4 (elementwise)",
    ),
    "two nodes of one name": (CHAIN + "buffer b\n", "line 7: node 'b': given twice against once"),
    "two members of one name": (
        HEAD + "task a[0:4]\ntask a[3]\n",
        "line 3: node 'a[3]': given twice against once",
    ),
    "unknown node": (CHAIN + "edge a -> d volume=4\n", "line 7: unknown node 'd'"),
    "task without edges": (CHAIN + "task lonely\n", "node 'lonely': a task without edges against one edge or more"),
    "buffer to buffer": (
        HEAD + "buffer a\nbuffer b\nedge a -> b volume=4\n",
        "edge 'a' -> 'b': from buffer to buffer against a task at one end",
    ),
    "a thousand million tasks": (
        HEAD + "task a[0:1000000000]\n",
        "line 2: node 'a[0:1000000000]': 1000000000 nodes announced against at most 10000000",
    ),
    "a thousand million tasks in pieces": (
        HEAD + "".join(f"task a{place}[0:9999999]\n" for place in range(30)),
        "line 3: node 'a1[0:9999999]': 19999998 nodes announced against at most 10000000",
    ),
}

NODES = [{"nodes": name} for name in "abc"]
EDGES = [{"source": "a", "target": "b", "volume": 4}, {"source": "b", "target": "c", "volume": 4}]


def record(nodes: list[dict[str, object]], edges: list[dict[str, object]]) -> str:
    return json.dumps({"format": "dfcompile-dag/1", "nodes": [*NODES, *nodes], "edges": [*EDGES, *edges]})


RECORDS = {
    "cycle": (record([], [{"source": "c", "target": "a", "volume": 4}]), "a cycle 'a' -> 'b' -> 'c' -> 'a'"),
    "unequal joins": (
        record([], [{"source": "a", "target": "c", "volume": 8}]),
        "node 'c': 4 elements on input edge 'b' -> 'c' against 8 on another",
    ),
    "volume of zero": (
        record([], [{"source": "a", "target": "c", "volume": 0}]),
        "edges[2]: edge 'a' -> 'c': volume 0",
    ),
    "negative volume": (record([], [{"source": "a", "target": "c", "volume": -1}]), "edge 'a' -> 'c': volume -1"),
    "volume that is no number": (
        record([], [{"source": "a", "target": "c", "volume": "4"}]),
        "edges[2]: volume '4' against a whole number",
    ),
    "unknown kind": (record([{"nodes": "d", "kind": "adder"}], []), "nodes[3]: node 'd': kind 'adder' against task"),
    "two nodes of one name": (record([{"nodes": "a"}], []), "nodes[3]: node 'a': given twice against once"),
    "a thousand million tasks": (
        record([{"nodes": "d[0:1000000000]"}], []),
        "nodes[3]: node 'd[0:1000000000]': 1000000003 nodes announced against at most 10000000",
    ),
    "field of another name": (record([{"node": "d"}], []), "nodes[3]: unknown field 'node' (did you mean 'nodes'?)"),
    "deep nesting": ('{"format": ' + "[" * 100_000, "json: "),
    "number of many digits": ('{"format": ' + "9" * 5000 + "}", "json: "),
}


def refusal(capture: Capture, file: Path, *words: str) -> str:
    """Schedule a file and return the one line of the error."""
    status = cli.main(["schedule", str(file), "--pes", "4", *words])
    printed = capture.readouterr()
    assert (status, printed.out, printed.err.count("\n")) == (1, "", 1), printed.err
    line = printed.err.removeprefix("dfcompile: error: ")
    assert line.startswith(f"{file}: ")
    return line.removeprefix(f"{file}: ").rstrip("\n")


@pytest.mark.parametrize("name", TEXTS)
def test_text_that_is_no_canonical_dag_names_what_is_wrong(name: str, capsys: Capture, tmp_path: Path) -> None:
    text, expected = TEXTS[name]
    (tmp_path / "bad.dag").write_text(text)

    assert expected in refusal(capsys, tmp_path / "bad.dag")


@pytest.mark.parametrize("name", RECORDS)
def test_json_that_is_no_canonical_dag_names_what_is_wrong(name: str, capsys: Capture, tmp_path: Path) -> None:
    text, expected = RECORDS[name]
    (tmp_path / "bad.json").write_text(text)

    assert expected in refusal(capsys, tmp_path / "bad.json")


def test_file_of_a_kilobyte_is_refused_at_once_whatever_it_announces(capsys: Capture, tmp_path: Path) -> None:
    text, _ = TEXTS["a thousand million tasks in pieces"]
    (tmp_path / "bad.dag").write_text(text)
    begin = time.process_time()
    refusal(capsys, tmp_path / "bad.dag")

    assert len(text) < 1000
    assert time.process_time() - begin < 2.0


@pytest.mark.parametrize(
    ("content", "expected"), [(b"\xff\xfe\x00", "not a text file"), (b"", "line 1: nothing against 'dfcompile-dag/1")]
)
def test_file_that_is_no_text(content: bytes, expected: str, capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "bad.dag").write_bytes(content)

    assert expected in refusal(capsys, tmp_path / "bad.dag")


def test_dag_file_that_is_missing_or_a_folder(capsys: Capture, tmp_path: Path) -> None:
    assert refusal(capsys, tmp_path / "missing.dag") == "No such file or directory"
    assert refusal(capsys, tmp_path) == "Is a directory"
