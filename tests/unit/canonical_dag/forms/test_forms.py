"""Text, JSON, networkx and Graphviz forms of a canonical DAG."""

import json
import re
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given

from dfcompile.canonical_dag import (
    CanonicalDag,
    DagBuilder,
    Kernel,
    KernelTensor,
    KernelVariant,
    TensorRole,
    dag_from_json,
    dag_to_json,
    format_dag,
    parse_dag,
    read_dag,
)
from dfcompile.errors import UserError
from dfcompile.visualization.dataflow import to_dot
from tests.strategies import canonical_dags

PRODUCT = """\
dfcompile-dag/1 conv1
kernel conv1.matmul op=MatMul origin=conv1 expansion=mv variant=gemm_input1_weight outer=1 m=6 k=25 n=576 \
inputs=A,"B 2" outputs=C
tensor A elements=150 bytes=4 role=parameter
buffer A
elementwise conv1.matmul.broadcast kernel=conv1.matmul origin=conv1
downsampler conv1.matmul.mv[0:576] kernel=conv1.matmul origin=conv1
upsampler "odd name[3]" kernel=conv1.matmul origin=conv1
buffer C
edge A -> conv1.matmul.broadcast volume=150 order=[0,1]
edge conv1.matmul.broadcast -> conv1.matmul.mv[0:576] volume=150 order=[0,1]
edge conv1.matmul.mv[0:576] -> "odd name[3]" volume=6 bytes=8
edge "odd name[3]" -> C volume=3456 bytes=8
"""


def product() -> CanonicalDag:
    builder = DagBuilder("conv1")
    kernel = builder.add_kernel(
        Kernel(
            "conv1.matmul",
            "MatMul",
            "conv1",
            "mv",
            KernelVariant.GEMM_INPUT1_WEIGHT,
            1,
            6,
            25,
            576,
            ("A", "B 2"),
            ("C",),
        )
    )
    builder.add_tensor(KernelTensor("A", 150, 4, TensorRole.PARAMETER))
    memory = builder.add_memory(builder.add_scope("A"))
    broadcast = builder.add_task(builder.add_scope("conv1.matmul.broadcast", kernel, "conv1"))
    members = builder.add_tasks(builder.add_scope("conv1.matmul.mv", kernel, "conv1"), 576)
    gather = builder.add_task(builder.add_scope("odd name[3]", kernel, "conv1"))
    result = builder.add_memory(builder.add_scope("C"))
    builder.add_edge(memory, broadcast, 150, order="[0,1]")
    for member in members:
        builder.add_edge(broadcast, member, 150, order="[0,1]")
    for member in members:
        builder.add_edge(member, gather, 6, 8)
    builder.add_edge(gather, result, 3456, 8)
    return builder.finish()


def test_text_has_one_line_per_family() -> None:
    assert format_dag(product()) == PRODUCT


def test_text_is_parsed_back() -> None:
    assert parse_dag(PRODUCT) == product()


@given(canonical_dags())
def test_every_form_gives_the_same_dag_back(dag: CanonicalDag) -> None:
    assert parse_dag(format_dag(dag)) == dag
    assert dag_from_json(dag_to_json(dag)) == dag


def test_tables_that_no_edge_or_node_uses_are_kept() -> None:
    builder = DagBuilder("")
    builder.add_order("[1,0]")
    builder.add_scope("first unused")
    last, reader = builder.add_scope("last"), builder.add_scope("reader")
    builder.add_scope("unused")
    end, start = builder.add_task(reader), builder.add_task(last)
    builder.add_edge(start, end, 3)
    dag = builder.finish()

    assert parse_dag(format_dag(dag)) == dag
    assert dag_from_json(dag_to_json(dag)) == dag


def test_json_of_a_known_graph() -> None:
    top = json.loads(dag_to_json(product()))

    assert top["format"] == "dfcompile-dag/1"
    assert top["nodes"][2] == {
        "nodes": "conv1.matmul.mv[0:576]",
        "kind": "downsampler",
        "kernel": "conv1.matmul",
        "origin": "conv1",
    }
    assert top["edges"][1] == {
        "source": "conv1.matmul.broadcast",
        "target": "conv1.matmul.mv[0:576]",
        "volume": 150,
        "bytes": 4,
        "order": "[0,1]",
    }
    assert dag_from_json(dag_to_json(product())) == product()


def test_either_form_is_recognised() -> None:
    assert read_dag(PRODUCT) == read_dag(dag_to_json(product()))


def test_dot_collapses_families_into_clusters() -> None:
    dot = to_dot(product())

    assert 'label="conv1.matmul.mv ×576", shape=invtrapezium' in dot
    assert 'n1 -> n2 [label="150 ×576", tooltip="[0,1]"];' in dot
    assert 'label="conv1.matmul";' in dot


def text(*lines: str) -> str:
    return "\n".join(["dfcompile-dag/1 bad", *lines])


