"""Inverse, solution, factors, products of batches of matrices, against NumPy; real and complex."""

from collections import Counter
from types import MappingProxyType
from typing import cast

import dace
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.canonical_dag.extraction import extract
from dfcompile.frontend import Coverage, Level, ModelNode, OperatorNode, Port, Program, scalar_type
from dfcompile.frontend.sdfg.operator_graph import whole_memlet
from dfcompile.lowering import Choice, lower_to_canonical, lower_to_maps, registered_expansions
from tests.examples import examples
from tests.interpreter import interpret

Array = npt.NDArray[np.complex128]  # or real ones
TABLE = registered_expansions()
TYPES = st.sampled_from(["float64", "complex128"])
WAYS = ("cholesky", "gauss-jordan", "lu")


def program(
    op_type: str, inputs: list[Array], output: tuple[int, ...], attributes: dict[str, int | list[int]]
) -> Program:
    sdfg = dace.SDFG("given")
    state = sdfg.add_state("main", is_start_block=True)
    names = [f"x{at}" for at in range(len(inputs))]
    dtype = inputs[0].dtype.name
    for name, shape in zip([*names, "y"], [*(value.shape for value in inputs), output], strict=True):
        sdfg.add_array(name, shape, scalar_type(dtype))
    connectors = [f"in_{at}" for at in range(len(inputs))]
    node: OperatorNode = OperatorNode(
        "op", op_type=op_type, origin="op", attributes=attributes, inputs=connectors, outputs=["out_0"]
    )
    state.add_node(node)
    for name, connector in zip(names, connectors, strict=True):
        state.add_edge(state.add_read(name), None, node, connector, whole_memlet(state, name))
    state.add_edge(node, "out_0", state.add_write("y"), None, whole_memlet(state, "y"))
    ports = tuple(Port(name, name, value.shape, dtype) for name, value in zip(names, inputs, strict=True))
    nodes = (ModelNode("op", op_type, Coverage.COSTED),)
    return Program("op", Level.ONNX, sdfg, ports, (Port("y", "y", output, dtype),), MappingProxyType({}), nodes)


def computed(
    op_type: str, way: str, inputs: list[Array], output: tuple[int, ...], **attributes: int | list[int]
) -> tuple[Array, Program]:
    choices = (Choice(op_type, way),)
    lowered = lower_to_canonical(program(op_type, inputs, output, attributes), TABLE, choices)
    maps = lower_to_maps(lowered, TABLE, choices)
    extract(maps.sdfg, parameters=tuple(maps.parameters))
    found = interpret(maps, {f"x{at}": value for at, value in enumerate(inputs)})["y"]
    return cast("Array", found), maps


def drawn(seed: int, shape: tuple[int, ...], dtype: str) -> Array:
    generator = np.random.default_rng(seed)
    found = cast("Array", generator.standard_normal(shape).astype(dtype))
    return found + 1j * generator.standard_normal(shape) if dtype == "complex128" else found


def hermitian(seed: int, batch: tuple[int, ...], rows: int, dtype: str) -> Array:
    root = drawn(seed, (*batch, rows, rows), dtype)
    found: Array = root @ np.conj(np.swapaxes(root, -1, -2)) + np.eye(rows)
    return found


BATCHES = st.sampled_from([(), (1,), (3,), (2, 2)])


