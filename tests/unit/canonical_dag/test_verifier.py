import re

import numpy as np
import pytest
from hypothesis import given

from dfcompile.canonical_dag import CanonicalDag, DagBuilder, NodeKind, verify
from dfcompile.errors import UserError, VerificationError
from dfcompile.records import replace
from tests.strategies import canonical_dags


def two_producers(first: int, second: int) -> DagBuilder:
    builder = DagBuilder("join")
    for name in ("left", "right", "join", "end"):
        builder.add_task(builder.add_scope(name))
    builder.add_edge(0, 2, first)
    builder.add_edge(1, 2, second)
    builder.add_edge(2, 3, 8)
    return builder


def damaged(dag: CanonicalDag, column: str, place: int, value: int) -> CanonicalDag:
    changed = getattr(dag, column).copy()
    changed[place] = value
    changed.setflags(write=False)
    return replace(dag, **{column: changed})


@given(canonical_dags())
def test_random_dags_are_accepted_again(dag: CanonicalDag) -> None:
    verify(dag)


def test_kinds_and_volumes_follow_from_the_edges() -> None:
    dag = two_producers(4, 4).finish()

    assert [NodeKind(kind) for kind in dag.kind] == [
        NodeKind.SOURCE,
        NodeKind.SOURCE,
        NodeKind.UPSAMPLER,
        NodeKind.SINK,
    ]
    assert dag.volume_in.tolist() == [0, 0, 4, 8]
    assert dag.volume_out.tolist() == [4, 4, 8, 0]


def test_unequal_join_names_node_and_edge() -> None:
    expected = (
        "node 'join': 3 elements on input edge 'left' -> 'join' against 4 on another "
        "(all input edges of a task carry one volume)"
    )
    with pytest.raises(VerificationError, match=f"^{re.escape(expected)}$"):
        two_producers(3, 4).finish()


def test_reader_of_user_files_chooses_the_exception() -> None:
    with pytest.raises(UserError, match="node 'join': 3 elements"):
        two_producers(3, 4).finish(UserError)


def test_unequal_outputs_name_the_node() -> None:
    builder = two_producers(4, 4)
    builder.add_edge(2, builder.add_task(builder.add_scope("other")), 7)

    with pytest.raises(VerificationError, match="node 'join': 7 elements on output edge 'join' -> 'other' against 8"):
        builder.finish()


@pytest.mark.parametrize("volume", [0, -3])
def test_volume_must_be_positive(volume: int) -> None:
    with pytest.raises(VerificationError, match=f"edge 'right' -> 'join': volume {volume} against 1 or more"):
        two_producers(4, volume).finish()


def test_volume_beyond_any_memory_is_refused() -> None:
    with pytest.raises(VerificationError, match="edge 'left' -> 'join': volume 2305843009213693952 against at most"):
        two_producers(2**61, 4).finish()


def test_cycle_is_named_in_edge_order() -> None:
    builder = two_producers(8, 8)
    builder.add_edge(3, 1, 5)

    with pytest.raises(VerificationError, match="node 'right': a cycle 'right' -> 'join' -> 'end' -> 'right' against"):
        builder.finish()


@pytest.mark.parametrize(("nodes", "shown"), [(6, "'t5' -> 't0'"), (7, "'t5' -> … -> 't0'")])
def test_long_cycles_are_cut_off(nodes: int, shown: str) -> None:
    builder = DagBuilder("circle")
    tasks = [builder.add_task(builder.add_scope(f"t{number}")) for number in range(nodes)]
    for before, after in zip(tasks, (*tasks[1:], tasks[0]), strict=True):
        builder.add_edge(before, after, 4)

    with pytest.raises(VerificationError, match=f"-> {shown} against an acyclic graph"):
        builder.finish()


def test_node_cannot_follow_itself() -> None:
    builder = two_producers(8, 8)
    builder.add_edge(2, 2, 8)

    with pytest.raises(VerificationError, match="edge 'join' -> 'join': a node that follows itself"):
        builder.finish()


