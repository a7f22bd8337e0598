"""Kernels and tensors of a canonical DAG become a dataflow graph."""

import pytest

from dfcompile.canonical_dag import (
    CanonicalDag,
    DagBuilder,
    Digit,
    Kernel,
    KernelLoop,
    KernelTensor,
    KernelVariant,
    LoopKind,
    LoopPart,
    TensorRole,
)
from dfcompile.dfmodel_backend import DataflowGraph, TensorKind, dataflow_graph
from dfcompile.errors import VerificationError
from dfcompile.records import replace

ARRAYS = (
    KernelTensor("X", 784, 4, TensorRole.INPUT),
    KernelTensor("W", 150, 4, TensorRole.PARAMETER),
    KernelTensor("A", 150, 4, TensorRole.INTERMEDIATE),
    KernelTensor("B", 25 * 576, 4, TensorRole.INTERMEDIATE),
    KernelTensor("C", 6 * 576, 4, TensorRole.INTERMEDIATE),
    KernelTensor("bias", 6, 4, TensorRole.PARAMETER),
    KernelTensor("Y", 6 * 576, 4, TensorRole.OUTPUT),
)


def kernel(name: str, variant: KernelVariant, dims: tuple[int, int, int], reads: str, writes: str) -> Kernel:
    m, k, n = dims
    return Kernel(name, "Op", "conv", "default", variant, 1, m, k, n, tuple(reads.split()), (writes,))


CONVOLUTION = (
    kernel("conv.im2col", KernelVariant.ELEMENTWISE_INPUT1, (25, 1, 576), "X", "B"),
    kernel("conv.weights", KernelVariant.ELEMENTWISE_INPUT1, (6, 1, 25), "W", "A"),
    kernel("conv.matmul", KernelVariant.GEMM_INPUT1_INPUT2, (6, 25, 576), "A B", "C"),
    kernel("conv.bias", KernelVariant.ELEMENTWISE_INPUT1_INPUT2, (6, 1, 576), "C bias", "Y"),
)


def dag_of(kernels: tuple[Kernel, ...], arrays: tuple[KernelTensor, ...] = ARRAYS) -> CanonicalDag:
    return replace(DagBuilder("model").finish(), kernels=kernels, tensors=arrays)


def tensors_of(graph: DataflowGraph) -> dict[str, tuple[TensorKind, str, tuple[str, ...]]]:
    return {t.name: (t.kind, t.source, tuple(use.kernel for use in t.uses)) for t in graph.tensors}


def test_kernels_on_parameters_are_prepared_and_their_result_is_a_weight() -> None:
    graph = dataflow_graph(dag_of(CONVOLUTION))

    assert [k.name for k in graph.kernels] == ["conv.im2col", "conv.matmul", "conv.bias"]
    assert tensors_of(graph) == {
        "X": (TensorKind.INPUT, "", ("conv.im2col",)),
        "A": (TensorKind.WEIGHT, "", ("conv.matmul",)),
        "B": (TensorKind.INTERMEDIATE, "conv.im2col", ("conv.matmul",)),
        "C": (TensorKind.INTERMEDIATE, "conv.matmul", ("conv.bias",)),
        "bias": (TensorKind.WEIGHT, "", ("conv.bias",)),
        "Y": (TensorKind.OUTPUT, "conv.bias", ()),
    }
    prepared = next(a for a in graph.assumptions if a.name == "kernels on parameters alone")
    assert prepared.value == "1: conv.weights"


def test_variants_types_and_flop() -> None:
    graph = dataflow_graph(dag_of(CONVOLUTION))
    im2col, matmul, bias = graph.kernels

    assert (im2col.variant.is_gemm, matmul.variant.is_gemm) == (False, True)
    assert matmul.variant is KernelVariant.GEMM_INPUT1_WEIGHT
    assert bias.variant is KernelVariant.ELEMENTWISE_INPUT1
    assert matmul.flop == 2 * 6 * 25 * 576
    assert bias.flop == 6 * 576


def connections_of(graph: DataflowGraph) -> list[tuple[str, str, int]]:
    """Return writer, reader and size of each tensor between kernels."""
    made = [(tensor, use.kernel) for tensor in graph.tensors if tensor.source for use in tensor.uses]
    found = [(tensor.source, reader, tensor.size_bytes) for tensor, reader in made]
    assert [(graph.index[writer], graph.index[reader]) for writer, reader, _ in found] == graph.ends
    return found


