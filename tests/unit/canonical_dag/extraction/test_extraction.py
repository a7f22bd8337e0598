"""Extraction: streams, buffers, granularity, refusals, on SDFGs of a few map scopes."""

import re
import subprocess
import sys
from math import prod

import dace
import pytest

from dfcompile.canonical_dag import (
    CanonicalDag,
    Kernel,
    KernelVariant,
    NodeKind,
    TensorRole,
    format_dag,
)
from dfcompile.canonical_dag.extraction import ExtractionOptions, Granularity, extract, parse_granularity
from dfcompile.errors import UserError
from dfcompile.options import Volumes
from tests.lowered_sdfg import LoweredSdfg


def edges(dag: CanonicalDag) -> list[str]:
    """The edge lines of the text form."""
    return [line.removeprefix("edge ") for line in format_dag(dag).splitlines() if line.startswith("edge")]


def two_scopes(first: dict[str, int], second: dict[str, int], written: str, read: str) -> LoweredSdfg:
    """``X[8, 6] -> T[8, 6] -> Y[8, 6]``, both scopes over i and j in the orders given."""
    low = LoweredSdfg()
    for name in "XY":
        low.border(name, 8, 6)
    low.inner("T", 8, 6)
    low.scope("f", first, [written.replace("T", "X")], written)
    low.scope("g", second, [read], read.replace("T", "Y"))
    return low


ROWS, COLUMNS = {"i": 8, "j": 6}, {"j": 6, "i": 8}


def test_same_order_streams() -> None:
    assert edges(extract(two_scopes(ROWS, ROWS, "T[i,j]", "T[i,j]").sdfg)) == [
        "X -> f volume=48 order=[0,1]",
        "f -> g volume=48 order=[0,1]",
        "g -> Y volume=48 order=[0,1]",
    ]


def test_other_order_goes_through_a_buffer() -> None:
    assert edges(extract(two_scopes(ROWS, COLUMNS, "T[i,j]", "T[i,j]").sdfg)) == [
        "X -> f volume=48 order=[0,1]",
        "f -> T volume=48 order=[0,1]",
        "T -> g volume=48 order=[1,0]",
        "g -> Y volume=48 order=[1,0]",
    ]


def test_order_is_compared_as_flat_offsets_through_views() -> None:
    low = LoweredSdfg()
    low.border("X", 48)
    low.border("Y", 48)
    low.inner("T", 8, 6)
    low.view("flat", "T", 48)
    low.view("cube", "flat", 2, 4, 6)
    low.scope("f", ROWS, ["X[6*i+j]"], "T[i,j]")
    low.scope("g", {"n": 48}, ["flat[n]"], "Y[n]")
    low.scope("h", {"a": 2, "b": 4, "c": 6}, ["cube[a,b,c]"], "Y[24*a+6*b+c]")

    assert [line for line in edges(extract(low.sdfg)) if line.startswith("f")] == [
        "f -> g volume=48 order=[0,1]",
        "f -> h volume=48 order=[0,1]",
    ]


def test_consumers_are_judged_one_by_one() -> None:
    low = two_scopes(ROWS, ROWS, "T[i,j]", "T[i,j]")
    low.border("Z", 8, 6)
    low.scope("h", COLUMNS, ["T[i,j]"], "Z[i,j]")

    assert edges(extract(low.sdfg))[1:5] == [
        "f -> T volume=48 order=[0,1]",
        "f -> g volume=48 order=[0,1]",
        "g -> Y volume=48 order=[0,1]",
        "T -> h volume=48 order=[1,0]",
    ]


