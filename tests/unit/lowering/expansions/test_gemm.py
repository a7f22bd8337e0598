"""ONNX Gemm: factors, transposed operands, with and without what is added."""

import numpy as np
import pytest

from dfcompile.canonical_dag.extraction import extract
from tests.onnx_nodes import Array, Attribute, Node, check_node, lowered, random, scopes


@pytest.mark.parametrize("transposed", [(0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize(
    ("alpha", "beta", "added"),
    [(1.0, 1.0, (4,)), (0.5, 1.0, (3, 1)), (1.0, -2.5, (3, 4)), (0.25, 3.0, (1,)), (2.0, 0.0, (4,)), (3.0, 1.0, None)],
)
def test_product_and_sum_are_scaled(
    transposed: tuple[int, int], alpha: float, beta: float, added: tuple[int, ...] | None
) -> None:
    a, b = random((2, 3) if transposed[0] else (3, 2)), random((4, 2) if transposed[1] else (2, 4), seed=1)
    operands: list[Array | None] = [a, b, *([] if added is None else [random(added, seed=2)])]
    attributes: dict[str, Attribute] = {
        "alpha": alpha, "beta": beta, "transA": transposed[0], "transB": transposed[1]
    }  # fmt: skip
    expected = alpha * ((a.T if transposed[0] else a) @ (b.T if transposed[1] else b))
    if added is not None:
        expected = expected + beta * np.asarray(operands[2])

    check_node(Node("Gemm", operands, attributes=attributes), expected.astype(np.float32))


def test_what_is_added_does_not_count_if_its_factor_is_0() -> None:
    nowhere = np.full((3, 4), np.nan, np.float32)
    node = Node("Gemm", [random((3, 2)), random((2, 4), seed=1), nowhere], attributes={"beta": 0.0})

    program = check_node(node, np.asarray(node.operands[0]) @ np.asarray(node.operands[1]))

    assert not any(scope.endswith("bias") for scope in scopes(program))


@pytest.mark.parametrize(
    ("shapes", "sizes"),
    [
        (((3, 2), (2, 4)), (1, 3, 2, 4)),
        (((5, 3, 2), (2, 4)), (1, 15, 2, 4)),
        (((5, 3, 2), (5, 2, 4)), (5, 3, 2, 4)),
        (((5, 3, 2), (1, 2, 4)), (1, 15, 2, 4)),
        (((3, 2), (5, 2, 4)), (1, 3, 2, 20)),
        (((6, 5, 3, 2), (6, 1, 2, 4)), (6, 15, 2, 4)),
    ],
)
def test_kernel_of_a_product_tells_rows_and_columns(
    shapes: tuple[tuple[int, ...], tuple[int, ...]], sizes: tuple[int, int, int, int]
) -> None:
    dag = extract(lowered(Node("MatMul", [random(shapes[0]), random(shapes[1], seed=1)]).model()).sdfg)
    (kernel,) = dag.kernels

    assert (kernel.outer, kernel.m, kernel.k, kernel.n) == sizes
