"""Nodes of Fourier transforms, of the windows that they are taken of, and of determinants."""

from collections.abc import Mapping

import numpy as np

from tests.fuzz.draw import Array, Draw
from tests.fuzz.drawn_node import AttributeValue, DrawnNode, Generator, OperatorVersion

_INTEGERS = ("int32", "int64")


def dft(op: OperatorVersion, draw: Draw) -> DrawnNode:
    draw.edges = False  # the difference of two infinite numbers depends on the order of a sum
    rank = draw.integer(3, 4)
    inverse, onesided = draw.integer(0, 1), draw.integer(0, 1)
    parts = 1 if onesided and not inverse else draw.integer(1, 2)  # a real signal, says onnxruntime
    shape = [*draw.sizes(rank - 1, 1, 8 if rank < 4 else 5), parts]
    data = draw.array(draw.dtype(op.dtypes()), shape)
    axis = draw.integer(1, rank - 2)
    length = np.asarray(draw.integer(1, 9), np.int64) if draw.chance(0.5) else None
    attributes: dict[str, AttributeValue] = {"inverse": inverse, "onesided": 0 if inverse else onesided}
    operands: list[Array | None] = [data, length]
    if op.since < 20:
        if draw.chance(0.7):
            attributes["axis"] = axis
    elif draw.chance(0.7):
        operands.append(np.asarray(axis - rank if draw.chance(0.5) else axis, np.int64))
    return DrawnNode(operands, attributes, structure=(1, 2))


def stft(op: OperatorVersion, draw: Draw) -> DrawnNode:
    draw.edges = False
    length, step, onesided = draw.integer(2, 8), draw.integer(1, 4), draw.integer(0, 1)
    dtype = draw.dtype(op.dtypes())
    samples = length + draw.integer(0, 9)
    signal = draw.array(dtype, (draw.integer(1, 2), samples, 1 if onesided else draw.integer(1, 2)))
    with_window = draw.chance(0.6)
    operands: list[Array | None] = [signal, np.asarray(step, np.int64)]
    operands.append(draw.array(dtype, (length,)) if with_window else None)
    if not with_window or draw.chance(0.5):
        operands.append(np.asarray(length, np.int64))
    return DrawnNode(operands, {"onesided": onesided}, structure=(1, 3))


def window(op: OperatorVersion, draw: Draw) -> DrawnNode:
    size = np.asarray(draw.integer(2, 12), draw.choice(_INTEGERS))
    return DrawnNode([size], {"periodic": draw.integer(0, 1)}, structure=(0,))


def mel_weights(op: OperatorVersion, draw: Draw) -> DrawnNode:
    kind = draw.choice(_INTEGERS)
    rate = draw.choice([8000, 16000])
    operands: list[Array | None] = [
        np.asarray(draw.integer(1, 8), kind),
        np.asarray(draw.choice([16, 32, 50]), kind),
        np.asarray(rate, kind),
        np.asarray(draw.choice([0.0, 20.0]), np.float32),
        np.asarray(rate / 2.0, np.float32),
    ]
    return DrawnNode(operands, {}, structure=(0, 1, 2, 3, 4))


def determinant(op: OperatorVersion, draw: Draw) -> DrawnNode:
    rows = draw.integer(1, 4)
    shape = (*draw.sizes(draw.integer(0, 2), 1, 3), rows, rows)
    return DrawnNode([draw.array(draw.dtype(op.dtypes()), shape)], {})


GENERATORS: Mapping[str, Generator] = {
    "DFT": dft,
    "Det": determinant,
    "MelWeightMatrix": mel_weights,
    "STFT": stft,
    **dict.fromkeys(("BlackmanWindow", "HammingWindow", "HannWindow"), window),
}
