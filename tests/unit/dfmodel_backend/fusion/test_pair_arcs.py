"""Figures of all pairs of down-sets: the same in tables and without, in space that does not grow with the square."""

import itertools
import math
import tracemalloc
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.dfmodel_backend import DataflowGraph, MappingOptions, System, TensorKind
from dfcompile.dfmodel_backend.columns import members_of
from dfcompile.dfmodel_backend.fusion import fuse as fuse_module
from dfcompile.dfmodel_backend.fusion.fuse import PairArcs, pair_arcs
from dfcompile.dfmodel_backend.intra_chip import flow_columns
from dfcompile.dfmodel_backend.intra_chip.graph_model import GraphModel
from dfcompile.dfmodel_backend.intra_chip.set_times import set_figures
from tests.examples import examples
from tests.unit.dfmodel_backend.graphs import elementwise, graphs, machine, machines, tensor


def listed(model: GraphModel) -> PairArcs:
    lattice = model.shape.lattice(3000)
    assert lattice is not None
    arcs = pair_arcs(
        model, tuple(lattice), model.shape.most_kernels, 10**6, set_figures(model, np.eye(len(model.works), dtype=bool))
    )
    assert arcs is not None
    return arcs


def rows(arcs: PairArcs) -> list[tuple[int, int, float, float]]:
    columns = arcs.before.tolist(), arcs.after.tolist(), arcs.time_ns.tolist(), arcs.dram_bytes.tolist()
    return list(zip(*columns, strict=True))


def recurrence(steps: int) -> DataflowGraph:
    """Return a line of kernels that all read what the first one makes, a result, an input and weights."""
    kernels = tuple(elementwise(f"k{step}", 64 + step) for step in range(steps))
    first, *others = (kernel.name for kernel in kernels)
    states = tuple(
        tensor(f"s{step}", TensorKind.INTERMEDIATE, 40, one.name, other.name)
        for step, (one, other) in enumerate(itertools.pairwise(kernels))
    )
    shared = (
        tensor("x", TensorKind.INTERMEDIATE, 64 * steps, first, *others),
        tensor("y", TensorKind.OUTPUT, 100, first, *others),
        tensor("input", TensorKind.INPUT, 3000, "", first, *others),
        tensor("w", TensorKind.WEIGHT, 400, "", *others),
    )
    return DataflowGraph.of("recurrence", kernels, (*states, *shared))


@examples(40)
@given(graph=graphs(most=7), system=machines(), cells=st.integers(1, 64))
def test_pairs_side_by_side_have_the_figures_of_few_at_a_time(graph: DataflowGraph, system: System, cells: int) -> None:
    expected = rows(listed(GraphModel(graph, system.machine, MappingOptions())))
    with patch.object(fuse_module, "CELLS", cells):
        found = rows(listed(GraphModel(graph, system.machine, MappingOptions())))

    assert found == expected


@examples(40)
@given(graph=graphs(most=7), system=machines(), narrow=st.integers(0, 2), block=st.integers(1, 4096))
def test_tensors_without_tables_have_the_same_figures(
    graph: DataflowGraph, system: System, narrow: int, block: int
) -> None:
    expected = rows(listed(GraphModel(graph, system.machine, MappingOptions())))
    with patch.object(flow_columns, "NARROW", narrow), patch.object(flow_columns, "BLOCK_BYTES", block):
        found = rows(listed(GraphModel(graph, system.machine, MappingOptions())))

    assert found == expected


@examples(10)
@given(system=machines(), steps=st.integers(flow_columns.NARROW + 2, flow_columns.NARROW + 12))
def test_many_readers_cost_what_each_set_costs(system: System, steps: int) -> None:
    model = GraphModel(recurrence(steps), system.machine, MappingOptions())
    prefixes = members_of(tuple((1 << done) - 1 for done in range(steps + 1)), steps)
    pairs = [(one, other) for other in range(steps + 1) for one in range(other)]
    expected = []
    for one, other in pairs:
        before, members = prefixes[one : one + 1], prefixes[other : other + 1] & ~prefixes[one]
        (time_ns,), (dram_bytes,) = (column.tolist() for column in set_figures(model, members))
        if math.isfinite(time_ns) and model.waiting_bytes(before, members)[0] <= model.dram_room:
            expected.append((one, other, time_ns, dram_bytes))

    assert rows(listed(model)) == expected


def line_of_different_kernels(count: int) -> DataflowGraph:
    """Return a line of kernels, no two of the same size, whose tensors fit any chip."""
    kernels = tuple(elementwise(f"k{step}", 2 + step) for step in range(count))
    between = tuple(
        tensor(f"t{step}", TensorKind.INTERMEDIATE, 40, one.name, other.name)
        for step, (one, other) in enumerate(itertools.pairwise(kernels))
    )
    ends = (tensor("x", TensorKind.INPUT, 40, "", "k0"), tensor("y", TensorKind.OUTPUT, 40, f"k{count - 1}"))
    return DataflowGraph.of("line", kernels, (*between, *ends))


@pytest.mark.parametrize(
    ("graph", "cores", "most_mb"),
    [
        pytest.param(recurrence(150), 16, 20, id="a table for each number of readers took a gigabyte"),
        pytest.param(line_of_different_kernels(165), 1000, 60, id="counts of each size per pair took 280 MB"),
    ],
)
def test_memory_of_many_pairs_is_bounded(graph: DataflowGraph, cores: int, most_mb: int) -> None:
    model = GraphModel(graph, machine(cores=cores).machine, MappingOptions())
    tracemalloc.start()
    listed(model)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < most_mb * 2**20