@pytest.mark.parametrize(
    ("loops", "read"),
    [
        ({"r": 2, **ROWS}, "T[i,j]"),  # everything twice
        ({**ROWS, "r": 2}, "T[i,j]"),  # each element twice
        ({"i": 8, "j": 5, "k": 2}, "T[i,j+k]"),  # overlapping windows
        ({"i": 4, "j": 6}, "T[i,j]"),  # a part
        ({"i": 4, "j": 6}, "T[i+4,j]"),  # a part with an offset
        ({"i": 8, "j": 6}, "T[7-i,j]"),  # backwards
    ],
)
def test_what_is_not_read_once_in_order_is_a_buffer(loops: dict[str, int], read: str) -> None:
    low = LoweredSdfg()
    low.border("X", 8, 6)
    low.border("Y", *loops.values())
    low.inner("T", 8, 6)
    low.scope("f", ROWS, ["X[i,j]"], "T[i,j]")
    low.scope("g", loops, [read], f"Y[{','.join(loops)}]")

    dag = extract(low.sdfg)

    assert [dag.scopes[scope].name for scope in dag.node_scope[dag.is_buffer]] == ["X", "T", "Y"]
    assert dag.volume_out[2] == prod(loops.values())


def test_materialised_array_is_a_buffer_even_in_order() -> None:
    low = two_scopes(ROWS, ROWS, "T[i,j]", "T[i,j]")
    low.sdfg.arrays["T"].storage = dace.StorageType.CPU_Heap

    assert extract(low.sdfg).is_buffer.sum() == 3


@pytest.mark.parametrize(("loops", "streams"), [({**ROWS, "k": 5}, True), ({"k": 5, **ROWS}, False)])
def test_accumulation_streams_only_if_innermost(loops: dict[str, int], *, streams: bool) -> None:
    low = LoweredSdfg()
    low.border("X", 8, 6, 5)
    low.border("Y", 8, 6)
    low.inner("T", 8, 6)
    low.scope("sum", loops, ["X[i,j,k]"], "T[i,j]", wcr=True)
    low.scope("g", ROWS, ["T[i,j]"], "Y[i,j]")

    dag = extract(low.sdfg)

    assert int(dag.is_buffer.sum()) == (2 if streams else 3)
    assert dag.kind[1] == NodeKind.DOWNSAMPLER
    assert (dag.volume_in[1], dag.volume_out[1]) == (240, 48)


def test_array_with_two_writers_is_a_buffer_and_a_fill_is_a_source() -> None:
    low = LoweredSdfg()
    low.border("X", 4)
    low.border("Y", 6)
    low.inner("T", 6)
    low.scope("fill", {"i": 6}, [], "T[i]")
    low.scope("copy", {"i": 4}, ["X[i]"], "T[i+1]")
    low.scope("g", {"i": 6}, ["T[i]"], "Y[i]")

    dag = extract(low.sdfg)

    assert edges(dag) == [
        "fill -> T volume=6 order=[0]",
        "X -> copy volume=4 order=[0]",
        "copy -> T volume=4 order=4@1",
        "T -> g volume=6 order=[0]",
        "g -> Y volume=6 order=[0]",
    ]
    assert dag.kind[0] == NodeKind.SOURCE


def test_tensor_read_twice_gives_two_edges() -> None:
    low = LoweredSdfg()
    low.border("X", 8)
    low.border("Y", 8)
    low.inner("T", 8)
    low.scope("f", {"i": 8}, ["X[i]"], "T[i]")
    low.scope("square", {"i": 8}, ["T[i]", "T[i]"], "Y[i]")

    assert edges(extract(low.sdfg)).count("f -> square volume=8 order=[0]") == 2


def test_one_unordered_read_sends_all_reads_of_the_array_through_memory() -> None:
    low = LoweredSdfg()
    low.border("X", 8)
    low.border("Y", 8)
    low.inner("T", 8)
    low.scope("f", {"i": 8}, ["X[i]"], "T[i]")
    low.scope("symmetric", {"i": 8}, ["T[i]", "T[7-i]"], "Y[i]")

    assert edges(extract(low.sdfg))[1:4] == [
        "f -> T volume=8 order=[0]",
        "T -> symmetric volume=8 order=[0]",
        "T -> symmetric volume=8 order=8@-1",
    ]


