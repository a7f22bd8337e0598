"""Kinds of nodes: what is computed of one of a kind holds of all of it."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.generators.canonical_dags import cholesky
from dfcompile.scheduler.bounds.precedence import Direction, directions, earliest
from dfcompile.scheduler.bounds.time_table import merged
from tests.examples import examples
from tests.strategies import DagShape, canonical_dags
from tests.unit.scheduler.streams import stream_graph


def test_copies_of_a_chain_are_one() -> None:
    edges = [edge for name in "abcd" for edge in (("in", name, 9), (name, f"{name}2", 3), (f"{name}2", "out", 3))]
    _, count, (ahead, _) = merged(stream_graph(edges))

    assert sorted(count) == [1, 1, 4, 4]
    assert sorted(len(rows) for rows in ahead.awaited) == [0, 1, 1, 1]


def test_what_is_read_by_another_number_of_nodes_is_another_kind() -> None:
    dag = stream_graph([("in", "a", 4), ("in", "b", 4), ("a", "c", 4), ("c", "out", 4), ("b", "out", 4)])

    assert sorted(merged(dag)[1]) == [1] * dag.nodes_count


def test_figures_tell_nodes_apart() -> None:
    dag = stream_graph([("in", "a", 4), ("in", "b", 4), ("a", "out", 4), ("b", "out", 4)])
    figures = [0] * dag.nodes_count
    assert max(merged(dag, figures)[1]) == 2

    figures[int(np.flatnonzero(dag.is_computational)[0])] = 1
    assert max(merged(dag, figures)[1]) == 1


@examples(80)
@given(canonical_dags(DagShape(max_scopes=8, max_members=4, max_volume=12)), st.booleans())
def test_times_of_kinds_are_those_of_their_nodes(dag: CanonicalDag, is_deep: bool) -> None:
    if is_deep:
        dag = cholesky(4, dag.nodes_count, 1)
    first, count, of_kinds = merged(dag)
    work, task = dag.work.tolist(), dag.is_computational.tolist()
    assert sum(count) == dag.nodes_count

    for whole, kinds in zip(directions(dag), of_kinds, strict=True):
        expected = earliest(whole, task, work)
        columns = earliest(kinds, [task[node] for node in first], [work[node] for node in first])
        assert sorted(kinds.order) == list(range(len(first)))
        assert _is_in_order(kinds)
        for each, column in zip(expected, columns, strict=True):
            assert [each[node] for node in first] == column
            repeated = sorted(value for value, times in zip(column, count, strict=True) for _ in range(times))
            assert repeated == sorted(each)


def _is_in_order(direction: Direction) -> bool:
    at = {kind: number for number, kind in enumerate(direction.order)}
    return all(at[other] < at[kind] for kind, rows in enumerate(direction.awaited) for other, _, _ in rows)
