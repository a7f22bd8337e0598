"""The convolution of the published table: 28x28 input, 6 filters 5x5, bias, by three expansions of its product."""

import json
from functools import cache

import pytest

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.extraction import ExtractionOptions, Granularity, extract
from dfcompile.options import Volumes
from tests.locations import SCHEDULES
from tests.lowered_sdfg import LoweredSdfg

SIZE, FILTERS, KERNEL = 28, 6, 5


def convolution(expansion: str, size: int = SIZE, filters: int = FILTERS, kernel: int = KERNEL) -> LoweredSdfg:
    """``Y = W * X + b`` with the product ``C[n, m] = A[n, k] B[k, m]`` by ``mv``, ``op`` or ``lmv``."""
    side = size - kernel + 1
    n, m, k = filters, side * side, kernel * kernel
    low = LoweredSdfg("convolution")
    low.border("X", 1, 1, size, size)
    low.border("W", n, 1, kernel, kernel)
    low.border("bias", n)
    low.border("Y", 1, n, side, side)
    low.memory("A", n, k)
    low.memory("B", k, m)
    low.memory("biased", n, m)
    low.inner("C", n, m)
    low.view("W_rows", "W", n, k)
    windows = {"r": kernel, "s": kernel, "y": side, "x": side}
    low.scope("conv1.im2col", windows, ["X[0,0,y+r,x+s]"], f"B[{kernel}*r+s,{side}*y+x]")
    low.scope("conv1.weights", {"i": n, "k": k}, ["W_rows[i,k]"], "A[i,k]")
    {"mv": _mv, "op": _op, "lmv": _lmv}[expansion](low, n, m, k)
    low.scope("conv1.bias", {"i": n, "j": m}, ["C[i,j]", "bias[i]"], "biased[i,j]")
    low.scope("conv1.output", {"i": n, "y": side, "x": side}, [f"biased[i,{side}*y+x]"], "Y[0,i,y,x]")
    return low


def _mv(low: LoweredSdfg, n: int, m: int, k: int) -> None:
    low.inner("rows", n, k)
    low.inner("parts", n, m)
    low.scope("conv1.matmul.broadcast", {"i": n, "k": k}, ["A[i,k]"], "rows[i,k]")
    loops = {"j": m, "i": n, "k": k}
    low.scope("conv1.matmul.mv", loops, ["rows[i,k]", "B[k,j]"], "parts[i,j]", spatial="j", wcr=True)
    low.scope("conv1.matmul.gather", {"i": n, "j": m}, ["parts[i,j]"], "C[i,j]")


def _op(low: LoweredSdfg, n: int, m: int, k: int) -> None:
    low.inner("products", k, n, m)
    loops = {"k": k, "j": m, "i": n}
    low.scope("conv1.matmul.op", loops, ["A[i,k]", "B[k,j]"], "products[k,i,j]", spatial="k")
    low.scope("conv1.matmul.reduce", {"j": m, "i": n, "k": k}, ["products[k,i,j]"], "C[i,j]", wcr=True)


def _lmv(low: LoweredSdfg, n: int, m: int, k: int) -> None:
    low.inner("columns", k, m)
    low.inner("parts", n, m)
    low.scope("conv1.matmul.broadcast", {"j": m, "k": k}, ["B[k,j]"], "columns[k,j]")
    loops = {"i": n, "j": m, "k": k}
    low.scope("conv1.matmul.lmv", loops, ["A[i,k]", "columns[k,j]"], "parts[i,j]", spatial="i", wcr=True)
    low.scope("conv1.matmul.gather", {"j": m, "i": n}, ["parts[i,j]"], "C[i,j]")


@cache
def extracted(expansion: str, volumes: Volumes = Volumes.EXACT) -> CanonicalDag:
    """The published one as a canonical DAG."""
    return extract(convolution(expansion).sdfg, ExtractionOptions(volumes))


def io_elements(dag: CanonicalDag) -> int:
    touches = dag.is_buffer[dag.edge_source] | dag.is_buffer[dag.edge_target]
    return int(dag.edge_volume[touches].sum())


def volumes_between(dag: CanonicalDag, source: str, target: str) -> list[int]:
    """Volumes of all edges between two scopes."""
    return [
        int(volume)
        for producer, consumer, volume in zip(dag.edge_source, dag.edge_target, dag.edge_volume, strict=True)
        if (dag.scopes[dag.node_scope[producer]].name, dag.scopes[dag.node_scope[consumer]].name) == (source, target)
    ]


@pytest.mark.parametrize("volumes", list(Volumes))
@pytest.mark.parametrize(
    ("expansion", "io", "tasks", "buffers"),
    [("mv", 129_474, 582, 7), ("op", 222_636, 30, 8), ("lmv", 150_636, 12, 8)],
)
def test_published_io_and_task_counts(expansion: str, io: int, tasks: int, buffers: int, volumes: Volumes) -> None:
    dag = extracted(expansion, volumes)

    assert (io_elements(dag), dag.tasks_count, int(dag.is_buffer.sum())) == (io, tasks, buffers)


NK, KM, NM, KNM = 150, 14_400, 3_456, 86_400