def test_families_of_as_many_members_stream_one_to_one() -> None:
    low = LoweredSdfg()
    low.border("X", 8, 6)
    low.border("Y", 8, 6)
    low.inner("T", 8, 6)
    low.scope("f", ROWS, ["X[i,j]"], "T[i,j]", spatial="i")
    low.scope("g", {"a": 8, "b": 6}, ["T[a,b]"], "Y[a,b]", spatial="a")

    assert "f[0:8] -> g[0:8] volume=6 order=[1]" in edges(extract(low.sdfg))


def test_families_that_slice_differently_meet_in_a_buffer() -> None:
    low = LoweredSdfg()
    low.border("X", 8, 8)
    low.border("Y", 8, 8)
    low.inner("T", 8, 8)
    low.scope("f", {"i": 8, "j": 8}, ["X[i,j]"], "T[i,j]", spatial="i")
    low.scope("g", {"j": 8, "i": 8}, ["T[i,j]"], "Y[i,j]", spatial="j")

    assert extract(low.sdfg).is_buffer.sum() == 3


@pytest.mark.parametrize(
    ("loops", "streams"),
    [
        ({"i": 8, "j": 6}, True),  # one element of each of the 6 members per turn
        ({"j": 6, "i": 8}, False),  # all of a member, then all of the next
    ],
)
def test_gather_takes_turns(loops: dict[str, int], *, streams: bool) -> None:
    low = LoweredSdfg()
    low.border("X", 8, 6)
    low.border("Y", 8, 6)
    low.inner("T", 8, 6)
    low.scope("f", {"j": 6, "i": 8}, ["X[i,j]"], "T[i,j]", spatial="j")
    low.scope("gather", loops, ["T[i,j]"], "Y[i,j]")

    assert ("f[0:6] -> gather volume=8 order=[0]" in edges(extract(low.sdfg))) is streams


def test_gather_by_one_flat_loop() -> None:
    low = LoweredSdfg()
    low.border("X", 8, 6)
    low.border("Y", 48)
    low.inner("T", 8, 6)
    low.view("flat", "T", 48)
    low.scope("f", {"j": 6, "i": 8}, ["X[i,j]"], "T[i,j]", spatial="j")
    low.scope("gather", {"n": 48}, ["flat[n]"], "Y[n]")

    assert "f[0:6] -> gather volume=8 order=[0]" in edges(extract(low.sdfg))


def test_gather_beside_another_operand_becomes_a_buffer() -> None:
    """8 elements of each member against 48 of the bias: input edges would differ."""
    low = LoweredSdfg()
    low.border("X", 8, 6)
    low.border("bias", 6)
    low.border("Y", 8, 6)
    low.inner("T", 8, 6)
    low.scope("f", {"j": 6, "i": 8}, ["X[i,j]"], "T[i,j]", spatial="j")
    low.scope("add", ROWS, ["T[i,j]", "bias[j]"], "Y[i,j]")

    assert edges(extract(low.sdfg))[2:4] == [
        "T -> add volume=48 order=[0,1]",
        "bias -> add volume=48 distinct=6 order=8@0,6@1",
    ]


def test_broadcast_needs_the_whole_array_in_every_member() -> None:
    low = LoweredSdfg()
    low.border("X", 8)
    low.border("Y", 4, 8)
    low.inner("T", 8)
    low.scope("f", {"k": 8}, ["X[k]"], "T[k]")
    low.scope("g", {"i": 4, "k": 8}, ["T[k]"], "Y[i,k]", spatial="i")

    assert "f -> g[0:4] volume=8 order=[0]" in edges(extract(low.sdfg))


def test_scatter_is_a_buffer() -> None:
    low = LoweredSdfg()
    low.border("X", 4, 8)
    low.border("Y", 4, 8)
    low.inner("T", 4, 8)
    low.scope("f", {"i": 4, "k": 8}, ["X[i,k]"], "T[i,k]")
    low.scope("g", {"i": 4, "k": 8}, ["T[i,k]"], "Y[i,k]", spatial="i")

    assert "T -> g[0:4] volume=8 order=[1]" in edges(extract(low.sdfg))


