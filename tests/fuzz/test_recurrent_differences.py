"""Every reason that is listed for recurrent operators is seen in onnxruntime itself, and excuses nothing else."""

import numpy as np
import pytest

from tests.fuzz.draw import Array
from tests.fuzz.known_differences import known_reason
from tests.fuzz.oracle import Session, load
from tests.onnx_text import model_from_text

GATES = {"GRU": 3, "LSTM": 4, "RNN": 1}
OF_ALPHA, OF_BETA = ("Affine", "HardSigmoid", "ThresholdedRelu"), ("Affine", "HardSigmoid")
NAMES = "XWRBLHCP"


def graph(op_type: str, activations: list[str], operands: dict[str, Array]) -> str:
    numbers = {
        "activation_alpha": [0.5 for name in activations if name in OF_ALPHA],
        "activation_beta": [0.5 for name in activations if name in OF_BETA],
    }
    attributes = ", ".join(f"{name} = {values}" for name, values in numbers.items() if values)
    kind = "float16" if operands["X"].dtype == np.float16 else "float"
    names = ", ".join(f'"{name}"' for name in activations)
    inputs = ", ".join(f"{kind}[{','.join(map(str, value.shape))}] {name}" for name, value in operands.items())
    listed = ", ".join(
        name if name in operands else '""' for name in NAMES[: NAMES.index(max(operands, key=NAMES.index)) + 1]
    )
    hidden, batch = operands["R"].shape[2], operands["X"].shape[1]
    attributes = f"hidden_size = {hidden}, activations = [{names}]{', ' * bool(attributes)}{attributes}"
    return f"g ({inputs}) => ({kind}[1,1,{batch},{hidden}] Y) {{ Y = {op_type} <{attributes}> ({listed}) }}"


def onnxruntime_result(op_type: str, activations: list[str], **operands: Array) -> Array:
    session = load(model_from_text(graph(op_type, activations, operands)).SerializeToString())
    assert isinstance(session, Session)
    return session.run(operands).results["Y"].reshape(-1)


def of_first_gate(op_type: str, value: float, *rest: float) -> dict[str, Array]:
    """Return operands of a single step: a one, and weights of which the first gate has the value."""
    rows = GATES[op_type]
    weights = np.zeros((1, rows, 1), np.float32)
    weights[0, : 1 + len(rest), 0] = value, *rest
    return {"X": np.ones((1, 1, 1), np.float32), "W": weights, "R": np.zeros((1, rows, 1), np.float32)}


@pytest.mark.parametrize("name", ["HardSigmoid", "Relu", "ThresholdedRelu"])
def test_activation_of_what_is_undefined_is_zero(name: str) -> None:
    assert onnxruntime_result("RNN", [name], **of_first_gate("RNN", np.nan)).tolist() == [0]


def test_what_goes_into_a_gate_is_held_within_the_finite_numbers() -> None:
    found = onnxruntime_result("LSTM", ["Affine", "Affine", "Affine"], **of_first_gate("LSTM", np.inf))

    assert np.isfinite(found).all()
    assert found[0] > 1e37


def test_what_is_undefined_becomes_a_finite_number_beside_a_bias() -> None:
    bias = np.zeros((1, 8), np.float32)
    bias[0, 0] = np.nan

    found = onnxruntime_result("LSTM", ["Sigmoid", "Tanh", "Tanh"], **of_first_gate("LSTM", 1, 1, 1, 1), B=bias)

    assert np.isfinite(found).all()


def test_cell_of_half_precision_does_not_overflow() -> None:
    operands = of_first_gate("LSTM", 2000, 0, 0, 2000)
    halves = {name: value.astype(np.float16) for name, value in operands.items()}

    found = onnxruntime_result("LSTM", ["Affine", "Affine", "Softsign"], **halves)

    assert found.tolist() == [0.5]  # of a cell of 1,000,000


