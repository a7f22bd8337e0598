"""LSTM, GRU and RNN step by step are what ONNX's formulas say, in every form."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.errors import UnsupportedOpError
from dfcompile.lowering import Choice
from dfcompile.lowering.expansions import recurrent
from tests.examples import examples
from tests.interpreter import interpret
from tests.onnx_nodes import Array, Attribute, Node, assert_same, lowered, scopes

Reals = npt.NDArray[np.float64]
Function = Callable[[Reals], Reals]

GATES = {"GRU": 3, "LSTM": 4, "RNN": 1}
DEFAULTS = {"GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"], "RNN": ["Tanh"]}
FUNCTIONS: Mapping[str, Callable[[Reals, float, float], Reals]] = {
    "Affine": lambda x, alpha, beta: alpha * x + beta,
    "Elu": lambda x, alpha, beta: np.where(x < 0, alpha * np.expm1(np.minimum(x, 0)), x),  # noqa: ARG005
    "HardSigmoid": lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1),
    "LeakyRelu": lambda x, alpha, beta: np.where(x < 0, alpha * x, x),  # noqa: ARG005
    "Relu": lambda x, alpha, beta: np.maximum(x, 0),  # noqa: ARG005
    "ScaledTanh": lambda x, alpha, beta: alpha * np.tanh(beta * x),
    "Sigmoid": lambda x, alpha, beta: np.exp(-np.logaddexp(0, -x)),  # noqa: ARG005
    "Softplus": lambda x, alpha, beta: np.logaddexp(0, x),  # noqa: ARG005
    "Softsign": lambda x, alpha, beta: x / (1 + np.abs(x)),  # noqa: ARG005
    "Tanh": lambda x, alpha, beta: np.tanh(x),  # noqa: ARG005
    "ThresholdedRelu": lambda x, alpha, beta: np.where(x > alpha, x, 0),  # noqa: ARG005
}
OF_ALPHA = ("Affine", "Elu", "HardSigmoid", "LeakyRelu", "ScaledTanh", "ThresholdedRelu")
OF_BETA = ("Affine", "HardSigmoid", "ScaledTanh")


def functions_of(names: Sequence[str], numbers: Mapping[str, Sequence[float]]) -> list[Function]:
    """Give each function its own numbers, in turn."""
    alphas, betas = iter(numbers.get("activation_alpha", ())), iter(numbers.get("activation_beta", ()))
    found: list[Function] = []
    for name in names:
        alpha = next(alphas) if name in OF_ALPHA else 0.0
        beta = next(betas) if name in OF_BETA else 0.0
        found.append(lambda x, name=name, alpha=alpha, beta=beta: FUNCTIONS[name](x, alpha, beta))  # type: ignore[misc]
    return found


def step(
    node: Node, parts: Mapping[str, Reals], x: Reals, states: Sequence[Reals], functions: Sequence[Function]
) -> list[Reals]:
    """Return the states of one sequence after a step, by the formulas of ONNX's documentation."""
    attributes = node.attributes or {}
    w, r, wb, rb = (parts[name] for name in ("w", "r", "wb", "rb"))
    bound = float(attributes.get("clip", np.inf))  # type: ignore[arg-type]
    h = states[0]

    def into(gate: int, state: Reals) -> Reals:
        return np.asarray(w[gate] @ x + r[gate] @ state + wb[gate] + rb[gate], np.float64)

    def clipped(value: Reals) -> Reals:
        return np.clip(value, -bound, bound)

    if node.op_type == "RNN":
        return [functions[0](clipped(into(0, h)))]
    f, g = functions[:2]
    if node.op_type == "GRU":
        z, reset = f(clipped(into(0, h))), f(clipped(into(1, h)))
        if attributes.get("linear_before_reset"):
            hidden = g(clipped(w[2] @ x + reset * (r[2] @ h + rb[2]) + wb[2]))
        else:
            hidden = g(clipped(into(2, reset * h)))
        return [(1 - z) * hidden + z * h]
    c, p = states[1], parts["p"]
    entering = f(clipped(into(0, h) + p[0] * c))
    forget = 1 - entering if attributes.get("input_forget") else f(clipped(into(2, h) + p[2] * c))
    cell = forget * c + entering * g(clipped(into(3, h)))
    leaving = f(clipped(into(1, h) + p[1] * cell))
    return [leaving * functions[2](cell), cell]