def test_whole_array_volumes_fall_back_to_buffers_where_they_are_unequal() -> None:
    """One-to-one families would carry 48 elements on the streams, but 6 at the buffers of the same tasks."""
    low = LoweredSdfg()
    low.border("X", 8, 6)
    low.border("Y", 8, 6)
    low.inner("T", 8, 6)
    low.inner("U", 8, 6)
    low.border("bias", 8, 6)
    low.scope("f", ROWS, ["X[i,j]"], "T[i,j]", spatial="i")
    low.scope("g", ROWS, ["T[i,j]"], "U[i,j]", spatial="i")
    low.scope("h", ROWS, ["U[i,j]", "bias[i,j]"], "Y[i,j]", spatial="i")

    assert edges(extract(low.sdfg, ExtractionOptions(Volumes.ARRAY))) == [
        "X -> f[0:8] volume=6 order=[1]",
        "f[0:8] -> g[0:8] volume=48 order=[1]",
        "g[0:8] -> U volume=6 order=[1]",
        "U -> h[0:8] volume=6 order=[1]",
        "bias -> h[0:8] volume=6 order=[1]",
        "h[0:8] -> Y volume=6 order=[1]",
    ]


def test_gather_of_other_elements_than_the_family_writes_is_a_buffer() -> None:
    """The same loops, but one row further: the order alone proves nothing."""
    low = LoweredSdfg()
    low.border("X", 8, 6)
    low.border("Y", 8, 6)
    low.inner("T", 9, 6)
    low.scope("f", {"j": 6, "i": 8}, ["X[i,j]"], "T[i,j]", spatial="j")
    low.scope("gather", {"i": 8, "j": 6}, ["T[i+1,j]"], "Y[i,j]")

    assert edges(extract(low.sdfg))[1:3] == ["f[0:6] -> T volume=8 order=8@6", "T -> gather volume=48 order=48@1"]


@pytest.mark.parametrize(("written", "read", "streams"), [(6, 6, True), (5, 5, True), (6, 5, False), (5, 6, False)])
def test_grouped_families_stream_only_if_their_last_members_agree(written: int, read: int, *, streams: bool) -> None:
    """In three tasks of two iterations each, but that the last of 5 has one."""
    low = LoweredSdfg()
    low.border("X", written)
    low.border("Y", read)
    low.inner("T", 6)
    low.scope("f", {"i": written}, ["X[i]"], "T[i]", spatial="i")
    low.scope("g", {"i": read}, ["T[i]"], "Y[i]", spatial="i")

    dag = extract(low.sdfg, ExtractionOptions(granularity=Granularity(max_tasks=3)))

    assert any(line.startswith("f[") and " -> g[" in line for line in edges(dag)) is streams


@pytest.mark.parametrize(("loops", "spatial"), [({"j": 3, "i": 2}, ""), ({"i": 2, "j": 3}, "i")])
def test_elements_that_two_tasks_write_are_a_buffer(loops: dict[str, int], spatial: str) -> None:
    """Read as they are written, by one task in turn or by as many: but the first of two writes is not the last."""
    low = LoweredSdfg()
    low.border("X", 2, 3)
    low.border("Y", 2, 3)
    low.inner("T", 4)
    low.scope("f", {"i": 2, "j": 3}, ["X[i,j]"], "T[i+j]", spatial="i")
    low.scope("g", loops, ["T[i+j]"], "Y[i,j]", spatial=spatial)

    assert extract(low.sdfg).is_buffer.sum() == 3


def test_whole_array_volumes_fall_back_to_buffers_beside_stored_results() -> None:
    """Each task would hand on 48 elements, and store 6."""
    low = LoweredSdfg()
    for name in "XYZ":
        low.border(name, 8, 6)
    low.inner("T", 8, 6)
    low.scope("f", ROWS, ["X[i,j]"], ["T[i,j]", "Z[i,j]"], spatial="i")
    low.scope("g", ROWS, ["T[i,j]"], "Y[i,j]", spatial="i")

    assert [line for line in edges(extract(low.sdfg, ExtractionOptions(Volumes.ARRAY))) if "f[" in line] == [
        "X -> f[0:8] volume=6 order=[1]",
        "f[0:8] -> T volume=6 order=[1]",
        "f[0:8] -> Z volume=6 order=[1]",
    ]


