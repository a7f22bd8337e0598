"""Window results: the shapes that convolutions and pooling give, as onnxruntime computes them.

ONNX's inference counts windows of ``ceil_mode`` that begin behind the data and its front padding, gives up on a
transposed convolution whose result is smaller than its data, and adds output padding to one that is padded to a size.
"""

from collections.abc import Mapping

import onnx

Shape = tuple[int, ...]
_POOLING = frozenset(["AveragePool", "LpPool", "MaxPool"])


def window_result(node: onnx.NodeProto, operands: tuple[Shape | None, ...]) -> Shape | None:
    """Return the shape of a node's first result; None if it is no such operator, or its operands do not tell.

    Args:
        node: of any operator.
        operands: static shape of each of its inputs, None if it is not known.
    """
    data = operands[0] if operands else None
    weights = operands[1] if len(operands) > 1 else None
    if data is None or len(data) < 3:
        return None
    numbers = {entry.name: tuple(entry.ints) for entry in node.attribute if entry.ints}
    if node.op_type in _POOLING:
        kernel = numbers.get("kernel_shape", ())
        counts = _counts(node, data[2:], kernel, numbers)
        return None if counts is None else (*data[:2], *counts)
    if weights is None or len(weights) != len(data):
        return None
    if node.op_type == "Conv":
        counts = _counts(node, data[2:], weights[2:], numbers)
        return None if counts is None else (data[0], weights[0], *counts)
    if node.op_type == "ConvTranspose":
        sizes = _transposed_sizes(node, data[2:], weights[2:], numbers)
        return None if sizes is None else (data[0], weights[1] * _integer(node, "group", 1), *sizes)
    return None


def _transposed_sizes(node: onnx.NodeProto, data: Shape, kernel: Shape, numbers: Mapping[str, Shape]) -> Shape | None:
    """Return what a transposed convolution makes of each spatial dimension, if the node says it or its pads do not."""
    rank = len(data)
    if len(numbers.get("output_shape", ())) == rank:
        return numbers["output_shape"]
    strides, dilations = numbers.get("strides", (1,) * rank), numbers.get("dilations", (1,) * rank)
    paddings = numbers.get("output_padding", (0,) * rank)
    if not _auto_pad(node).startswith(b"SAME") or (len(strides), len(dilations), len(paddings)) != (rank,) * 3:
        return None
    # Padded so that the size is the data's, times the stride; ONNX's inference adds the output padding to that.
    spans = [
        stride * (extent - 1) + dilation * (size - 1) + 1 + padding
        for stride, extent, dilation, size, padding in zip(strides, data, dilations, kernel, paddings, strict=True)
    ]
    return tuple(min(span, stride * extent) for span, stride, extent in zip(spans, strides, data, strict=True))


def _counts(node: onnx.NodeProto, data: Shape, kernel: Shape, numbers: Mapping[str, Shape]) -> Shape | None:
    """Return how many windows there are per spatial dimension."""
    rank = len(data)
    strides, dilations = numbers.get("strides", (1,) * rank), numbers.get("dilations", (1,) * rank)
    pads = numbers.get("pads", (0,) * (2 * rank))
    if (len(kernel), len(strides), len(dilations), len(pads)) != (rank, rank, rank, 2 * rank) or min(strides) < 1:
        return None
    auto_pad = _auto_pad(node)
    if auto_pad.startswith(b"SAME"):
        return tuple(-(-extent // stride) for extent, stride in zip(data, strides, strict=True))
    if auto_pad == b"VALID":
        pads = (0,) * (2 * rank)
    counts = []
    for axis, (extent, stride) in enumerate(zip(data, strides, strict=True)):
        begin, end = pads[axis], pads[axis + rank]
        left = extent + begin + end - (dilations[axis] * (kernel[axis] - 1) + 1)
        count = left // stride + 1
        if _integer(node, "ceil_mode", 0):
            # A window that would begin in the padding behind the data is none.
            count = min(-(-left // stride) + 1, -(-(extent + begin) // stride))
        counts.append(count)
    return tuple(counts)


def _auto_pad(node: onnx.NodeProto) -> bytes:
    return next((entry.s for entry in node.attribute if entry.name == "auto_pad"), b"NOTSET")


def _integer(node: onnx.NodeProto, name: str, default: int) -> int:
    return next((entry.i for entry in node.attribute if entry.name == name), default)
