"""Topological order, total work, depth with and without streaming."""

from itertools import pairwise

import networkx as nx
import numpy as np
from hypothesis import given

from dfcompile.canonical_dag import (
    CanonicalDag,
    DagBuilder,
    critical_path,
    io_elements,
    levels,
    streaming_components,
    streaming_depth,
    topological_order,
    total_work,
)
from tests.strategies import canonical_dags, task_dags


def chain(volumes: list[int], *, buffers: bool = False) -> CanonicalDag:
    """Tasks with these volumes between them, perhaps with a buffer on every edge."""
    builder = DagBuilder("chain")
    tasks = [builder.add_task(builder.add_scope(f"t{number}")) for number in range(len(volumes) + 1)]
    for number, ((left, right), volume) in enumerate(zip(pairwise(tasks), volumes, strict=True)):
        if buffers:
            buffer = builder.add_memory(builder.add_scope(f"b{number}"))
            builder.add_edge(left, buffer, volume)
            builder.add_edge(buffer, right, volume)
        else:
            builder.add_edge(left, right, volume)
    return builder.finish()


def test_elementwise_chain_has_the_published_closed_forms() -> None:
    dag = chain([2048] * 7)

    assert total_work(dag) == 8 * 2048
    assert critical_path(dag) == 8 * 2048
    assert streaming_depth(dag) == 2048 + 8 - 1


def test_depth_of_components_adds_up_along_buffers() -> None:
    assert streaming_depth(chain([100, 100], buffers=True)) == 300
    assert io_elements(chain([100, 100], buffers=True)) == 400


def test_upsampler_adds_its_rate_to_the_level() -> None:
    dag = chain([3, 12, 6, 9])

    assert levels(dag).tolist() == [1, 5, 6, 8, 9]


def test_component_that_waits_for_its_own_buffer_is_cut() -> None:
    builder = DagBuilder("softmax")
    read, largest, exponential = (builder.add_task(builder.add_scope(name)) for name in ("read", "max", "exp"))
    buffer = builder.add_memory(builder.add_scope("largest"))
    builder.add_edge(read, largest, 10)
    builder.add_edge(read, exponential, 10)
    builder.add_edge(largest, buffer, 1)
    builder.add_edge(buffer, exponential, 10)
    dag = builder.finish()

    # read and max stream: 2 - 1 + 10 cycles; only then exp: 10 cycles.
    assert streaming_depth(dag) == 11 + 10


@given(canonical_dags())
def test_order_is_the_first_of_all_topological_orders(dag: CanonicalDag) -> None:
    graph: nx.MultiDiGraph[int] = nx.MultiDiGraph()
    graph.add_nodes_from(range(dag.nodes_count))
    graph.add_edges_from(zip(dag.edge_source.tolist(), dag.edge_target.tolist(), strict=True))

    assert topological_order(dag).tolist() == list(nx.lexicographical_topological_sort(graph))


def test_order_does_not_follow_the_numbers_where_edges_do_not() -> None:
    builder = DagBuilder("backwards")
    last, first, other = (builder.add_task(builder.add_scope(name)) for name in ("last", "first", "other"))
    builder.add_edge(first, last, 1)
    builder.add_edge(first, other, 1)

    assert topological_order(builder.finish()).tolist() == [first, last, other]


@given(canonical_dags())
def test_components_are_those_of_the_streaming_edges(dag: CanonicalDag) -> None:
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(np.flatnonzero(dag.is_computational).tolist())
    kept = dag.between_tasks
    graph.add_edges_from(zip(dag.edge_source[kept].tolist(), dag.edge_target[kept].tolist(), strict=True))
    expected = {frozenset(nodes) for nodes in nx.connected_components(graph)}
    component = streaming_components(dag)

    found = {frozenset(np.flatnonzero(component == number).tolist()) for number in range(component.max() + 1)}

    assert found == expected


@given(task_dags())
def test_critical_path_is_the_heaviest_path(dag: CanonicalDag) -> None:
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from([-1, *range(dag.nodes_count)])
    graph.add_edges_from([(-1, node) for node in range(dag.nodes_count)])
    graph.add_edges_from(zip(dag.edge_source.tolist(), dag.edge_target.tolist(), strict=True))
    for _, node, attributes in graph.edges(data=True):
        attributes["weight"] = int(dag.work[node])

    assert critical_path(dag) == nx.dag_longest_path_length(graph)


@given(canonical_dags())
def test_streaming_never_deepens_beyond_levels(dag: CanonicalDag) -> None:
    """Every component takes at least its largest task, and all of them at most their work and levels in a row."""
    depth = streaming_depth(dag)

    assert dag.work.max(initial=0) <= depth <= total_work(dag) + int(levels(dag).sum())


def test_a_chain_of_20_000_tasks_is_no_recursion() -> None:
    count = 20_000
    builder = DagBuilder("long")
    tasks = builder.add_tasks(builder.add_scope("t"), count)
    numbers = np.arange(count)[::-1]
    builder.add_edges(numbers[:-1], numbers[1:], np.full(count - 1, 3))
    dag = builder.finish()

    assert topological_order(dag)[0] == tasks[-1]
    assert streaming_depth(dag) == count + 2