def viewed(name: str, of: str, begin: int, rows: int, low: LoweredSdfg) -> None:
    """Add a view of some rows of 6 elements of an array, or of another view."""
    low.sdfg.add_view(name, (rows, 6), dace.float32)
    node = low.state.add_access(name)
    part = dace.Memlet(f"{of}[{begin}:{begin + rows}, 0:6]")
    low.state.add_edge(low._node(of), None, node, "views", part)
    low._nodes[name] = node


@pytest.mark.parametrize(("first", "streams"), [(3, True), (0, False), (1, False), (2, False)])
def test_views_of_a_part_begin_where_the_part_begins(first: int, *, streams: bool) -> None:
    """Rows 3 to 6, as rows 2 and on of what begins with row 1."""
    low = LoweredSdfg()
    low.border("X", 4, 6)
    low.border("Y", 4, 6)
    low.inner("T", 8, 6)
    viewed("tail", "T", 1, 7, low)
    viewed("middle", "tail", 2, 4, low)
    low.scope("f", {"i": 4, "j": 6}, ["X[i,j]"], f"T[i+{first},j]")
    low.scope("g", {"i": 4, "j": 6}, ["middle[i,j]"], "Y[i,j]")

    assert any(line.startswith("f -> g") for line in edges(extract(low.sdfg))) is streams


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("declared", Granularity()),
        ("max-tasks=16", Granularity(max_tasks=16)),
        ("split=4", Granularity(split=4)),
        ("split=4,max-tasks=2", Granularity(2, 4)),
    ],
)
def test_granularity_is_parsed(text: str, expected: Granularity) -> None:
    assert parse_granularity(text) == expected
    assert parse_granularity(str(expected)) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "granularity '': '' against declared, max-tasks=N, split=N or [ORIGIN:]pieces=N"),
        (
            "splt=4",
            "granularity 'splt=4': 'splt=4' against declared, max-tasks=N, split=N or [ORIGIN:]pieces=N (did you mean",
        ),
        ("pieces=4,split=3", "granularity 'pieces=4,split=3': pieces=N beside split"),
        ("split", "granularity 'split': split '' against a whole number from 1 to 10000000"),
        ("split=0", "granularity 'split=0': split '0' against a whole number from 1 to 10000000"),
        ("split=-2", "granularity 'split=-2': split '-2' against a whole number from 1 to 10000000"),
        ("split=1e3", "granularity 'split=1e3': split '1e3' against"),
        ("max-tasks=99999999999999999999999", "granularity 'max-tasks=99999999999999999999999': max-tasks '999"),
        ("split=2,split=3", "granularity 'split=2,split=3': 'split' given twice against once"),
    ],
)
def test_bad_granularity_is_refused(text: str, message: str) -> None:
    with pytest.raises(UserError, match=f"^{re.escape(message)}"):
        parse_granularity(text)


def test_more_tasks_than_fit_the_memory_are_refused_or_grouped() -> None:
    low = LoweredSdfg()
    for name in "XY":
        low.border(name, 10**6, 10**6)
    low.scope("f", {"i": 10**6, "j": 10**6}, ["X[i,j]"], "Y[i,j]", spatial="i,j")

    message = "scope 'f': 1000000000000 of 1000000000000 tasks against at most 10000000 (of a model: --granularity"
    with pytest.raises(UserError, match=f"^{re.escape(message)}"):
        extract(low.sdfg)
    assert extract(low.sdfg, ExtractionOptions(granularity=Granularity(max_tasks=64))).tasks_count == 64


def test_volumes_beyond_64_bits_are_refused() -> None:
    low = LoweredSdfg()
    for name in "XY":
        low.border(name, 2**40, 2**40)
    low.scope("f", {"i": 2**40, "j": 2**40}, ["X[i,j]"], "Y[i,j]")

    with pytest.raises(UserError, match="scope 'f': 1208925819614629174706176 accesses against at most"):
        extract(low.sdfg)


