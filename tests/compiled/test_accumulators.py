"""What compiled code adds up: in double precision, rounded once, the same on any number of threads."""

import numpy as np
import pytest

from dfcompile.canonical_dag import format_dag
from dfcompile.canonical_dag.extraction import extract
from dfcompile.lowering import Choice
from dfcompile.lowering.execution.compiled_run import run_program
from tests.interpreter import interpret
from tests.onnx_nodes import Array, Node, lowered

NAN, INF = np.nan, np.inf


def _both(node: Node, choices: tuple[Choice, ...] = ()) -> Array:
    """Return what compiled code gives, and the interpreter gives as well."""
    program = lowered(node.model(), choices)
    found = run_program(program, node.feeds)["y0"]
    np.testing.assert_array_equal(found, interpret(program, node.feeds)["y0"])
    return found


def test_five_thousand_ones_in_half_precision() -> None:
    assert _both(Node("ReduceSum", [np.ones(5000, np.float16)])).tolist() == [5000]


def test_mean_whose_sum_half_precision_cannot_hold() -> None:
    assert _both(Node("ReduceMean", [np.full(5000, 30, np.float16)])).tolist() == [30]


@pytest.mark.parametrize(
    ("op_type", "row", "expected"),
    [("ReduceL2", [65536, 3], 65536), ("ReduceLogSum", [2**30] * 4, 22), ("ReduceLogSumExp", [5, *[4] * 6], 6)],
)
def test_integers_whose_sum_their_type_does_not_hold(op_type: str, row: list[int], expected: int) -> None:
    assert _both(Node(op_type, [np.array(row, np.uint32)])).tolist() == [expected]


def test_average_pool_whose_sum_half_precision_cannot_hold() -> None:
    node = Node("GlobalAveragePool", [np.full((1, 2, 90, 90), 30, np.float16)])

    assert _both(node).ravel().tolist() == [30, 30]


@pytest.mark.parametrize("name", ["mv", "op", "lmv", "ip"])
def test_products_in_half_precision_are_summed_in_a_wider_type(name: str) -> None:
    a = np.array([[300, 300, 1, 1]], np.float16)
    b = np.array([[300], [-300], [1], [1]], np.float16)

    assert _both(Node("MatMul", [a, b]), (Choice("MatMul", name),)).tolist() == [[2]]


def test_bias_is_added_before_rounding_to_half_precision() -> None:
    a, b = np.full((1, 2), 200, np.float16), np.full((2, 1), 200, np.float16)

    assert _both(Node("Gemm", [a, b, np.array([-40000], np.float16)])).tolist() == [[40000]]


def test_einsum_of_three_operands_in_half_precision() -> None:
    large, small = np.full((1, 2), 256, np.float16), np.full((2, 1), 2.0**-10, np.float16)
    node = Node("Einsum", [large, large.T.copy(), small], attributes={"equation": "ij,jk,lk->il"})

    assert _both(node).tolist() == [[128, 128]]


def test_two_hundred_thousand_terms_in_single_precision() -> None:
    x = np.random.default_rng(0).random(200_000).astype(np.float32)

    (found,) = _both(Node("ReduceSum", [x]))

    assert abs(float(found) / x.astype(np.float64).sum() - 1) < 1e-7


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("op_type", "expected"),
    [("ReduceMax", [NAN, 2, 2, 3, NAN, -INF]), ("ReduceMin", [NAN, 1, 1, -INF, NAN, -INF])],
)
def test_nan_counts_in_an_extremum_if_it_comes_first_as_in_onnxruntime(
    op_type: str, expected: list[float], dtype: str
) -> None:
    rows = [[NAN, 1, 2], [1, NAN, 2], [2, 1, NAN], [-INF, NAN, 3], [NAN] * 3, [-INF] * 3]
    node = Node(op_type, [np.array(rows, dtype), np.array([1])], [1], {"keepdims": 0})

    np.testing.assert_array_equal(_both(node), np.array(expected, dtype))


@pytest.mark.parametrize("dtype", ["int64", "uint64", "int32"])
@pytest.mark.parametrize("op_type", ["ReduceMax", "ReduceMin"])
def test_extrema_of_integers_are_exact(op_type: str, dtype: str) -> None:
    limits = np.iinfo(dtype)
    x = np.array([[limits.max, limits.max - 1], [limits.min, limits.min + 1], [limits.min, limits.max]], dtype)
    expected = x.max(axis=1) if op_type == "ReduceMax" else x.min(axis=1)

    assert _both(Node(op_type, [x, np.array([1])], [1], {"keepdims": 0})).tolist() == expected.tolist()


def test_running_changes_nothing_that_is_extracted() -> None:
    program = lowered(Node("ReduceMean", [np.ones((3, 4), np.float16)]).model())
    before = format_dag(extract(program.sdfg))

    run_program(program, {"x0": np.ones((3, 4), np.float16)})

    assert format_dag(extract(program.sdfg)) == before


def test_undefined_operands_in_compiled_code() -> None:
    a, b = np.array([NAN, 1, 3, NAN], np.float32), np.array([1, NAN, 2, NAN], np.float32)

    np.testing.assert_array_equal(_both(Node("Max", [a, b])), [NAN, NAN, 3, NAN])
    np.testing.assert_array_equal(_both(Node("Min", [a.astype(np.float16), b.astype(np.float16)])), [NAN, NAN, 2, NAN])


@pytest.mark.parametrize("last", [0, 1])
def test_position_of_an_undefined_first_element_in_compiled_code(last: int) -> None:
    x = np.array([[NAN, 1, 2], [1, NAN, 2], [3, 1, NAN]], np.float32)

    node = Node("ArgMax", [x], attributes={"axis": 1, "keepdims": 0, "select_last_index": last})

    assert _both(node).tolist() == [0, 2, 0]
