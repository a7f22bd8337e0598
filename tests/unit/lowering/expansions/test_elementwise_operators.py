"""Element-wise operators in every data type that ONNX allows them, one by one."""

from collections.abc import Sequence

import numpy as np
import pytest
from onnx import helper

from tests.elementwise_nodes import DTYPES, OPSET, nodes, side_by_side, tolerance
from tests.interpreter import interpret
from tests.onnx_nodes import Array, Node, assert_same, check_node, lowered, random, scopes

NODES = nodes()


@pytest.mark.parametrize("op_type", dict.fromkeys(node.op_type for node in NODES))
def test_every_data_type_gives_the_reference_values(op_type: str) -> None:
    check_side_by_side([node for node in NODES if node.op_type == op_type])


def check_side_by_side(nodes: Sequence[Node], rtol: float = 0.0) -> None:
    """Check nodes of one model, as `check_node` does with one of them."""
    model, feeds = side_by_side(nodes)
    found = interpret(lowered(model), feeds)
    for number, node in enumerate(nodes):
        expected = {f"v{number}_{name}": value for name, value in node.reference().items()}
        own = {name: value for name, value in found.items() if name.startswith(f"v{number}_")}
        assert_same(own, expected, rtol or tolerance(node), tolerance(node))


@pytest.mark.parametrize(
    ("op_type", "shapes"),
    [
        ("Add", [(2, 1, 4), (3, 1)]),
        ("Mul", [(1,), (2, 3)]),
        ("Sub", [(4,), (3, 4)]),
        ("Less", [(2, 1), (1, 3)]),
        ("Sum", [(2, 3), (3,), (2, 1)]),
        ("Max", [(2, 3), (3,), (1, 1)]),
        ("Mean", [(2, 3), (3,), (1,), (2, 1)]),
        ("PRelu", [(2, 3, 4), (3, 1)]),
        ("Where", [(2, 1), (1, 3), (3,)]),
    ],
)
def test_operands_are_broadcast(op_type: str, shapes: list[tuple[int, ...]]) -> None:
    values: list[Array] = [random(shape, seed=position) for position, shape in enumerate(shapes)]
    if op_type == "Where":
        values[0] = random(shapes[0], "bool")
    program = check_node(Node(op_type, values))

    assert scopes(program) == ["op"]


@pytest.mark.parametrize("exponent", [0.0, 0.5, -0.5, 1.0, 2.0, 3.0, -1.0, -2.0, 1.5, 2.7])
@pytest.mark.parametrize("is_constant", [True, False])
def test_pow_takes_fractional_and_negative_exponents(exponent: float, *, is_constant: bool) -> None:
    base = np.array([0.25, 1.0, 2.5, 9.0], np.float32)
    check_node(Node("Pow", [base, np.array(exponent, np.float32)], constants=[1] if is_constant else []))


@pytest.mark.parametrize("exponent", [2, 3, 5])
def test_pow_of_integers_is_exact(exponent: int) -> None:
    check_node(
        Node("Pow", [np.array([-7, 0, 1001], np.int64), np.array(exponent, np.int64)], constants=[1]), rtol=0, atol=0
    )


def test_integer_division_truncates_towards_zero() -> None:
    operands = [np.array([7, -7, 7, -7], np.int32), np.array([3, 3, -3, -3], np.int32)]
    found = interpret(check_node(Node("Div", operands)), {"x0": operands[0], "x1": operands[1]})

    assert found["y0"].tolist() == [2, -2, -2, 2]


@pytest.mark.parametrize("fmod", [0, 1])
@pytest.mark.parametrize("dtype", ["int8", "int64", "float32", "float64"])
def test_mod_has_the_sign_of_the_divisor_or_of_the_dividend(fmod: int, dtype: str) -> None:
    a, b = np.array([7, -7, 7, -7, 6], dtype), np.array([3, 3, -3, -3, -3], dtype)
    check_node(Node("Mod", [a, b], attributes={"fmod": fmod}, opset=28))


