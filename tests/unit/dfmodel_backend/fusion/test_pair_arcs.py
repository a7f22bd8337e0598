"""Figures of all pairs of down-sets: the same in tables and without, in space that does not grow with the square."""

import itertools
import math
import tracemalloc
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from dfcompile.dfmodel_backend import DataflowGraph, MappingOptions, System, TensorKind
from dfcompile.dfmodel_backend.columns import members_of
from dfcompile.dfmodel_backend.fusion.pair_arcs import PairArcs, pair_arcs
from dfcompile.dfmodel_backend.intra_chip import pair_bytes
from dfcompile.dfmodel_backend.intra_chip.graph_model import GraphModel
from dfcompile.dfmodel_backend.intra_chip.set_times import set_figures
from tests.examples import examples
from tests.unit.dfmodel_backend.graphs import elementwise, graphs, machine, machines, tensor


def listed(model: GraphModel) -> PairArcs:
    lattice = model.shape.lattice(3000)
    assert lattice is not None
    arcs = pair_arcs(model, tuple(lattice), model.shape.most_kernels, 10**6)
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
@given(graph=graphs(most=7), system=machines(), narrow=st.integers(0, 2), block=st.integers(1, 4096))
def test_tensors_without_tables_have_the_same_figures(
    graph: DataflowGraph, system: System, narrow: int, block: int
) -> None:
    expected = rows(listed(GraphModel(graph, system.machine, MappingOptions())))
    with patch.object(pair_bytes, "NARROW", narrow), patch.object(pair_bytes, "BLOCK_BYTES", block):
        found = rows(listed(GraphModel(graph, system.machine, MappingOptions())))

    assert found == expected


@examples(10)
@given(system=machines(), steps=st.integers(pair_bytes.NARROW + 2, pair_bytes.NARROW + 12))
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


def test_memory_of_a_long_recurrence_is_bounded() -> None:
    """A table for each number of readers took a gigabyte."""
    model = GraphModel(recurrence(300), machine(cores=16).machine, MappingOptions())
    tracemalloc.start()
    listed(model)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 100 * 2**20
