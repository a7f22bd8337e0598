"""Parts of canonical DAGs are canonical DAGs, and their tasks are those of the whole."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.canonical_dag import CanonicalDag, DagBuilder, verify
from dfcompile.canonical_dag.part import OUTSIDE, part_of
from tests.strategies import canonical_dags


@given(canonical_dags(), st.data())
def test_tasks_of_a_part_are_those_of_the_whole(dag: CanonicalDag, data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.booleans(), min_size=dag.nodes_count, max_size=dag.nodes_count))
    tasks = np.flatnonzero(dag.is_computational & np.array(chosen, dtype=np.bool_))
    inside = np.isin(np.arange(dag.nodes_count), tasks)
    edges = np.flatnonzero(inside[dag.edge_source] | inside[dag.edge_target])

    part = part_of(dag, tasks, edges)

    verify(part.dag)
    own = np.flatnonzero(part.dag.is_computational)
    assert part.node[own].tolist() == tasks.tolist()
    for column in ("kind", "volume_in", "volume_out", "work"):
        assert getattr(part.dag, column)[own].tolist() == getattr(dag, column)[tasks].tolist()
    assert part.edge.tolist() == edges.tolist()
    assert part.dag.edge_volume.tolist() == dag.edge_volume[edges].tolist()


def test_what_is_outside_is_memory() -> None:
    builder = DagBuilder("chain")
    nodes = [builder.add_task(builder.add_scope(name)) for name in ("a", "b", "c")]
    builder.add_edge(nodes[0], nodes[1], 6)
    builder.add_edge(nodes[1], nodes[2], 3)
    dag = builder.finish()

    part = part_of(dag, np.array([1]), np.array([0, 1]))

    assert part.node.tolist() == [1, OUTSIDE, OUTSIDE]
    assert part.dag.is_buffer.tolist() == [False, True, True]
    assert [part.dag.node_name(node) for node in range(3)] == ["b", "outside[0]", "outside[1]"]
    assert (part.dag.edge_source.tolist(), part.dag.edge_target.tolist()) == ([1, 0], [0, 2])
