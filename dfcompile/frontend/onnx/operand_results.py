"""Results whose shape operands tell, by their values or shapes, where ONNX's inference does not say it, or is wrong.

It counts all numbers of the spectrum of an STFT that has only one side, and knows no result of a MaxUnpool to a size,
nor the cache of an Attention that has none before.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import onnx

Shape = tuple[int, ...]


def operand_result(
    node: onnx.NodeProto, operands: tuple[Shape | None, ...], constants: Mapping[str, npt.NDArray[np.generic]]
) -> Shape | None:
    """Return the shape of a node's first result; None if it is no such operator, or its operands do not tell.

    Args:
        node: of any operator.
        operands: static shape of each of its inputs, None if it is not known.
        constants: values by name.
    """
    if node.op_type == "STFT":
        return _spectra(node, operands, constants)
    if node.op_type == "MaxUnpool" and len(node.input) > 2 and node.input[2] in constants:
        return tuple(int(size) for size in constants[node.input[2]].ravel())
    return None


def cache_results(node: onnx.NodeProto, operands: tuple[Shape | None, ...]) -> tuple[Shape | None, ...]:
    """Return the shapes of the results of an Attention that is given no keys and values of before."""
    if node.op_type != "Attention" or any(node.input[4:6]) or len(operands) < 3:
        return ()
    heads = next((entry.i for entry in node.attribute if entry.name == "kv_num_heads"), 0)
    return (None, *(_by_head(shape, heads) for shape in operands[1:3]))


def _by_head(shape: Shape | None, heads: int) -> Shape | None:
    """Return the shape ``[b, heads, l, h]`` of keys or values that may stand side by side, ``[b, l, heads * h]``."""
    if shape is None or len(shape) != 3 or heads < 1:
        return shape if shape is not None and len(shape) == 4 else None
    return (shape[0], heads, shape[1], shape[2] // heads)


def _spectra(
    node: onnx.NodeProto, operands: tuple[Shape | None, ...], constants: Mapping[str, npt.NDArray[np.generic]]
) -> Shape | None:
    signal = operands[0] if operands else None
    window = operands[2] if len(operands) > 2 else None
    step = _integer(node, 1, constants)
    length = _integer(node, 3, constants)
    if length is None and window is not None and len(window) == 1:
        length = window[0]
    if signal is None or len(signal) < 2 or not step or step < 1 or not length or not 1 <= length <= signal[1]:
        return None
    is_onesided = next((entry.i for entry in node.attribute if entry.name == "onesided"), 1)
    return (signal[0], (signal[1] - length) // step + 1, length // 2 + 1 if is_onesided else length, 2)


def _integer(node: onnx.NodeProto, position: int, constants: Mapping[str, npt.NDArray[np.generic]]) -> int | None:
    if position >= len(node.input) or node.input[position] not in constants:
        return None
    value = constants[node.input[position]]
    return int(value.item()) if value.size == 1 and value.dtype.kind in "iu" else None
