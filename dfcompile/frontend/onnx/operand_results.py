"""Results whose shape the values of constant operands tell, where ONNX's inference does not say it, or is wrong.

It counts all numbers of the spectrum of an STFT that has only one side, and knows no result of a MaxUnpool to a size.
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