def test_task_without_edges_is_refused() -> None:
    builder = two_producers(8, 8)
    builder.add_task(builder.add_scope("alone"))

    with pytest.raises(VerificationError, match="node 'alone': a task without edges"):
        builder.finish()


def test_one_tensor_may_be_read_twice() -> None:
    builder = DagBuilder("square")
    source = builder.add_memory(builder.add_scope("x"))
    square = builder.add_task(builder.add_scope("square"))
    builder.add_edge(source, square, 5)
    builder.add_edge(source, square, 5)

    dag = builder.finish()

    assert dag.volume_in.tolist() == [0, 5]


def test_buffer_stores_the_sum_and_serves_any_volume() -> None:
    builder = two_producers(8, 8)
    buffer = builder.add_memory(builder.add_scope("array"))
    builder.add_edge(0, buffer, 8)
    builder.add_edge(1, buffer, 8)
    builder.add_edge(buffer, builder.add_task(builder.add_scope("small")), 2)
    builder.add_edge(buffer, builder.add_task(builder.add_scope("large")), 99)

    dag = builder.finish()

    assert (dag.volume_in[buffer], dag.volume_out[buffer]) == (16, 99)


def test_data_cannot_pass_between_buffers() -> None:
    builder = two_producers(8, 8)
    first, second = (builder.add_memory(builder.add_scope(name)) for name in ("first", "second"))
    builder.add_edge(first, second, 4)

    with pytest.raises(VerificationError, match="edge 'first' -> 'second': from buffer to buffer"):
        builder.finish()


def test_pseudo_nodes_stand_at_the_ends() -> None:
    builder = two_producers(8, 8)
    start = builder.add_memory(builder.add_scope("start"), NodeKind.PSEUDO_SOURCE)
    builder.add_edge(2, start, 8)

    with pytest.raises(VerificationError, match="edge 'join' -> 'start': into a pseudo source"):
        builder.finish()


def test_single_node_cannot_take_the_name_of_a_member() -> None:
    builder = DagBuilder("names")
    family = builder.add_tasks(builder.add_scope("a"), 4)
    single = builder.add_task(builder.add_scope("a[3]"))
    for task in family:
        builder.add_edge(task, single, 1)

    with pytest.raises(VerificationError, match=r"node 'a\[3\]': two nodes of this name"):
        builder.finish()


@pytest.mark.parametrize(
    ("column", "place", "value", "message"),
    [
        ("kind", 2, NodeKind.DOWNSAMPLER, "node 'join': kind downsampler against upsampler (volume in 4, out 8)"),
        ("kind", 1, 9, "node 'right': kind 9 against 0 to 7"),
        ("volume_in", 0, 4, "node 'left': volume in 4 against 0 on its edges"),
        ("volume_in", 2, 5, "node 'join': 4 elements on input edge 'left' -> 'join' against 5 on another"),
        ("volume_out", 3, 1, "node 'end': volume out 1 against 0 on its edges"),
        ("node_scope", 1, 0, "node 'left': two nodes of this name against one"),
        ("node_scope", 1, 4, "node 1: scope 4 against 0 to 3"),
        ("node_member", 1, -2, "node 1: member -2 against 0 or more"),
        ("edge_target", 1, 4, "edge 1: target 4 against 0 to 3"),
        ("edge_order", 0, 1, "edge 0: order 1 against 0 to 0"),
        ("edge_element_bytes", 0, 0, "edge 'left' -> 'join': 0 bytes per element against 1 or more"),
    ],
)
def test_damaged_column_is_found(column: str, place: int, value: int, message: str) -> None:
    dag = damaged(two_producers(4, 4).finish(), column, place, value)

    with pytest.raises(VerificationError, match=re.escape(message)):
        verify(dag)


def test_column_of_another_type_is_found() -> None:
    dag = two_producers(4, 4).finish()

    with pytest.raises(VerificationError, match=r"column edge_volume: float64\(3,\) against int64\(3,\)"):
        verify(replace(dag, edge_volume=dag.edge_volume.astype(np.float64)))