CHAIN = ("task a", "task b", "task c", "edge a -> b volume=4", "edge b -> c volume=4")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "line 1: nothing against 'dfcompile-dag/1 NAME'"),
        ("dfcompile-dag/2 x", "line 1: 'dfcompile-dag/2 x' against 'dfcompile-dag/1 NAME'"),
        (text(*CHAIN, "edge c -> a volume=4"), "node 'a': a cycle 'a' -> 'b' -> 'c' -> 'a' against an acyclic graph"),
        (
            text(*CHAIN, "edge a -> c volume=5"),
            "node 'c': 4 elements on input edge 'b' -> 'c' against 5 on another (all input edges of a task carry",
        ),
        (text(*CHAIN, "edge a -> c volume=0"), "line 7: edge 'a' -> 'c': volume 0 against 1 to 281474976710656"),
        (text(*CHAIN, "edge a -> c volume=-1"), "line 7: edge 'a' -> 'c': volume -1 against 1 to 281474976710656"),
        (text(*CHAIN, "edge a -> c volume=x"), "line 7: edge 'a' -> 'c': volume 'x' against a whole number"),
        (text(*CHAIN, "edge a -> c"), "line 7: 'edge a -> c' against 'edge FROM -> TO volume=N'"),
        (text(*CHAIN, "edge a -> d volume=4"), "line 7: unknown node 'd' (known: a, b, c)"),
        (text(*CHAIN, "edge a -> b[0:3] volume=4"), "line 7: unknown node 'b[0]' (did you mean 'b'?)"),
        (
            text(*CHAIN, "edge a -> b volum=4"),
            "line 7: 'volum=4' against volume=…, volumes=…, distinct=…, bytes=…, order=… ",
        ),
        (
            text("magic a"),
            "line 2: node 'a': kind 'magic' against task, elementwise, downsampler, upsampler, source, sink, buffer, ",
        ),
        (text("task a", "task a"), "line 3: node 'a': given twice against once"),
        (text("task a[0:4]", "task a[3]"), "line 3: node 'a[3]': given twice against once"),
        (text("task a[3]", "task a[0:4]"), "line 3: node 'a[0:4]': given twice against once"),
        (text("task a[0:1000000000]"), "line 2: node 'a[0:1000000000]': 1000000000 nodes announced against at most"),
        (text("task a[4:4]"), "line 2: empty or impossible range 'a[4:4]' against name[first:end]"),
        (text("task a", "task a[0:2]", "edge a -> a[0:2] volume=3"), "scope 'a': a single node and a member"),
        (
            text("task a[0:9000]", "task b[0:9000]", *["edge a[0:9000] -> b[0:8000] volume=1"]),
            "line 4: edge 'a[0:9000]' -> 'b[0:8000]': 9000 nodes to 8000 against as many",
        ),
        (
            text("downsampler a", "task b", "edge a -> b volume=3"),
            "node 'a': kind downsampler against volume in 0, out 3",
        ),
        (text("task a kernel=k"), "line 2: scope 'a': unknown kernel 'k'"),
        (text('task "a'), "line 2: '\"a' against a name, name[member] or name[first:end]"),
        (text("task"), "line 2: 'task' alone against a name behind it"),
        (text("tensor t elements=4 bytes=4 role=wait"), "line 2: role 'wait' against input, parameter, intermediate"),
    ],
)
def test_bad_text_is_one_line_for_the_user(content: str, message: str) -> None:
    with pytest.raises(UserError, match=f"^{re.escape(message)}") as caught:
        parse_dag(content)

    assert "\n" not in str(caught.value)


def json_dag(**changes: object) -> str:
    nodes = [{"nodes": "a", "kind": "task"}, {"nodes": "b"}]
    edges = [{"source": "a", "target": "b", "volume": 4}]
    return json.dumps({"format": "dfcompile-dag/1", "name": "x", "nodes": nodes, "edges": edges, **changes})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "json: Expecting property name"),
        ("[" * 100_000, "json: maximum recursion depth"),
        ("[]", "file: list against an object"),
        (json_dag(format="dag/1"), "format: 'dag/1' against 'dfcompile-dag/1'"),
        (json_dag(edge=[]), "file: unknown field 'edge' (did you mean 'edges'?)"),
        (json_dag(nodes={}), "nodes: dict against a list"),
        (json_dag(nodes=[3]), "nodes[0]: int against an object"),
        (
            json_dag(edges=[{"source": "a", "target": "b", "volume": 4.5}]),
            "edges[0]: volume 4.5 against a whole number",
        ),
        (json_dag(edges=[{"source": "a", "target": "b"}]), "edges[0]: volume None against a whole number"),
        (
            json_dag(edges=[{"source": "a", "target": "b", "volume": -4}]),
            "edges[0]: edge 'a' -> 'b': volume -4 against",
        ),
        (
            json_dag(nodes=[{"nodes": "a[0:1000000000]"}]),
            "nodes[0]: node 'a[0:1000000000]': 1000000000 nodes announced",
        ),
        (json_dag(nodes=[{"nodes": "a"}, {"nodes": "a"}]), "nodes[1]: node 'a': given twice against once"),
        (json_dag(nodes=[{"nodes": "a", "kind": "tsk"}]), "nodes[0]: node 'a': kind 'tsk' against task"),
    ],
)
def test_bad_json_is_one_line_for_the_user(content: str, message: str) -> None:
    with pytest.raises(UserError, match=f"^{re.escape(message)}") as caught:
        dag_from_json(content)

    assert "\n" not in str(caught.value)


def wide_graph(layers: int, width: int) -> CanonicalDag:
    """Layers of single tasks with edges that no run covers."""
    builder = DagBuilder("wide")
    tasks = [builder.add_task(builder.add_scope(f"t{number}")) for number in range(layers * width)]
    for task in tasks[width:]:
        builder.add_edge(task - width, task, 7)
        builder.add_edge((task - width) // width * width + (task * 7 + 3) % width, task, 7)
    return builder.finish()


@pytest.mark.parametrize(("write", "read"), [(format_dag, parse_dag), (dag_to_json, dag_from_json)])
def test_a_large_graph_is_read_back(write: Callable[[CanonicalDag], str], read: Callable[[str], CanonicalDag]) -> None:
    dag = wide_graph(50, 40)
    written = write(dag)
    again = read(written)

    assert np.array_equal(again.edge_source, dag.edge_source)