@pytest.mark.parametrize("way", WAYS)
@given(BATCHES, st.integers(1, 6), TYPES, st.integers(0, 999))
@examples(20)
def test_inverse(way: str, batch: tuple[int, ...], rows: int, dtype: str, seed: int) -> None:
    a = hermitian(seed, batch, rows, dtype)

    found, _ = computed("linalg.inv", way, [a], a.shape)

    np.testing.assert_allclose(found, np.linalg.inv(a), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("way", WAYS)
@given(BATCHES, st.integers(1, 6), st.integers(0, 3), TYPES, st.integers(0, 999))
@examples(20)
def test_solution(way: str, batch: tuple[int, ...], rows: int, columns: int, dtype: str, seed: int) -> None:
    """No columns: a vector."""
    a = hermitian(seed, batch, rows, dtype)
    b = drawn(seed + 1, (*batch, rows, columns) if columns else (*batch, rows), dtype)

    found, _ = computed("linalg.solve", way, [a, b], b.shape, vector=int(columns == 0))

    expected = np.linalg.solve(a, b if columns else b[..., None])
    np.testing.assert_allclose(found, expected if columns else expected[..., 0], rtol=1e-9, atol=1e-9)


@given(st.integers(1, 7), TYPES, st.integers(0, 999))
@examples(20)
def test_factor(rows: int, dtype: str, seed: int) -> None:
    a = hermitian(seed, (2,), rows, dtype)

    found, _ = computed("linalg.cholesky", "schur", [a], a.shape)

    np.testing.assert_allclose(found, np.linalg.cholesky(a), rtol=1e-10, atol=1e-10)


@given(st.integers(1, 6), TYPES, st.integers(0, 999))
@examples(20)
def test_elimination_exchanges_rows(rows: int, dtype: str, seed: int) -> None:
    a = drawn(seed, (2, rows, rows), dtype)
    a[0] = np.eye(rows)[np.random.default_rng(seed).permutation(rows)]  # zeros where others have their pivots

    found, _ = computed("linalg.inv", "gauss-jordan", [a], a.shape)

    np.testing.assert_allclose(found @ a, np.broadcast_to(np.eye(rows), a.shape), atol=1e-7)


@pytest.mark.parametrize("way", WAYS)
def test_a_singular_matrix_gives_no_number(way: str) -> None:
    a = cast("Array", np.stack([np.ones((3, 3)), np.eye(3)]))

    found, _ = computed("linalg.inv", way, [a], a.shape)

    assert not np.isfinite(found[0]).any(axis=-1).all()
    np.testing.assert_allclose(found[1], np.eye(3))  # the other one is not touched


def test_cholesky_of_what_is_not_hermitian_gives_no_number() -> None:
    a = hermitian(1, (2,), 4, "complex128")
    a[0, 1, 3] += 0.01  # above the diagonal, where the factor does not look

    found, _ = computed("linalg.inv", "cholesky", [a], a.shape)

    assert np.isnan(found[0]).all()
    np.testing.assert_allclose(found[1], np.linalg.inv(a[1]), rtol=1e-9)


def test_cholesky_of_what_is_not_positive_gives_no_number() -> None:
    a = np.diag([1.0, -1.0, 1.0]).astype("complex128")[None]

    found, _ = computed("linalg.inv", "cholesky", [a], a.shape)

    assert np.isnan(found).any()


@pytest.mark.parametrize("way", WAYS)
def test_not_a_number_stays(way: str) -> None:
    a = hermitian(1, (2,), 3, "float64")
    a[0, 1, 1] = np.nan

    found, _ = computed("linalg.inv", way, [a], a.shape)

    assert np.isnan(found[0]).any()
    assert np.isfinite(found[1]).all()


@given(BATCHES, st.integers(1, 2), st.integers(1, 2), TYPES, st.integers(0, 999))
@examples(20)
def test_product(batch: tuple[int, ...], of_a: int, of_b: int, dtype: str, seed: int) -> None:
    a = drawn(seed, (*batch, *((3, 4)[-of_a:])), dtype)
    b = drawn(seed + 1, (*batch, 4, 2) if of_b == 2 else (*batch, 4), dtype)
    matrices = a if of_a == 2 else a[..., None, :], b if of_b == 2 else b[..., None]
    expected = matrices[0] @ matrices[1]
    shape = (*batch, *([3] if of_a == 2 else []), *([2] if of_b == 2 else []))

    found, _ = computed("linalg.matmul", "matmul", [a, b], shape or (1,), ranks=[of_a, of_b])

    np.testing.assert_allclose(found, expected.reshape(shape or (1,)), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("way", ["gauss-jordan", "lu"])
def test_one_task_per_matrix(way: str) -> None:
    a = hermitian(1, (5,), 3, "complex128")
    _, maps = computed("linalg.inv", way, [a], a.shape)

    dag = extract(maps.sdfg, parameters=tuple(maps.parameters))

    per_scope = Counter(dag.node_scope.tolist())
    assert {per_scope[number] for number, scope in enumerate(dag.scopes) if scope.kernel >= 0} == {5}