def test_connections_have_depths_and_sizes() -> None:
    graph = dataflow_graph(dag_of(CONVOLUTION))

    levels = dict(zip(graph.index, graph.topological_numbers, strict=True))
    assert [(*ends, size, levels[ends[1]] - levels[ends[0]] + 1) for *ends, size in connections_of(graph)] == [
        ("conv.im2col", "conv.matmul", 25 * 576 * 4, 2),
        ("conv.matmul", "conv.bias", 6 * 576 * 4, 2),
    ]


def test_a_weight_on_the_right_swaps_rows_and_columns() -> None:
    arrays = (
        KernelTensor("X", 32, 4, TensorRole.INPUT),
        KernelTensor("W", 80, 4, TensorRole.PARAMETER),
        KernelTensor("Y", 40, 4, TensorRole.OUTPUT),
    )
    linear = kernel("fc", KernelVariant.GEMM_INPUT1_WEIGHT, (4, 8, 10), "X W", "Y")

    (found,) = dataflow_graph(dag_of((linear,), arrays)).kernels

    assert (found.m, found.k, found.n) == (10, 8, 4)


def test_kernels_are_sorted_and_parts_of_one_array_are_separate_tensors() -> None:
    arrays = (
        KernelTensor("X", 10, 4, TensorRole.INPUT),
        KernelTensor("C", 20, 4, TensorRole.INTERMEDIATE),
        KernelTensor("Y", 20, 4, TensorRole.OUTPUT),
    )
    one = KernelVariant.ELEMENTWISE_INPUT1
    kernels = (
        kernel("use", one, (20, 1, 1), "C", "Y"),
        kernel("left", one, (10, 1, 1), "X", "C"),
        kernel("right", one, (10, 1, 1), "X", "C"),
    )

    graph = dataflow_graph(dag_of(kernels, arrays))

    assert [k.name for k in graph.kernels] == ["left", "right", "use"]
    assert connections_of(graph) == [
        ("left", "use", 40),
        ("right", "use", 40),
    ]


def test_unknown_and_unwritten_tensors_are_internal_errors() -> None:
    with pytest.raises(VerificationError, match=r"kernel 'conv\.im2col': no tensor 'X'"):
        dataflow_graph(dag_of(CONVOLUTION, ARRAYS[1:]))
    with pytest.raises(VerificationError, match="tensor 'C': read, but no kernel writes it"):
        dataflow_graph(dag_of(CONVOLUTION[3:]))


def test_loops_are_swapped_with_rows_and_columns_and_followed_through_whole_arrays_alone() -> None:
    rows = KernelLoop("row", LoopPart.M, 576, LoopKind.PARALLEL, (Digit(25, 0), None), (Digit(6, 0),))
    columns = KernelLoop("column", LoopPart.N, 6, LoopKind.PARALLEL, (None, Digit(1, 1)), (Digit(1, 1),))
    product = kernel("conv.matmul", KernelVariant.GEMM_INPUT1_WEIGHT, (576, 25, 6), "B W", "C")
    product = replace(product, loops=(rows, columns))
    before = kernel("conv.im2col", KernelVariant.ELEMENTWISE_INPUT1, (25, 1, 576), "X", "B")
    other = kernel("conv.more", KernelVariant.ELEMENTWISE_INPUT1, (1, 1, 576), "X", "B")
    whole = dataflow_graph(dag_of((before, product)))
    cut = dataflow_graph(dag_of((before, other, product)))

    found = next(one for one in whole.kernels if one.name == "conv.matmul")
    assert (found.m, found.n) == (6, 576)
    assert [(loop.name, loop.part) for loop in found.loops] == [("row", LoopPart.N), ("column", LoopPart.M)]
    assert (found.inputs, found.outputs) == (("B", "W"), ("C",))
    # Of an array that two kernels write, parts are read: a digit of the whole array says nothing of them.
    found = next(one for one in cut.kernels if one.name == "conv.matmul")
    assert found.inputs == ("B@conv.im2col", "B@conv.more", "W")
    assert [loop.inputs for loop in found.loops] == [(None, None, None), (None, None, Digit(1, 1))]
