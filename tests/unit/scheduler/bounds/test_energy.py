"""What all ancestors of a task take bounds when it starts and when it ends."""

import numpy as np

from dfcompile.generators.canonical_dags import cholesky
from dfcompile.scheduler import lower_bound_cycles
from dfcompile.scheduler.bounds.energy import is_energy_known, with_energy
from dfcompile.scheduler.bounds.precedence import directions
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
