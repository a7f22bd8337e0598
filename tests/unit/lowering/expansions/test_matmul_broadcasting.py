"""MatMul of more than two dimensions: what only one operand has is rows or columns, not a batch."""

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.extraction import extract
from dfcompile.lowering import Choice, lower_to_canonical, lower_to_maps, registered_expansions
from dfcompile.lowering.operators import MatMul
from dfcompile.testing.expansions import canonical_program
from tests.examples import examples
from tests.interpreter import interpret
from tests.onnx_text import program_from_model

TABLE = registered_expansions()
NAMES = ["mv", "op", "lmv", "ip", "columns", "rows"]
Shape = tuple[int, ...]
extents = st.integers(1, 4)


@st.composite
def leading_pairs(draw: st.DrawFn) -> tuple[Shape, Shape]:
    """Leading dimensions that broadcast: each operand has some of them, the other ones are 1 or missing."""
    whole = draw(st.lists(st.integers(1, 3), max_size=3))
    pair = []
    for _ in range(2):
        kept = [extent if draw(st.booleans()) else 1 for extent in whole]
        pair.append(tuple(kept[draw(st.integers(0, len(kept))) :]))
    return pair[0], pair[1]


def product_model(a: Shape, b: Shape) -> onnx.ModelProto:
    """Return ``y = x @ w`` with constant w."""
    weights = np.random.default_rng(1).uniform(-1, 1, b)
    y = helper.make_tensor_value_info("y", TensorProto.DOUBLE, np.matmul(np.zeros(a), weights).shape)
    x = helper.make_tensor_value_info("x", TensorProto.DOUBLE, a)
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    graph = helper.make_graph([node], "g", [x], [y], [numpy_helper.from_array(weights, "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def lowered_dag(a: Shape, b: Shape, name: str) -> CanonicalDag:
    library = lower_to_canonical(program_from_model(product_model(a, b)), TABLE)
    return extract(lower_to_maps(library, TABLE, [Choice("MatMul", name)]).sdfg)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("leading", [(1,), (4,), (2, 3), (1, 1, 2)])
@pytest.mark.parametrize("weights", [(), (1,), (1, 1)])
def test_product_with_a_plain_matrix_is_one_product_of_all_rows(name: str, leading: Shape, weights: Shape) -> None:
    n, k, m = 3, 4, 5
    batched = lowered_dag((*leading, n, k), (*weights, k, m), name)
    plain = lowered_dag((int(np.prod(leading)) * n, k), (k, m), name)

    assert batched.tasks_count == plain.tasks_count
    assert batched.work.tolist() == plain.work.tolist()
    assert batched.edge_volume.tolist() == plain.edge_volume.tolist()
    (kernel,), (expected,) = batched.kernels, plain.kernels
    assert (kernel.outer, kernel.m, kernel.k, kernel.n) == (expected.outer, expected.m, expected.k, expected.n)


@pytest.mark.parametrize("name", NAMES)
@given(leading=leading_pairs(), n=extents, k=extents, m=extents)
@examples(25)
def test_broadcast_product_is_numpys(name: str, leading: tuple[Shape, Shape], n: int, k: int, m: int) -> None:
    a_shape, b_shape = (*leading[0], n, k), (*leading[1], k, m)
    model = product_model(a_shape, b_shape)
    maps = lower_to_maps(lower_to_canonical(program_from_model(model), TABLE), TABLE, [Choice("MatMul", name)])
    a = np.random.default_rng(n).uniform(-1, 1, a_shape)
    expected = a @ numpy_helper.to_array(model.graph.initializer[0])

    found = interpret(maps, {"x": a})["y"]

    assert np.max(np.abs(np.subtract(found, expected, dtype=np.float64))) < 1e-12
    extract(maps.sdfg)  # verifies that every task is canonical


@pytest.mark.parametrize("name", NAMES)
@given(leading=leading_pairs(), n=extents, k=extents, m=extents)
@examples(25)
def test_canonical_product_broadcasts_as_well(name: str, leading: tuple[Shape, Shape], n: int, k: int, m: int) -> None:
    a_shape, b_shape = (*leading[0], n, k), (*leading[1], k, m)
    result = np.matmul(np.zeros(a_shape), np.zeros(b_shape)).shape
    program = canonical_program(MatMul(), [a_shape, b_shape], result, dtype="float64")
    generator = np.random.default_rng(k)
    a, b = generator.uniform(-1, 1, a_shape), generator.uniform(-1, 1, b_shape)

    maps = lower_to_maps(program, TABLE, [Choice("MatMul", name)])

    found = interpret(maps, {"x0": a, "x1": b})["y"]
    assert np.max(np.abs(np.subtract(found, a @ b, dtype=np.float64))) < 1e-12
    extract(maps.sdfg)


@pytest.mark.parametrize(("a", "b", "gemm"), [
    ((2, 3, 5, 7), (1, 3, 7, 4), (3, 10, 7, 4)),  # 2 is rows, 3 is batch
    ((2, 3, 5, 7), (2, 1, 7, 4), (2, 15, 7, 4)),  # next to the rows
    ((5, 7), (2, 3, 7, 4), (1, 5, 7, 24)),  # all of B's are columns
    ((2, 1, 5, 7), (2, 3, 7, 4), (2, 5, 7, 12)),
    ((7,), (3, 7, 4), (1, 1, 7, 12)),
])  # fmt: skip
def test_kernel_tells_rows_columns_and_batch_apart(a: Shape, b: Shape, gemm: tuple[int, int, int, int]) -> None:
    (kernel,) = (kernel for kernel in lowered_dag(a, b, "mv").kernels if kernel.op == "MatMul")

    assert (kernel.outer, kernel.m, kernel.k, kernel.n) == gemm


def test_shared_rows_are_broadcast_once_for_all_columns() -> None:
    dag = lowered_dag((5, 7), (2, 3, 7, 4), "mv")

    assert dag.tasks_count == 2 * 3 * 4 + 2
    assert int(dag.work.max()) == 2 * 3 * 4 * 5  # the gather
    assert min(dag.work[dag.is_computational].tolist()) == 5 * 7
