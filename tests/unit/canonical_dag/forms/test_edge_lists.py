"""Edges without a pattern are lists of their ends, in text and JSON, and large graphs are short files."""

import json
import re
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.canonical_dag import (
    CanonicalDag,
    DagBuilder,
    dag_from_json,
    dag_to_json,
    format_dag,
    parse_dag,
    read_dag,
)
from dfcompile.errors import UserError
from dfcompile.generators.canonical_dags import chain, cholesky, fft

HEAD = "dfcompile-dag/1 listed\ntask a[0:3]\ntask a[5:7]\ntask b[0:2]\n"


@given(st.integers(2, 60), st.integers(0, 10**6))
def test_scattered_edges_are_read_back(tasks: int, seed: int) -> None:
    dag = scattered(tasks, seed)

    assert parse_dag(format_dag(dag)) == dag
    assert dag_from_json(dag_to_json(dag)) == dag


@pytest.mark.parametrize("make", [lambda: fft(256, 64, 1), lambda: cholesky(40, 64, 1), lambda: chain(500, 64, 1)])
def test_generated_graphs_have_a_line_per_pattern(make: Callable[[], CanonicalDag]) -> None:
    dag = make()
    lines = format_dag(dag).splitlines()

    assert len(lines) < dag.edges_count / 8
    assert max(map(len, lines)) < 20_000
    assert parse_dag("\n".join(lines)) == dag


def test_a_list_is_each_of_its_edges() -> None:
    listed = HEAD + "edge a[0,6,2,1,5] -> b[1,0,1,0,1] volume=4\nedge a[6,0] -> b[0,1] volumes=4,4\n"
    one_by_one = HEAD + "".join(
        f"edge a[{source}] -> b[{target}] volume=4\n"
        for source, target in ((0, 1), (6, 0), (2, 1), (1, 0), (5, 1), (6, 0), (0, 1))
    )

    assert parse_dag(listed) == parse_dag(one_by_one)


def test_a_range_goes_on_in_the_next_place_where_members_stand() -> None:
    dag = parse_dag(
        "dfcompile-dag/1 x\ntask a[0:2]\ntask b[0:1]\ntask a[2:5]\ntask b[1:5]\nedge a[0:5] -> b[0:5] volume=3\n"
    )

    assert dag.edge_source.tolist() == [0, 1, 3, 4, 5]
    assert dag.edge_target.tolist() == [2, 6, 7, 8, 9]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("edge a[0,3] -> b[0,1] volume=4", "line 5: unknown node 'a[3]'"),
        ("edge a[0,7] -> b[0,1] volume=4", "line 5: unknown node 'a[7]'"),
        ("edge c[0,1] -> b[0,1] volume=4", "line 5: unknown node 'c[0]'"),
        ("edge a[0,1] -> b[0,1,0] volume=4", "line 5: edge 'a[0,1]' -> 'b[0,1,0]': 2 nodes to 3 against as many"),
        ("edge a[0,1] -> b[0,1] volumes=4", "line 5: edge 'a[0,1]' -> 'b[0,1]': 1 volumes against 2"),
        ("edge a[0,1] -> b[0,1] volumes=4,4,4", "line 5: edge 'a[0,1]' -> 'b[0,1]': 3 volumes against 2"),
        ("edge a[0,1] -> b[0,1] volumes=4,0", "line 5: edge 'a[0,1]' -> 'b[0,1]': volume 0 against 1 to"),
        ("edge a[0,1] -> b[0,1] volumes=4,", "line 5: volumes '4,' against whole numbers and commas"),
        ("edge a[0,1] -> b[0,1] volumes=4,-4", "line 5: volumes '4,-4' against whole numbers and commas"),
        ("edge a[0,1] -> b[0,1] volumes=٤,4", "line 5: volumes '٤,4' against whole numbers and commas"),
        ("edge a[0,1] -> b[0,1] volumes=4,4 volume=4", "line 5: 'volume' and 'volumes' against one of them"),
        (
            "edge a[0,1] -> b[0,1] volumes=4,4 distinct=5",
            "line 5: edge 'a[0,1]' -> 'b[0,1]': distinct 5 against 1 to 4",
        ),
        ("edge a[0,] -> b[0,1] volume=4", "line 5: 'a[0,]' against a name, name[member] or name[first:end]"),
        ("edge a[0,1:2] -> b[0,1] volume=4", "line 5: 'a[0,1:2]' against a name, name[member]"),
        ("task d[0,1]", "line 5: 'd[0,1]' against a name, name[member] or name[first:end]"),
        (f"edge a[{'0,' * 500}0] -> b[0,1] volume=4", f"line 5: edge 'a[{'0,' * 49}…' -> 'b[0,1]': 501 nodes to 2"),
        (f"edge a[0,{'9' * 19}] -> b[0,1] volume=4", f"line 5: 'a[0,{'9' * 19}]' against a name"),
    ],
)
def test_a_broken_list_is_one_line_for_the_user(line: str, message: str) -> None:
    with pytest.raises(UserError, match=f"^{re.escape(message)}"):
        parse_dag(f"{HEAD}{line}\n")


def test_json_has_the_same_lists() -> None:
    edges = [{"source": "a[0,0]", "target": "a[1,2]", "volumes": "4,4"}]
    file = {"format": "dfcompile-dag/1", "nodes": [{"nodes": "a[0:3]"}], "edges": edges}

    assert read_dag(json.dumps(file)).edge_target.tolist() == [1, 2]
    for field in ({"volumes": [4, 4]}, {"volumes": "4,4", "volume": 4}):
        with pytest.raises(UserError, match=r"^edges\[0\]: "):
            read_dag(json.dumps({**file, "edges": [{**edges[0], **field}]}))


def scattered(tasks: int, seed: int) -> CanonicalDag:
    """Return families whose edges and volumes have no pattern, with a name that is a string in a file."""
    random = Random(seed)
    builder = DagBuilder("scattered")
    families = [builder.add_tasks(builder.add_scope(name), tasks, random.randrange(9)) for name in ("odd name", "b")]
    source = [random.choice(families[0]) for _ in families[1]]  # each has one input, of a volume of its own
    reads: dict[int, int] = {}
    for node in source:
        reads.setdefault(node, random.randrange(1, 99))
    for node in families[0]:
        if node not in reads:
            reads[node] = random.randrange(1, 99)
            source.append(node)
    targets = [*families[1], *(random.choice(families[1]) for _ in source[tasks:])]
    volume = {target: reads[node] for target, node in zip(targets[:tasks], source, strict=False)}
    for node, target in zip(source, targets, strict=True):
        reads[node] = volume[target] if node not in source[:tasks] else reads[node]
        builder.add_edge(node, target, volume[target])
    return builder.finish()
