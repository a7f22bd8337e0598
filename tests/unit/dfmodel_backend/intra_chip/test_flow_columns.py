"""Columns of tensors say of every set of kernels what adding up tensor by tensor says."""

import numpy as np
import pytest
from hypothesis import given

from dfcompile.dfmodel_backend import DataflowGraph, MappingOptions, Tensor, TensorKind, Use
from dfcompile.dfmodel_backend.columns import members_of
from dfcompile.dfmodel_backend.intra_chip import flow_columns
from dfcompile.dfmodel_backend.intra_chip.flow_columns import FlowColumns
from dfcompile.dfmodel_backend.intra_chip.graph_model import FINEST, GraphModel
from dfcompile.dfmodel_backend.kernel_sets import predecessors_of
from tests.examples import examples
from tests.unit.dfmodel_backend.graphs import graphs, machine


def subsets(count: int) -> list[int]:
    return list(range(1 << count))


def moved(inside: set[str], tensor: Tensor) -> tuple[int, int]:
    """Return what a set reads and writes of a tensor."""
    readers = {use.kernel for use in tensor.uses}
    if tensor.source not in inside:
        return (tensor.size_bytes if readers & inside else 0), 0
    return 0, (tensor.size_bytes if tensor.kind is TensorKind.OUTPUT or readers - inside else 0)


def waits(before: set[str], inside: set[str], tensor: Tensor) -> bool:
    readers, is_output = {use.kernel for use in tensor.uses}, tensor.kind is TensorKind.OUTPUT
    if not tensor.source or tensor.source in before:
        return is_output or bool(readers - before)
    return tensor.source in inside and (is_output or bool(readers - before - inside))


def sram(graph: DataflowGraph, inside: set[str], tensor: Tensor, tiles: int) -> int:
    kernels = {kernel.name: kernel for kernel in graph.kernels}
    levels = dict(zip(kernels, graph.topological_numbers, strict=True))

    def taken(use: Use) -> int:
        kernel = kernels[use.kernel]
        columns = kernel.outer * kernel.n
        return columns * (kernel.k if kernel.variant.is_gemm else kernel.m)

    here = [use for use in tensor.uses if use.kernel in inside]
    if tensor.source not in inside:
        return max((2 * -(-tensor.size_bytes // min(tiles, taken(use))) for use in here), default=0)
    source = kernels[tensor.source]
    given = source.outer * source.n * (1 if source.variant.is_gemm else source.m)
    depth = {use.kernel: levels[use.kernel] - levels[tensor.source] + 1 for use in here}
    kept = (depth[use.kernel] * -(-tensor.size_bytes // min(tiles, taken(use), given)) for use in here)
    leaves = moved(inside, tensor)[1] or (tensor.kind is TensorKind.OUTPUT) or len(here) < len(tensor.uses)
    return max(kept, default=0) + (2 * -(-tensor.size_bytes // min(tiles, given)) if leaves else 0)


@examples(60)
@given(graphs(most=5))
def test_of_every_set_the_columns_are_sums_over_tensors(graph: DataflowGraph) -> None:
    names = [kernel.name for kernel in graph.kernels]
    streams = [tensor for tensor in graph.tensors if tensor.kind is not TensorKind.WEIGHT]
    masks = subsets(len(names))
    members = members_of(tuple(masks), len(names))
    sets = [{name for name, has in zip(names, row, strict=True) if has} for row in members]

    for tiles in (1, 3, FINEST):
        model = GraphModel(graph, machine().machine, MappingOptions()).in_tiles(tiles)
        read, written = model.flows.streams(members)
        held = model.held.inside(members) @ model.held.size
        crossing, sizes = model.flows.crossing(members), model.sram_bytes(members) - held

        for number, inside in enumerate(sets):
            expected = [moved(inside, tensor) for tensor in streams]
            assert read[number] == sum(one for one, _ in expected)
            assert written[number] == sum(other for _, other in expected)
            assert crossing[number] == sum(map(sum, expected))
            assert sizes[number] == sum(sram(graph, inside, tensor, tiles) for tensor in streams)
    for mask, before in zip(masks, sets, strict=True):
        waiting = model.waiting_bytes(np.tile(members[mask], (len(masks), 1)), members & ~members[mask])
        for number, inside in enumerate(sets):
            rest = inside - before
            assert waiting[number] == sum(t.size_bytes for t in streams if waits(before, rest, t))


@examples(30)
@given(graphs(most=6))
def test_a_few_sets_and_their_tensors_at_a_time_give_the_same(graph: DataflowGraph) -> None:
    model = GraphModel(graph, machine().machine, MappingOptions()).in_tiles(3)
    members = members_of(tuple(subsets(len(graph.kernels))), len(graph.kernels))

    def figures() -> list[list[float]]:
        flows, held = model.flows, model.held
        columns = (*flows.streams(members), flows.crossing(members), flows.entering(members), flows.kept(members))
        return [column.tolist() for column in (*columns, held.loaded(members), held.held(members))]

    whole = figures()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flow_columns, "FEW_CELLS", 0)
        patch.setattr(flow_columns, "SETS", 2)

        assert figures() == whole


def test_a_connection_has_two_tiles_at_a_border_and_as_many_as_are_in_flight_inside() -> None:
    flows = FlowColumns.of_connections(
        [(0, 1), (0, 2)], np.array([10.0, 7.0]), np.array([5.0, 3.0]), np.array([2.0, 4.0])
    )
    members = np.array([[True, False, False], [False, True, True], [True, True, False], [True, True, True]])

    assert flows.crossing(members).tolist() == [17, 17, 7, 0]
    assert flows.entering(members).tolist() == [0, 2 * 5 + 2 * 3, 0, 0]
    assert flows.kept(members).tolist() == [2 * 5 + 2 * 3, 0, 2 * 5 + 2 * 3, 2 * 5 + 4 * 3]
    assert predecessors_of(3, [(0, 1), (0, 2)]) == (0, 1, 1)