@pytest.mark.parametrize(
    ("dtype", "found", "is_known"),
    [(np.float16, [np.nan, 1], True), (np.float16, [2, 1], False), (np.float32, [np.nan, 1], False)],
)
def test_only_an_overflow_of_halves_is_excused(dtype: type[np.floating], found: list[float], *, is_known: bool) -> None:
    operands = {name: value.astype(dtype) for name, value in of_first_gate("LSTM", 1).items()}
    operands["X"] = np.ones((1, 2, 1), dtype)
    model = model_from_text(graph("LSTM", ["Tanh", "Tanh", "Tanh"], operands))
    ours, theirs = (np.array(values, dtype).reshape(1, 1, 2, 1) for values in (found, [3, 1]))

    assert bool(known_reason(model, operands, {"Y": ours}, {"Y": theirs})) is is_known


def test_softplus_within_a_recurrence_overflows() -> None:
    assert onnxruntime_result("RNN", ["Softplus"], **of_first_gate("RNN", 88)).tolist() == [88]
    assert onnxruntime_result("RNN", ["Softplus"], **of_first_gate("RNN", 90)).tolist() == [np.inf]


def test_state_that_is_zero_times_infinity_is_undefined() -> None:
    operands = of_first_gate("RNN", 1)
    operands |= {"R": np.full((1, 1, 1), np.inf, np.float32), "H": np.zeros((1, 1, 1), np.float32)}

    assert np.isnan(onnxruntime_result("RNN", ["Affine"], **operands)).all()


def test_state_that_is_not_given_times_infinity_is_undefined() -> None:
    operands = {**of_first_gate("GRU", 1), "R": np.full((1, 3, 1), np.inf, np.float32)}

    assert np.isnan(onnxruntime_result("GRU", ["Affine", "Affine"], **operands)).all()


@pytest.mark.parametrize(
    ("op_type", "activation", "first", "found", "expected", "is_known"),
    [
        ("RNN", "Relu", np.nan, [np.nan, 1], [0, 1], True),
        ("RNN", "Relu", np.nan, [np.nan, 2], [0, 1], False),  # the other sequence reads nothing undefined
        ("RNN", "Tanh", np.nan, [np.nan, 1], [0, 1], False),
        ("RNN", "Softplus", 90, [90, 1], [np.inf, 1], True),
        ("GRU", "Softplus", 90, [90, 1], [np.finfo(np.float32).min, 1], True),  # which has gates held
        ("GRU", "Softplus", 90, [90, 1], [3.39e38, 1], True),  # the state comes of a gate that was held
        ("GRU", "Softplus", 90, [90, 1], [1e35, 1], False),
        ("RNN", "Softplus", 9, [9, 1], [8, 1], False),
        ("RNN", "Relu", 90, [90, 1], [np.inf, 1], False),
        ("GRU", "Tanh", np.inf, [np.nan, 1], [1, 1], True),
        ("GRU", "Tanh", np.inf, [np.nan, 2], [1, 1], False),
        ("GRU", "Tanh", 1, [2, 1], [1, 1], False),
    ],
)
def test_only_a_sequence_that_is_concerned_is_excused(
    op_type: str, activation: str, first: float, found: list[float], expected: list[float], *, is_known: bool
) -> None:
    operands = of_first_gate(op_type, 1)
    operands["X"] = np.array([[[first], [1]]], np.float32)
    model = model_from_text(graph(op_type, [activation] * (2 if op_type == "GRU" else 1), operands))
    ours, theirs = (np.array(values, np.float32).reshape(1, 1, 2, 1) for values in (found, expected))

    assert bool(known_reason(model, operands, {"Y": ours}, {"Y": theirs})) is is_known


@pytest.mark.parametrize(("weight", "is_known"), [(np.inf, True), (1, False)])
def test_only_undefined_weights_excuse_a_state_that_is_left_out(weight: float, *, is_known: bool) -> None:
    operands = {**of_first_gate("RNN", 1), "R": np.full((1, 1, 1), weight, np.float32)}
    model = model_from_text(graph("RNN", ["Affine"], operands))
    ours, theirs = (np.full((1, 1, 1, 1), value, np.float32) for value in (1, np.nan))

    assert bool(known_reason(model, operands, {"Y": ours}, {"Y": theirs})) is is_known
