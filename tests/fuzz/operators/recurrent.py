"""Nodes of recurrent operators."""

from collections.abc import Mapping

from tests.fuzz.draw import Array, Draw
from tests.fuzz.drawn_node import AttributeValue, DrawnNode, Generator, OperatorVersion

_GATES = {"GRU": 3, "LSTM": 4, "RNN": 1}
_FUNCTIONS = {"GRU": 2, "LSTM": 3, "RNN": 1}
_PLAIN = ("Relu", "Sigmoid", "Softplus", "Softsign", "Tanh")
_OF_ALPHA = ("Affine", "Elu", "HardSigmoid", "LeakyRelu", "ScaledTanh", "ThresholdedRelu")
_OF_BETA = ("Affine", "HardSigmoid", "ScaledTanh")


def recurrent(op: OperatorVersion, draw: Draw) -> DrawnNode:
    draw.edges = False  # onnxruntime holds what goes into a gate within the finite numbers
    gates, dtype = _GATES[op.op_type], draw.dtype(op.dtypes())
    steps, batch, features, hidden = draw.sizes(4, 1, 3)
    direction = draw.choice(["forward", "reverse", "bidirectional"])
    directions = 2 if direction == "bidirectional" else 1
    attributes: dict[str, AttributeValue] = {"hidden_size": hidden, "direction": direction}
    rows = gates * hidden
    states = (directions, batch, hidden)
    optional: list[Array | None] = [
        draw.array(dtype, (directions, 2 * rows)) if draw.chance(0.6) else None,
        draw.whole((batch,), 1, steps, "int32") if draw.chance(0.3) else None,
        draw.array(dtype, states) if draw.chance(0.5) else None,
    ]
    if op.op_type == "LSTM":
        optional.append(draw.array(dtype, states) if draw.chance(0.5) else None)
        optional.append(draw.array(dtype, (directions, 3 * hidden)) if draw.chance(0.3) else None)
        if draw.chance(0.2):
            attributes["input_forget"] = 1
    if op.has("linear_before_reset") and draw.chance(0.5):
        attributes["linear_before_reset"] = 1
    if draw.chance(0.2):
        attributes["clip"] = draw.choice([0.5, 1.0, 8.0])
    if draw.chance(0.3):
        attributes |= _activations(_FUNCTIONS[op.op_type] * directions, draw)
    operands = [
        draw.array(dtype, (steps, batch, features)),
        draw.array(dtype, (directions, rows, features)),
        draw.array(dtype, (directions, rows, hidden)),
        *optional,
    ]
    while operands[-1] is None:
        operands.pop()
    count = 3 if op.op_type == "LSTM" else 2
    results = draw.choice([(1,) * count, (1,), (0, 1), (0,) * (count - 1) + (1,)])
    return DrawnNode(operands, attributes, (1, 2, 3) if draw.chance(0.7) else (), results)


def _activations(count: int, draw: Draw) -> dict[str, AttributeValue]:
    names = [draw.choice((*_PLAIN, *_OF_ALPHA)) for _ in range(count)]
    found: dict[str, AttributeValue] = {"activations": names}
    for attribute, users in (("activation_alpha", _OF_ALPHA), ("activation_beta", _OF_BETA)):
        numbers = [draw.choice([0.25, 0.5, 1.0]) for name in names if name in users]
        if numbers:
            found[attribute] = numbers
    return found


GENERATORS: Mapping[str, Generator] = {"GRU": recurrent, "LSTM": recurrent, "RNN": recurrent}
