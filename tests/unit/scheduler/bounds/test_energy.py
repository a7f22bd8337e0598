"""What all ancestors of a task take bounds when it starts and when it ends."""

import networkx as nx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.generators.canonical_dags import cholesky
from dfcompile.scheduler import lower_bound_cycles
from dfcompile.scheduler.bounds.energy import _ancestors, _may_be_there, is_energy_known, with_energy
from dfcompile.scheduler.bounds.precedence import directions
from tests.examples import examples
from tests.strategies import canonical_dags
from tests.unit.scheduler.streams import stream_graph


def test_all_but_the_largest_ancestors_have_ended_before_a_task_starts() -> None:
    """Of three ancestors on two elements one may still run: the others take 10 + 20 cycles, shared by two."""
    dag = stream_graph([
        ("in", "a", 10), ("a", "j", 10), ("in", "b", 20), ("b", "j", 10), ("in", "c", 40), ("c", "j", 10),
        ("j", "out", 10),
    ])  # fmt: skip
    ahead, _ = directions(dag)
    nothing = [0] * dag.nodes_count
    start, end = with_energy(ahead, dag.is_computational, dag.work, 2, (nothing, nothing))
    join = next(node for node in range(dag.nodes_count) if dag.node_name(node) == "j")

    assert start[join] == (10 + 20) // 2
    assert end[join] >= (10 + 20 + 40) // 2 + 1


def test_the_bound_of_a_wide_graph_knows_its_narrow_ends() -> None:
    dag = cholesky(8, 2048, 1)

    assert lower_bound_cycles(dag, 16) == 5416  # 4,891 without the ancestors
    assert int(dag.work.sum()) // 16 == 4890


def test_nothing_is_added_where_all_fit() -> None:
    dag = cholesky(3, 64, 1)
    ahead, _ = directions(dag)
    nothing = [0] * dag.nodes_count
    many = with_energy(ahead, dag.is_computational, dag.work, 100, (nothing, nothing))
    assert np.max(many[0]) < lower_bound_cycles(dag, 100)


def test_of_large_graphs_too_few_tasks_are_looked_at_to_learn_anything() -> None:
    assert [is_energy_known(tasks) for tasks in (1, 3, 65_536, 65_537)] == [True, True, True, False]


def test_who_is_far_from_a_task_has_ended_before_it_starts() -> None:
    """A chain of four on three elements: when the last starts two may still run, and these are the two before it."""
    dag = stream_graph([
        ("in", "a", 90), ("a", "b", 9), ("b", "c", 9), ("c", "d", 9), ("d", "out", 9),
    ])  # fmt: skip
    ahead, _ = directions(dag)
    nothing = [0] * dag.nodes_count
    start, _ = with_energy(ahead, dag.is_computational, dag.work, 3, (nothing, nothing))
    last = next(node for node in range(dag.nodes_count) if dag.node_name(node) == "d")

    assert start[last] == 90 // 3


def test_who_is_behind_memory_has_ended() -> None:
    """Three ancestors on two elements, none of which streams: all of their work is done before the join starts."""
    dag = stream_graph([
        ("in", "a", 90), ("a", "A", 9), ("A", "j", 9), ("in", "b", 90), ("b", "B", 9), ("B", "j", 9),
        ("in", "c", 90), ("c", "C", 9), ("C", "j", 9), ("j", "out", 9),
    ])  # fmt: skip
    ahead, _ = directions(dag)
    nothing = [0] * dag.nodes_count
    start, _ = with_energy(ahead, dag.is_computational, dag.work, 2, (nothing, nothing))
    join = next(node for node in range(dag.nodes_count) if dag.node_name(node) == "j")

    assert start[join] == 3 * 90 // 2


@examples(40)
@given(dag=canonical_dags(), pes=st.integers(2, 6))
def test_what_may_be_there_is_what_the_paths_say(dag: CanonicalDag, pes: int) -> None:
    """Counted on all paths: the tasks between two nodes, none of them in memory."""
    ahead, _ = directions(dag)
    nodes = range(dag.nodes_count)
    graph = nx.DiGraph(zip(dag.edge_source.tolist(), dag.edge_target.tolist(), strict=True))
    graph.add_nodes_from(nodes)
    ancestors = _ancestors(ahead, np.arange(dag.nodes_count))

    found = _may_be_there(ahead, ancestors, dag.is_computational, pes)

    for node in nodes:
        for other in nx.ancestors(graph, node):
            between = nx.ancestors(graph, node) & nx.descendants(graph, other)
            streams = all(dag.is_computational[each] for each in between)
            assert found[node, other] == (streams and len(between) <= pes - 2)
