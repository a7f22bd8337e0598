"""Slices of arrays: who reads an element finds it in the buffer that who made it has filled, and no task needs two."""

from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.extraction import ExtractionOptions, Granularity
from dfcompile.canonical_dag.extraction.extract import extract_graph, flow_of
from dfcompile.canonical_dag.extraction.families import TaskFamily
from dfcompile.canonical_dag.extraction.scopes import Access, Array, LoweredGraph, MapScope
from dfcompile.canonical_dag.forms.text_form import format_dag, parse_dag


def batches(batch: int, rows: int, columns: int, origins: tuple[str, str] = ("a", "b")) -> LoweredGraph:
    """A matrix per batch is copied, then written transposed: the second step needs all of a matrix, and of no other."""
    size = rows * columns
    x, t, y = (
        Array(
            name, (batch, rows, columns), (size, columns, 1), 4, is_transient=name == "t", is_materialised=name == "t"
        )
        for name in "xty"
    )
    straight, across = (size, columns, 1), (size, 1, columns)
    first = MapScope(
        "first", origins[0], None, (batch, rows, columns), (True, False, False),
        (Access("x", 0, straight),), (Access("t", 0, straight),),
    )  # fmt: skip
    second = MapScope(
        "second", origins[1], None, (batch, columns, rows), (True, False, False),
        (Access("t", 0, across),), (Access("y", 0, across),),
    )  # fmt: skip
    return LoweredGraph("batches", (first, second), {"x": x, "t": t, "y": y})


def touched(family: TaskFamily, access: Access, array: Array) -> list[set[int]]:
    """The elements that each task touches, one after the other."""
    found = []
    for member in product(*(range(cut.tasks) for cut in family.cuts)):
        loops = []
        for at, cut in zip(member, family.cuts, strict=True):
            size = cut.last if at == cut.tasks - 1 else cut.size
            loops.append([at * cut.size + step for step in range(size)])
        places = (access.base + sum(map(int.__mul__, access.strides, point)) for point in product(*loops))
        found.append(set(places))
        assert max(found[-1]) < array.elements
    return found


def extracted(graph: LoweredGraph, granularity: Granularity) -> tuple[CanonicalDag, list[list[int]]]:
    """The DAG, and the numbers of the buffers of array t that tasks of each scope touch."""
    dag = extract_graph(graph, ExtractionOptions(granularity=granularity))
    scopes = [scope.origin for scope in dag.scopes]
    buffers = np.flatnonzero(dag.is_buffer & (dag.node_scope == scopes.index("t")))
    ends = list(zip(dag.edge_source.tolist(), dag.edge_target.tolist(), strict=True))
    writes = {source: target for source, target in ends if target in buffers}
    reads = {target: source for source, target in ends if source in buffers}
    return dag, [[touching[task] for task in sorted(touching)] for touching in (writes, reads)]


@given(st.integers(1, 6), st.integers(1, 5), st.integers(1, 5), st.integers(1, 24), st.integers(1, 24))
def test_an_element_is_read_from_the_part_that_its_writer_fills(
    batch: int, rows: int, columns: int, pieces: int, others: int
) -> None:
    graph = batches(batch, rows, columns)
    granularity = Granularity(pieces=pieces, own=(("b", others),))
    _, (writes, reads) = extracted(graph, granularity)
    first, second = flow_of(graph, ExtractionOptions(granularity=granularity)).families

    made: dict[int, int] = {}
    for buffer, places in zip(writes, touched(first, first.scope.writes[0], graph.arrays["t"]), strict=True):
        for place in places:
            assert made.setdefault(place, buffer) == buffer
    for buffer, places in zip(reads, touched(second, second.scope.reads[0], graph.arrays["t"]), strict=True):
        assert {made[place] for place in places} == {buffer}


@given(st.integers(2, 6), st.integers(2, 5), st.integers(2, 5), st.integers(1, 4))
def test_matrices_that_are_worked_on_apart_are_parts(batch: int, rows: int, columns: int, times: int) -> None:
    dag, (writes, reads) = extracted(batches(batch, rows, columns), Granularity(pieces=batch * times))

    assert len(set(writes)) == len(set(reads)) == batch
    t = next(number for number, scope in enumerate(dag.scopes) if scope.origin == "t")
    assert dag.volume_in[dag.node_scope == t].tolist() == [rows * columns] * batch


def test_a_coarser_division_decides() -> None:
    """Twelve matrices, three to a task of the one, one to a task of the other."""
    graph = batches(12, 2, 3)

    _, (writes, _) = extracted(graph, Granularity(pieces=4, own=(("b", 12),)))
    assert len(set(writes)) == 4
    _, (writes, _) = extracted(graph, Granularity(pieces=4, own=(("b", 6),)))  # pairs do not fit into threes
    assert len(set(writes)) == 1


def test_tasks_as_declared_keep_arrays_whole() -> None:
    _, (writes, _) = extracted(batches(4, 2, 3), Granularity())
    assert len(set(writes)) == 1
    _, (writes, _) = extracted(batches(4, 2, 3), Granularity(pieces=4, own=(("b", None),)))
    assert len(set(writes)) == 1


def test_parts_are_members_of_the_array_in_files() -> None:
    dag, _ = extracted(batches(4, 2, 3), Granularity(pieces=4))

    text = format_dag(dag)
    assert "t[0:4]" in text
    assert parse_dag(text) == dag