def product(rows: int = 7, columns: int = 10) -> LoweredSdfg:
    """Inner products: one task per element of ``C[i, j]``."""
    low = LoweredSdfg()
    low.border("A", rows, 5)
    low.border("B", 5, columns)
    low.border("C", rows, columns)
    loops = {"i": rows, "j": columns, "k": 5}
    low.scope("ip", loops, ["A[i,k]", "B[k,j]"], "C[i,j]", spatial="i,j", wcr=True)
    return low


@pytest.mark.parametrize(
    ("most", "volumes"),
    [
        (100, [5] * 70),
        (70, [5] * 70),
        (30, [15, 15, 15, 5] * 7),
        (7, [50] * 7),
        (3, [150, 150, 50]),
        (1, [350]),
    ],
)
def test_iterations_of_a_family_are_grouped(most: int, volumes: list[int]) -> None:
    dag = extract(product().sdfg, ExtractionOptions(granularity=Granularity(max_tasks=most)))

    tasks = dag.is_computational
    assert dag.volume_in[tasks].tolist() == volumes
    assert dag.volume_out[tasks].tolist() == [volume // 5 for volume in volumes]
    assert int(dag.volume_out[tasks].sum()) == 70


@pytest.mark.parametrize(("pieces", "volumes"), [(1, [48]), (3, [18, 18, 12]), (8, [6] * 8), (16, [3] * 16)])
def test_a_big_task_is_split_along_its_outermost_loops(pieces: int, volumes: list[int]) -> None:
    low = LoweredSdfg()
    low.border("X", 8, 6)
    low.border("Y", 8, 6)
    low.scope("copy", ROWS, ["X[i,j]"], "Y[i,j]")

    dag = extract(low.sdfg, ExtractionOptions(granularity=Granularity(split=pieces)))

    assert dag.volume_in[dag.is_computational].tolist() == volumes


def test_accumulation_loops_are_not_split() -> None:
    low = LoweredSdfg()
    low.border("X", 8, 6)
    low.border("Y", 6)
    low.scope("sum", ROWS, ["X[i,j]"], "Y[j]", wcr=True)

    assert extract(low.sdfg, ExtractionOptions(granularity=Granularity(split=4))).tasks_count == 1


@pytest.mark.parametrize(("size", "tasks"), [(6, 1), (7, 4), (30, 4)])
def test_small_tasks_are_not_split(size: int, tasks: int) -> None:
    """Small is what has no more than one in 4 * 4 of the work of all."""
    low = LoweredSdfg()
    low.border("X", 100)
    low.border("x", size)
    low.border("Y", 100)
    low.border("y", size)
    low.scope("big", {"i": 100}, ["X[i]"], "Y[i]")
    low.scope("small", {"i": size}, ["x[i]"], "y[i]")

    dag = extract(low.sdfg, ExtractionOptions(granularity=Granularity(split=4)))

    assert [dag.scopes[scope].name for scope in dag.node_scope[dag.is_computational]] == ["big"] * 4 + ["small"] * tasks


def test_tasks_that_stream_with_larger_ones_are_not_split() -> None:
    """The family has 8 * 60 cycles of work, the gather 8 * 6: less than one in 4 of what runs together."""
    low = LoweredSdfg()
    low.border("X", 8, 6, 10)
    low.border("Y", 8, 6)
    low.inner("T", 8, 6)
    loops = {"j": 6, "i": 8, "k": 10}
    low.scope("f", loops, ["X[i,j,k]"], "T[i,j]", spatial="j", wcr=True)
    low.scope("gather", ROWS, ["T[i,j]"], "Y[i,j]")

    assert extract(low.sdfg, ExtractionOptions(granularity=Granularity(split=4))).tasks_count == 7
    assert extract(low.sdfg, ExtractionOptions(granularity=Granularity(split=16))).tasks_count == 6 + 16


def test_split_tasks_still_stream_one_to_one() -> None:
    low = two_scopes(ROWS, ROWS, "T[i,j]", "T[i,j]")

    split = extract(low.sdfg, ExtractionOptions(granularity=Granularity(split=3)))

    assert edges(split)[2:4] == [
        "f[0:2] -> g[0:2] volume=18 order=18@1",
        "f[2] -> g[2] volume=12 order=18@1",
    ]


def test_kernels_and_tensors_come_along() -> None:
    low = LoweredSdfg()
    low.border("W", 8, 6)
    low.border("X", 48)
    low.border("Y", 8, 6)
    low.inner("T", 8, 6)
    low.view("X_rows", "X", 8, 6)
    kernel = Kernel(
        "add", "Elementwise", "op", "map", KernelVariant.ELEMENTWISE_INPUT1_INPUT2, 1, 8, 1, 6, ("X_rows", "W"), ("T",)
    )
    low.scope("op.add", ROWS, ["X_rows[i,j]", "W[i,j]"], "T[i,j]", kernel=kernel)
    low.scope("op.copy", ROWS, ["T[i,j]"], "Y[i,j]")

    dag = extract(low.sdfg, parameters=("W",))

    assert [(kernel.name, kernel.inputs) for kernel in dag.kernels] == [("add", ("X", "W"))]
    assert [(tensor.name, tensor.elements, tensor.role) for tensor in dag.tensors] == [
        ("X", 48, TensorRole.INPUT),
        ("W", 48, TensorRole.PARAMETER),
        ("T", 48, TensorRole.INTERMEDIATE),
    ]
    assert [(scope.name, scope.kernel, scope.origin) for scope in dag.scopes if scope.kernel >= 0] == [
        ("op.add", 0, "op")
    ]


def refuse(low: LoweredSdfg, message: str) -> None:
    with pytest.raises(UserError, match=f"^{re.escape(message)}") as caught:
        extract(low.sdfg)

    assert "\n" not in str(caught.value)


def simple(read: str = "X[i]", loops: dict[str, int] | None = None) -> LoweredSdfg:
    low = LoweredSdfg()
    low.border("X", 16)
    low.border("Y", 16)
    low.scope("f", loops or {"i": 8}, [read], "Y[i]")
    return low


def test_several_states_are_refused() -> None:
    low = simple()
    low.sdfg.add_state_after(low.state)

    refuse(low, "sdfg 'hand': 2 states or regions against one state")


@pytest.mark.parametrize("index", ["i*i", "i % 4", "i // 2"])
def test_index_that_is_not_affine_is_refused(index: str) -> None:
    refuse(simple(f"X[{index}]"), f"scope 'f': access X[{dace.Memlet(f'X[{index}]').subset}]: index ")


def test_index_with_a_free_symbol_is_refused() -> None:
    low = simple("X[i+N]")

    refuse(low, "scope 'f': access X[N + i]: index N + i against an affine function of i")


def test_range_of_elements_is_refused() -> None:
    refuse(simple("X[0:i+1]"), "scope 'f': access X[0:i + 1]: a range against one element")


def test_symbolic_range_is_refused() -> None:
    low = simple()
    entry = next(node for node in low.state.nodes() if isinstance(node, dace.nodes.MapEntry))
    entry.map.range = dace.subsets.Range([(0, dace.symbol("N") - 1, 1)])

    refuse(low, "scope 'f': range of 'i': 0, N - 1, 1 against constants")


def test_strided_range_is_refused() -> None:
    low = simple()
    entry = next(node for node in low.state.nodes() if isinstance(node, dace.nodes.MapEntry))
    entry.map.range = dace.subsets.Range([(1, 7, 2)])

    refuse(low, "scope 'f': range of 'i': 1:8:2 against 0:extent")


def test_tasklet_at_top_level_is_refused() -> None:
    low = simple()
    low.state.add_tasklet("loose", {}, {"out"}, "out = 0")

    refuse(low, "tasklet 'loose': at top level against map scopes alone")


def test_nested_sdfg_is_refused() -> None:
    low = simple()
    low.state.add_nested_sdfg(dace.SDFG("inner"), {}, {})

    refuse(low, "a nested SDFG 'inner': at top level against map scopes alone")


def test_map_in_a_map_is_refused() -> None:
    low = simple()
    entry, exit_ = low.state.add_map("outer", {"i": "0:4"})
    inner, inner_exit = low.state.add_map("inner", {"j": "0:4"})
    for start, end in ((entry, inner), (inner, inner_exit), (inner_exit, exit_)):
        low.state.add_nedge(start, end, dace.Memlet())

    refuse(low, "scope 'outer': contains MapEntry")


def test_copy_without_a_scope_is_refused() -> None:
    low = simple()
    low.border("Z", 16)
    low.state.add_nedge(low.state.add_access("X"), low.state.add_access("Z"), dace.Memlet("X[0:16]"))

    refuse(low, "array 'X': copied to 'Z' against a map scope that copies")


def test_array_that_nobody_writes_is_refused() -> None:
    low = simple()
    low.inner("T", 16)
    low.scope("g", {"i": 8}, ["T[i]"], "Y[i+8]")

    refuse(low, "scope 'g': reads 'T', which no scope writes, against an array with a writer")


def test_update_in_place_is_refused() -> None:
    low = simple()
    low.scope("g", {"i": 8}, ["Y[i]"], "Y[i+8]")

    refuse(low, "scope 'g': reads 'Y', which is written again after or while it is read")


def test_results_of_different_size_are_refused() -> None:
    low = LoweredSdfg()
    for name, size in (("X", 16), ("Y", 16), ("Z", 4)):
        low.border(name, size)
    low.scope("f", {"i": 4, "j": 4}, ["X[4*i+j]"], ["Y[4*i+j]", "Z[i]"])

    refuse(low, "scope 'f': a task writes 16 elements of 'Y' and 4 of 'Z' against one number (split the scope)")


def test_unknown_spatial_parameter_is_refused() -> None:
    low = simple()
    tasklet = next(node for node in low.state.nodes() if isinstance(node, dace.nodes.Tasklet))
    tasklet.location = {**tasklet.location, "spatial": "q"}

    refuse(low, "scope 'f': spatial parameter 'q' against i")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"spatail": "i"}, "scope 'f': annotation has no 'spatail' (did you mean 'spatial'?)"),
        ({"role": "initialisation"}, "scope 'f': role 'initialisation' against 'init' or none"),
    ],
)
def test_misspelt_annotation_is_refused(wrong: dict[str, str], message: str) -> None:
    low = simple()
    tasklet = next(node for node in low.state.nodes() if isinstance(node, dace.nodes.Tasklet))
    tasklet.location = {**tasklet.location, **wrong}

    refuse(low, message)


def test_broken_kernel_is_refused() -> None:
    low = simple()
    tasklet = next(node for node in low.state.nodes() if isinstance(node, dace.nodes.Tasklet))
    tasklet.location = {**tasklet.location, "kernel": '{"name": "x"}'}

    refuse(low, "scope 'f': kernel '{\"name\": \"x\"}' against the fields of a kernel")


def test_extraction_does_not_change_the_sdfg() -> None:
    low = product()
    before = low.sdfg.hash_sdfg()
    extract(low.sdfg)

    assert low.sdfg.hash_sdfg() == before


def test_extraction_survives_saving() -> None:
    low = product()

    assert extract(dace.SDFG.from_json(low.sdfg.to_json())) == extract(low.sdfg)


def test_a_hundred_thousand_tasks_are_extracted_quickly() -> None:
    dag = extract(product(300, 400).sdfg)

    assert (dag.tasks_count, dag.edges_count) == (120_000, 360_000)


def test_front_of_the_package_does_not_load_dace() -> None:
    code = "import sys, dfcompile.canonical_dag; print([name for name in ('dace', 'networkx') if name in sys.modules])"

    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"
