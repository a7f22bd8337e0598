"""NaN and infinities: what onnxruntime makes of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.frontend.onnx.onnxruntime_evaluation import evaluated
from tests.examples import examples
from tests.interpreter import interpret
from tests.onnx_nodes import Array, Attribute, Node, lowered

NAN = np.nan
VALUES = (NAN, -1.0, 0.5, 2.0)


def _check(node: Node) -> None:
    answer = evaluated(node.model(), node.feeds)
    assert answer is not None
    (found,) = interpret(lowered(node.model()), node.feeds).values()
    np.testing.assert_array_equal(found, answer[1][0])


def _column(data: st.DataObject, rows: int, columns: int, dtype: str = "float32") -> Array:
    values = st.lists(st.sampled_from(VALUES), min_size=rows * columns, max_size=rows * columns)
    return np.array(data.draw(values), dtype).reshape(rows, columns)


@examples(40)
@given(st.data(), st.sampled_from(["Max", "Min"]), st.integers(2, 4), st.sampled_from(["float32", "float64"]))
def test_extremum_of_operands_is_nan_if_one_is(data: st.DataObject, op_type: str, count: int, dtype: str) -> None:
    _check(Node(op_type, [_column(data, 2, 3, dtype) for _ in range(count)]))


@examples(40)
@given(st.data(), st.sampled_from(["ReduceMax", "ReduceMin"]))
def test_reductions(data: st.DataObject, op_type: str) -> None:
    # Along the first axis, since onnxruntime takes elements of a row in an order that depends on the processor.
    _check(Node(op_type, [_column(data, 5, 2), np.array([0])], [1]))


@examples(60)
@given(st.data(), st.sampled_from(["ArgMax", "ArgMin"]), st.integers(0, 1), st.integers(0, 1))
def test_positions(data: st.DataObject, op_type: str, axis: int, last: int) -> None:
    attributes: dict[str, Attribute] = {"axis": axis, "select_last_index": last}

    _check(Node(op_type, [_column(data, 3, 4)], attributes=attributes))


def test_hardmax_of_nan_marks_nothing() -> None:
    _check(Node("Hardmax", [np.array([[NAN, NAN, NAN], [NAN, 1, 2], [1, 3, 2]], np.float32)]))


@pytest.mark.parametrize("alpha", [1.0, 2.0])
@pytest.mark.parametrize("offset", [NAN, np.inf])
def test_gemm_with_beta_0_does_not_look_at_its_last_operand(alpha: float, offset: float) -> None:
    a = np.arange(4, dtype=np.float32).reshape(2, 2)
    c = np.full((2, 2), offset, np.float32)

    _check(Node("Gemm", [a, a, c], attributes={"alpha": alpha, "beta": 0.0}))


@pytest.mark.parametrize(
    "op_type", ["Relu", "LeakyRelu", "Sign", "HardSigmoid", "HardSwish", "Shrink", "ThresholdedRelu", "Softsign"]
)
def test_functions(op_type: str) -> None:
    node = Node(op_type, [np.array([NAN, -1, 0, 2, np.inf, -np.inf], np.float32)])
    answer = evaluated(node.model(), node.feeds)
    assert answer is not None

    (found,) = interpret(lowered(node.model()), node.feeds).values()

    np.testing.assert_allclose(found.astype(np.float64), answer[1][0].astype(np.float64), rtol=1e-5)


@pytest.mark.parametrize(("low", "high"), [(0, 1), (NAN, 1), (0, NAN)])
def test_clip(low: float, high: float) -> None:
    bounds = [np.array(bound, np.float32) for bound in (low, high)]

    _check(Node("Clip", [np.array([NAN, -1, 2], np.float32), *bounds]))


def _check_signs(node: Node) -> None:
    """Check values, and the signs of zeros: a reciprocal shows them."""
    answer = evaluated(node.model(), node.feeds)
    assert answer is not None
    (found,) = interpret(lowered(node.model()), node.feeds).values()
    np.testing.assert_allclose(np.asarray(found, float), np.asarray(answer[1][0], float), rtol=1e-6)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(answer[1][0]))


@pytest.mark.parametrize("op_type", ["Abs", "Celu", "Ceil", "Elu", "Floor", "Neg", "Round", "Selu", "Sign", "Sqrt"])
def test_sign_of_zero(op_type: str) -> None:
    _check_signs(Node(op_type, [np.array([0.0, -0.0], np.float32)]))


@pytest.mark.parametrize("op_type", ["Elu", "LeakyRelu"])
def test_negative_slope_does_not_change_the_sign_of_zero(op_type: str) -> None:
    _check_signs(Node(op_type, [np.array([0.0, -0.0, 1, -1], np.float32)], attributes={"alpha": -1.125}))


def test_slope_of_zero_does_not_matter() -> None:
    slopes = np.array([NAN, np.inf, -1, 2], np.float32)

    _check_signs(Node("PRelu", [np.zeros(4, np.float32), slopes]))


@pytest.mark.parametrize("constant", [(), (1,)])
@pytest.mark.parametrize("exponent", [0.5, -0.5, -1.0, 1.5, 2.0, 3.0])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_powers_of_what_is_infinite_or_zero(exponent: float, dtype: str, constant: tuple[int, ...]) -> None:
    base = np.array([-np.inf, np.inf, -0.0, 0.0, 2.0], dtype)

    _check_signs(Node("Pow", [base, np.array(exponent, dtype)], constant))


@pytest.mark.parametrize("constant", [(), (1,)])
@pytest.mark.parametrize("exponent", [-3, -1, 0, 5, 2**32 + 1])
@pytest.mark.parametrize("base", [np.array([-2, -1, 1, 3], np.int64), np.array([-1, 0.5, 1, 2], np.float32)])
def test_integer_exponents(base: Array, exponent: int, constant: tuple[int, ...]) -> None:
    if base.dtype.kind == "i" and exponent > 5:
        base = np.abs(np.sign(base))

    _check(Node("Pow", [base, np.array(exponent, np.int64)], constant))
