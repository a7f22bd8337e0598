"""Nodes of operators that ONNX defines by others."""

from collections.abc import Mapping, Sequence

import numpy as np

from tests.fuzz.draw import Array, Draw
from tests.fuzz.drawn_node import AttributeValue, DrawnNode, Generator, OperatorVersion

_LENGTHS = 6  # position of the operand that says how many keys of a batch count


def attention(op: OperatorVersion, draw: Draw) -> DrawnNode:
    dtype, batch, queries, keys = draw.dtype(op.dtypes()), draw.integer(1, 2), draw.integer(1, 3), draw.integer(1, 4)
    shared, kv_heads, size, width = draw.integer(1, 2), draw.integer(1, 2), draw.integer(1, 4), draw.integer(1, 4)
    heads = shared * kv_heads
    attributes: dict[str, AttributeValue] = {}
    sizes = ((heads, queries, size), (kv_heads, keys, size), (kv_heads, keys, width))
    if draw.chance(0.4):
        shapes = [(batch, length, count * wide) for count, length, wide in sizes]
        attributes |= {"q_num_heads": heads, "kv_num_heads": kv_heads}
    else:
        shapes = [(batch, *each) for each in sizes]  # type: ignore[misc]  # of four dimensions now
    operands: list[Array | None] = [*(draw.array(dtype, shape) for shape in shapes), None]
    results = [1]
    if draw.chance(0.3):
        before = draw.integer(1, 3)
        operands += [draw.array(dtype, (batch, kv_heads, before, wide)) for wide in (size, width)]
        results += [1, 1]
        keys += before
    elif op.operands > _LENGTHS and draw.chance(0.3):
        operands += [None, None, draw.whole((batch,), 1, keys)]
    if draw.chance(0.3):
        mask_type = draw.choice(["bool", dtype])
        full = (batch, heads, queries, keys)
        operands[3] = draw.array(mask_type, draw.choice([full, full[2:], full[1:], (1, 1, queries, keys)]))
    attributes |= _attention_attributes(op, draw)
    if "qk_matmul_output_mode" in attributes:
        results = [*results, *[0] * (3 - len(results)), 1]
    while operands[-1] is None:
        operands.pop()
    return DrawnNode(operands, attributes, results=results)


def _attention_attributes(op: OperatorVersion, draw: Draw) -> dict[str, AttributeValue]:
    choices: Mapping[str, Sequence[AttributeValue]] = {
        "is_causal": [0, 1],
        "left_window_size": [-1, 0, 1, 3],
        "qk_matmul_output_mode": [0, 1, 2, 3],
        "right_window_size": [-1, 0, 1, 3],
        "scale": [0.5, 1.0, 0.25],
        "softcap": [0.0, 2.0],
    }
    return {name: draw.choice(values) for name, values in choices.items() if op.has(name) and draw.chance(0.25)}


def centre_crop_pad(op: OperatorVersion, draw: Draw) -> DrawnNode:
    data = draw.array(draw.dtype(op.dtypes()), draw.shape(1, 3))
    axes = draw.axes(data.ndim, least=1)
    if draw.chance(0.5):
        return DrawnNode([data, draw.whole((data.ndim,), 1, 5)], {}, structure=(1,))
    return DrawnNode([data, draw.whole((len(axes),), 1, 5)], {"axes": axes}, structure=(1,))


def loss(op: OperatorVersion, draw: Draw) -> DrawnNode:
    dtype, classes = draw.dtype(op.dtypes()), draw.integer(1, 4)
    batch, rest = draw.integer(1, 3), draw.shape(0, 2)
    attributes: dict[str, AttributeValue] = {}
    target = draw.whole((batch, *rest), 0, classes - 1, draw.choice(["int64", "int32"]))
    if draw.chance(0.7):
        attributes["reduction"] = draw.choice(["none", "sum", "mean"])
    if draw.chance(0.3):
        attributes["ignore_index"] = draw.choice([-1, 0])
        if target.size and attributes["ignore_index"] == -1:
            target.reshape(-1)[0] = -1
    operands = [draw.array(dtype, (batch, classes, *rest)), target]
    if draw.chance(0.4):
        operands.append(draw.eighths(dtype, (classes,), 1, 16))
    both = op.op_type == "SoftmaxCrossEntropyLoss" and draw.chance(0.3)
    return DrawnNode(operands, attributes, results=(1, 1) if both else (1,))


def rotary(op: OperatorVersion, draw: Draw) -> DrawnNode:
    dtype = draw.dtype(op.dtypes())
    batch, heads, length, half = draw.integer(1, 2), draw.integer(1, 3), draw.integer(1, 4), draw.integer(1, 3)
    attributes: dict[str, AttributeValue] = {"interleaved": draw.integer(0, 1)} if draw.chance(0.5) else {}
    width = 2 * half
    if draw.chance(0.3):
        width += 2
        attributes["rotary_embedding_dim"] = 2 * half
    shape: tuple[int, ...] = (batch, heads, length, width)
    if draw.chance(0.4):
        shape = (batch, length, heads * width)
        attributes["num_heads"] = heads
    data = draw.array(dtype, shape)
    if draw.chance(0.5):
        caches = [draw.array(dtype, (batch, length, half)) for _ in range(2)]
        return DrawnNode([data, *caches], attributes)
    caches = [draw.array(dtype, (length + 2, half)) for _ in range(2)]
    positions = draw.whole((batch, length), 0, length + 1)
    return DrawnNode([data, *caches, np.asarray(positions)], attributes, structure=(3,) if draw.chance(0.5) else ())


GENERATORS: Mapping[str, Generator] = {
    "Attention": attention,
    "CenterCropPad": centre_crop_pad,
    "NegativeLogLikelihoodLoss": loss,
    "RotaryEmbedding": rotary,
    "SoftmaxCrossEntropyLoss": loss,
}