@pytest.mark.parametrize("is_constant", [True, False])
@pytest.mark.parametrize("bounds", [(-0.5, 0.7), (None, 0.7), (-0.5, None), (0.7, -0.5), (None, None)])
def test_clip_with_and_without_bounds(bounds: tuple[float | None, float | None], *, is_constant: bool) -> None:
    limits = [None if bound is None else np.array(bound, np.float32) for bound in bounds]
    check_node(Node("Clip", [random((3, 4)), *limits], constants=[1, 2] if is_constant else []))


@pytest.mark.parametrize("source", DTYPES)
def test_cast_between_all_data_types(source: str) -> None:
    value = np.abs(random((2, 3), source))
    targets = [helper.np_dtype_to_tensor_dtype(np.dtype(target)) for target in DTYPES]

    check_side_by_side([Node("Cast", [value], attributes={"to": target}) for target in targets], rtol=1e-3)


@pytest.mark.parametrize(("op_type", "attributes"), [
    ("Celu", {"alpha": 0.3}), ("Elu", {"alpha": 0.3}), ("HardSigmoid", {"alpha": 0.4, "beta": 0.1}),
    ("LeakyRelu", {"alpha": 0.3}), ("Selu", {"alpha": 0.3, "gamma": 1.7}), ("Shrink", {"lambd": 0.1, "bias": 0.2}),
    ("ThresholdedRelu", {"alpha": 0.3}), ("Gelu", {"approximate": "tanh"}), ("Swish", {"alpha": 0.3}),
    ("IsInf", {"detect_negative": 0}), ("IsInf", {"detect_positive": 0}),
    ("IsInf", {"detect_positive": 0, "detect_negative": 0}),
])  # fmt: skip
def test_attributes_take_part(op_type: str, attributes: dict[str, float | str]) -> None:
    value = np.array([-np.inf, -2, -0.3, -0.1, 0, 0.1, 0.3, 2, np.inf], np.float32)
    finite = value if op_type == "IsInf" else value[1:-1]
    check_node(Node(op_type, [finite], attributes=attributes, opset=OPSET))


@pytest.mark.parametrize("op_type", ["Relu", "Sign", "Abs", "Softplus", "LeakyRelu", "Clip", "IsNaN", "Exp"])
def test_undefined_and_infinite_stay_what_they_are(op_type: str) -> None:
    value = np.array([np.nan, np.inf, -np.inf, 0.0], np.float32)
    bounds = [np.array(-1, np.float32), np.array(1, np.float32)] if op_type == "Clip" else []
    check_node(Node(op_type, [value, *bounds], constants=[1, 2]))


@pytest.mark.parametrize("op_type", ["Softplus", "Mish", "Sigmoid", "Elu", "Selu", "Celu"])
def test_large_operands_do_not_overflow(op_type: str) -> None:
    value = np.array([-1000.0, 1000.0], np.float32)
    found = interpret(check_node(Node(op_type, [value * 0.01])), {"x0": value})

    assert np.isfinite(found["y0"]).all()


def test_a_threshold_is_compared_in_single_precision() -> None:
    value = np.array([0.1], np.float32)  # is more than 0.1
    check_node(Node("ThresholdedRelu", [value], attributes={"alpha": 0.1}), rtol=0, atol=0)


def test_constant_of_one_element_is_written_into_the_task() -> None:
    program = check_node(Node("Mul", [random((2, 3)), np.array([0.1], np.float32)], constants=[1]))

    assert not program.parameters


def test_constant_of_several_elements_is_read() -> None:
    program = check_node(Node("Mul", [random((2, 3)), random((3,), seed=1)], constants=[1]))

    assert len(program.parameters) == 1


def test_bit_shift_beyond_the_width_leaves_the_sign() -> None:
    values = [np.array([-5, 5, -1], np.int32), np.array([40, 32, 31], np.int32)]
    program = check_node(Node("BitShift", values, attributes={"direction": "RIGHT"}, opset=28))

    assert scopes(program) == ["op"]


def test_least_integer_is_divided_towards_zero() -> None:
    operands = [np.array([-(2**31), -7, 7, -8], np.int32), np.array([8, 2, -2, 4], np.int32)]

    found = interpret(check_node(Node("Div", operands)), {"x0": operands[0], "x1": operands[1]})

    assert [value.tolist() for value in found.values()] == [[-(2**28), -3, -3, -2]]