def reference(node: Node) -> dict[str, Array]:
    """Return Y and the last states of every sequence, one after another."""
    attributes = node.attributes or {}
    values = [None if value is None else np.asarray(value, np.float64) for value in node.operands]
    values += [None] * (8 - len(values))
    x, w, r = values[0], values[1], values[2]
    assert x is not None
    assert w is not None
    assert r is not None
    is_batch_first = bool(attributes.get("layout", 0))
    if is_batch_first:
        x = x.swapaxes(0, 1)
    (steps, batch, _), directions, hidden = x.shape, w.shape[0], r.shape[2]
    gates, count = GATES[node.op_type], 2 if node.op_type == "LSTM" else 1
    bias = np.zeros((directions, 2 * gates * hidden)) if values[3] is None else values[3]
    lengths = np.full(batch, steps) if values[4] is None else values[4].astype(int)
    peepholes = np.zeros((directions, 3 * hidden)) if values[7] is None else values[7]
    names = attributes.get("activations", DEFAULTS[node.op_type] * directions)
    functions = functions_of(names, attributes)  # type: ignore[arg-type]
    y = np.zeros((steps, directions, batch, hidden))
    last = np.zeros((count, directions, batch, hidden))
    for direction in range(directions):
        parts = {
            "w": w[direction].reshape(gates, hidden, -1),
            "r": r[direction].reshape(gates, hidden, hidden),
            "wb": bias[direction].reshape(2, gates, hidden)[0],
            "rb": bias[direction].reshape(2, gates, hidden)[1],
            "p": peepholes[direction].reshape(3, hidden),
        }
        own = functions[direction * len(functions) // directions :]
        is_reversed = attributes.get("direction") == "reverse" or direction == 1
        for sequence in range(batch):
            states = []
            for given_state in values[5 : 5 + count]:
                if given_state is None:
                    states.append(np.zeros(hidden))
                else:
                    states.append((given_state.swapaxes(0, 1) if is_batch_first else given_state)[direction, sequence])
            order = range(lengths[sequence])
            for at in reversed(order) if is_reversed else order:
                states = step(node, parts, x[at, sequence], states, own)
                y[at, direction, sequence] = states[0]
            last[:, direction, sequence] = states
    if is_batch_first:
        y, last = y.transpose(2, 0, 1, 3), last.transpose(0, 2, 1, 3)
    every = {"y0": y, **{f"y{1 + number}": state for number, state in enumerate(last)}}
    used = {f"y{position}" for position, each in enumerate(node.results) if each}
    return {name: value.astype(np.float32) for name, value in every.items() if name in used}


@st.composite
def recurrent_nodes(draw: st.DrawFn) -> Node:
    op_type = draw(st.sampled_from(sorted(GATES)))
    gates = GATES[op_type]
    steps, batch, features, hidden = (draw(st.integers(1, 3)) for _ in range(4))
    direction = draw(st.sampled_from(["forward", "reverse", "bidirectional"]))
    directions = 2 if direction == "bidirectional" else 1
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    is_batch_first = draw(st.booleans())
    states = (batch, directions, hidden) if is_batch_first else (directions, batch, hidden)

    def array(*shape: int) -> Array:
        # Small: activations without bounds make numbers grow from step to step.
        return (generator.standard_normal(shape) / 2).astype(np.float32)

    def perhaps(value: Array) -> Array | None:
        return value if draw(st.booleans()) else None

    attributes: dict[str, Attribute] = {"direction": direction, "hidden_size": hidden}
    operands = [
        array(batch, steps, features) if is_batch_first else array(steps, batch, features),
        array(directions, gates * hidden, features),
        array(directions, gates * hidden, hidden),
        perhaps(array(directions, 2 * gates * hidden)),
        perhaps(generator.integers(0, steps + 1, batch).astype(np.int32)),
        perhaps(array(*states)),
    ]
    if is_batch_first:
        attributes["layout"] = 1
    if op_type == "LSTM":
        operands += [perhaps(array(*states)), perhaps(array(directions, 3 * hidden))]
        attributes["input_forget"] = draw(st.integers(0, 1))
    if op_type == "GRU":
        attributes["linear_before_reset"] = draw(st.integers(0, 1))
    if draw(st.booleans()):
        attributes["clip"] = draw(st.sampled_from([0.25, 0.5, 2.0]))
    if draw(st.booleans()):
        names = [draw(st.sampled_from(sorted(FUNCTIONS))) for _ in DEFAULTS[op_type] * directions]
        attributes["activations"] = names
        for attribute, users in (("activation_alpha", OF_ALPHA), ("activation_beta", OF_BETA)):
            numbers = [draw(st.sampled_from([0.25, 0.5, 1.5])) for name in names if name in users]
            if numbers:
                attributes[attribute] = numbers
    used = draw(
        st.sampled_from([(1, 1, 1), (1, 0, 0), (0, 1, 0), (0, 0, 1)] if op_type == "LSTM" else [(1, 1), (0, 1)])
    )
    constants = [position for position in range(1, len(operands)) if draw(st.booleans())]
    return Node(op_type, operands, constants, attributes, used, opset=draw(st.sampled_from([14, 22])))


@examples(60)
@given(recurrent_nodes(), st.booleans())
def test_steps_are_the_formulas(node: Node, is_compact: bool) -> None:
    choices = [Choice(node.op_type, "compact")] if is_compact else []

    assert_same(interpret(lowered(node.model(), choices), node.feeds), reference(node), 1e-4, 1e-5)


@pytest.mark.parametrize("op_type", sorted(GATES))
def test_clip_leaves_what_is_undefined(op_type: str) -> None:
    gates = GATES[op_type]
    operands = [np.array([[[value]]], np.float32) for value in (np.nan,)]
    operands += [np.ones((1, gates, 1), np.float32) for _ in range(2)]

    found = interpret(
        lowered(Node(op_type, operands, [1, 2], {"hidden_size": 1, "clip": 0.5}).model()), {"x0": operands[0]}
    )

    assert all(np.isnan(value).all() for value in found.values())


def small(op_type: str, steps: int = 3, hidden: int = 4, **attributes: Attribute) -> Node:
    generator = np.random.default_rng(7)
    gates = GATES[op_type] * hidden
    operands = [
        generator.standard_normal(shape).astype(np.float32)
        for shape in ((steps, 1, 2), (1, gates, 2), (1, gates, hidden), (1, 2 * gates))
    ]
    return Node(op_type, operands, [1, 2, 3], {"hidden_size": hidden, **attributes})


def test_one_product_of_all_inputs_and_one_per_step_but_the_first() -> None:
    found = scopes(lowered(small("LSTM").model(), [Choice("LSTM", "compact")]))

    assert [name.removeprefix("op.") for name in found if "result" not in name] == [
        *("inputs.broadcast", "inputs.mv", "inputs.gather", "step0_cell", "step0_state"),
        *("step1_product", "step1_cell", "step1_state", "step2_product", "step2_cell", "step2_state"),
    ]


@pytest.mark.parametrize(("op_type", "count"), [("LSTM", 3), ("GRU", 4), ("RNN", 2)])
def test_canonical_operators_of_a_step(op_type: str, count: int) -> None:
    found = scopes(lowered(small(op_type).model(), [Choice(op_type, "compact")]))

    assert sum("step2_" in name for name in found) == count


def test_many_rows_are_a_task_per_product(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recurrent, "_MOST_TASKS", 30)
    few, many = (scopes(lowered(small("GRU", steps=steps).model())) for steps in (2, 3))

    assert {name for name in few if "step1_product" in name} == {
        f"op.step1_product.{part}" for part in ("broadcast", "mv", "gather")
    }
    assert {name for name in many if "step1_product" in name} == {"op.step1_product"}


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (small("LSTM", steps=4001), "4001 steps become up to 20005 operators against at most 20000"),
        (small("GRU", activations=["Tanh"]), r"attribute 'activations' is \['Tanh'\] against 2 names"),
        (small("GRU", activations=["Tanh", "Tan"]), "activation 'Tan' against one of Elu, HardSigmoid"),
        (small("RNN", activations=["Affine"]), "no number in 'activation_alpha' for Affine, which has no default"),
        (small("RNN", activation_alpha=[0.5]), "attribute 'activation_alpha' has more numbers than Tanh take"),
        (small("RNN", clip=-1.0), "attribute 'clip' is -1.0 against a positive number"),
    ],
)
def test_what_cannot_be_unrolled_is_refused_by_name(node: Node, message: str) -> None:
    with pytest.raises(UnsupportedOpError, match=f"node 'op': {node.op_type}.*: {message}"):
        lowered(node.model())


def test_operands_that_contradict_each_other() -> None:
    node = small("LSTM")
    operands = [*node.operands[:2], np.zeros((1, 16, 5), np.float32)]

    with pytest.raises(UnsupportedOpError, match=r"operand W has shape \[1, 16, 2\] against \[1, 20, 2\]"):
        lowered(Node("LSTM", operands, [1, 2], {"hidden_size": 4}).model())


def test_lengths_beyond_the_sequence() -> None:
    node = small("RNN")
    operands = [*node.operands, np.array([4], np.int32)]

    with pytest.raises(UnsupportedOpError, match=r"lengths \[4\] against 0 to 3"):
        lowered(Node("RNN", operands, [1, 2, 3, 4], {"hidden_size": 4}).model())