@pytest.mark.parametrize(
    ("expansion", "source", "target", "exact", "array"),
    [
        ("mv", "X", "conv1.im2col", [KM], [KM]),
        ("mv", "conv1.im2col", "B", [KM], [KM]),
        ("mv", "A", "conv1.matmul.broadcast", [NK], [NK]),
        ("mv", "conv1.matmul.broadcast", "conv1.matmul.mv", [NK] * 576, [NK] * 576),
        ("mv", "B", "conv1.matmul.mv", [NK] * 576, [NK] * 576),
        ("mv", "conv1.matmul.mv", "conv1.matmul.gather", [6] * 576, [NM] * 576),
        ("mv", "conv1.matmul.gather", "conv1.bias", [NM], [NM]),
        ("mv", "bias", "conv1.bias", [NM], [NM]),
        ("op", "A", "conv1.matmul.op", [NM] * 25, [NM] * 25),
        ("op", "B", "conv1.matmul.op", [NM] * 25, [NM] * 25),
        ("op", "conv1.matmul.op", "conv1.matmul.reduce", [NM] * 25, [KNM] * 25),
        ("op", "conv1.matmul.reduce", "C", [NM], [NM]),
        ("op", "C", "conv1.bias", [NM], [NM]),
        ("lmv", "B", "conv1.matmul.broadcast", [KM], [KM]),
        ("lmv", "conv1.matmul.broadcast", "conv1.matmul.lmv", [KM] * 6, [KM] * 6),
        ("lmv", "A", "conv1.matmul.lmv", [KM] * 6, [KM] * 6),
        ("lmv", "conv1.matmul.lmv", "conv1.matmul.gather", [576] * 6, [NM] * 6),
        ("lmv", "conv1.matmul.gather", "C", [NM], [NM]),
        ("lmv", "conv1.bias", "biased", [NM], [NM]),
        ("lmv", "biased", "conv1.output", [NM], [NM]),
        ("lmv", "conv1.output", "Y", [NM], [NM]),
    ],
)
def test_edge_volumes(expansion: str, source: str, target: str, exact: list[int], array: list[int]) -> None:
    assert volumes_between(extracted(expansion), source, target) == exact
    assert volumes_between(extracted(expansion, Volumes.ARRAY), source, target) == array


def test_splitting_cuts_im2col_and_keeps_the_streams_of_the_product() -> None:
    dag = extract(convolution("op").sdfg, ExtractionOptions(granularity=Granularity(split=16)))

    assert volumes_between(dag, "X", "conv1.im2col") == [1_152, 1_152, 576] * 5
    assert volumes_between(dag, "conv1.matmul.op", "conv1.matmul.reduce") == [NM] * 25


# The record's node numbers in blocks: scope name and number of nodes, from node 1; node 0 is a pseudo source.
FIRST = (("X", 1), ("conv1.im2col", 1), ("B", 1), ("W", 1), ("conv1.weights", 1), ("A", 1))
NUMBERED = {
    "MV": (
        *FIRST,
        ("conv1.matmul.broadcast", 1),
        ("conv1.matmul.mv", 100),
        ("conv1.matmul.gather", 1),
        ("bias", 1),
        ("conv1.bias", 1),
        ("conv1.output", 1),
        ("biased", 1),
        ("Y", 1),
    ),
    "OP": (
        *FIRST,
        ("conv1.matmul.op", 9),
        ("conv1.matmul.reduce", 1),
        ("bias", 1),
        ("conv1.bias", 1),
        ("C", 1),
        ("conv1.output", 1),
        ("biased", 1),
        ("Y", 1),
    ),
    "LMV": (
        *FIRST,
        ("conv1.matmul.broadcast", 1),
        ("conv1.matmul.lmv", 3),
        ("conv1.matmul.gather", 1),
        ("bias", 1),
        ("conv1.bias", 1),
        ("C", 1),
        ("conv1.output", 1),
        ("biased", 1),
        ("Y", 1),
    ),
}


def recorded_edges(expansion: str, convention: str) -> list[tuple[str, str, int]]:
    records = json.loads(SCHEDULES.read_text())
    record = next(row for row in records if row["generator"] == f"conv-{expansion}-12x12-3x3x3-{convention}-volumes")
    names = ["start"]
    for scope, count in NUMBERED[expansion]:
        names.extend([scope] if count == 1 else [f"{scope}[{member}]" for member in range(count)])
    return sorted((names[source], names[target], volume) for source, target, volume, _ in record["edges"] if source)


@pytest.mark.parametrize(("convention", "volumes"), [("own", Volumes.EXACT), ("array", Volumes.ARRAY)])
@pytest.mark.parametrize("expansion", ["MV", "OP", "LMV"])
def test_edges_are_those_of_the_recorded_graphs(expansion: str, convention: str, volumes: Volumes) -> None:
    dag = extract(convolution(expansion.lower(), 12, 3, 3).sdfg, ExtractionOptions(volumes))

    assert sorted(
        (dag.node_name(int(source)), dag.node_name(int(target)), int(volume))
        for source, target, volume in zip(dag.edge_source, dag.edge_target, dag.edge_volume, strict=True)
    ) == recorded_edges(expansion, convention)
