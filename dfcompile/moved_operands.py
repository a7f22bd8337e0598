"""Which operands of an operator move, and how many different words of them at least: what bounds of its I/O count."""

from math import prod

import numpy as np

from dfcompile.distinct import distinct
from dfcompile.frontend import PACKED_BITS
from dfcompile.lowering.node import Operator
from dfcompile.lowering.tensor import Tensor

# Operands after the first are settings: sizes, bounds, a type, or how it is trained.
_WITH_SETTINGS = frozenset({
    "CastLike", "CenterCropPad", "Clip", "Dropout", "Expand", "OneHot", "Pad", "Reshape", "Resize", "Slice", "Split",
    "Tile", "Trilu", "Upsample",
})  # fmt: skip
# Operators whose operands are data all, constant integers as well; of others the first is, and those named.
_OF_DATA = frozenset({
    "Add", "And", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Concat", "Div", "Equal", "Greater",
    "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Mean", "Min", "Mod", "Mul", "Or", "PRelu", "Pow", "Sub", "Sum",
    "Where", "Xor", "MatMul", "FusedMatMul", "Gemm", "Conv", "FusedConv",
})  # fmt: skip
_DATA = {
    **dict.fromkeys(
        ("ConvInteger", "DynamicQuantizeMatMul", "MatMulInteger", "MatMulIntegerToFloat", "MatMulNBits"), (0, 1)
    ),
    **dict.fromkeys(("QLinearAdd", "QLinearMatMul", "QLinearMul"), (0, 3)),
    "QGemm": (0, 3, 6),
    "QLinearConv": (0, 3, 8),
    "QLinearWhere": (0, 1, 4),
}
_OF_ALTERNATING = "QLinearConcat"  # a scale and a zero point, then data, their scale and zero point
_SELECTIONS = frozenset({"Gather", "GatherElements", "GatherND", "Slice", "Split"})
# Operators that read parts of an operand, which depend on data or on sizes: by its place, nothing of it is certain.
_READ_IN_PART = {
    **dict.fromkeys(
        ("Col2Im", "Compress", "DFT", "GridSample", "MaxRoiPool", "RoiAlign", "STFT", "TensorScatter"), (0,)
    ),
    "DeformConv": (0, 1, 2, 4),
    "EmbedLayerNormalization": (2, 3, 4),
    "GatherBlockQuantized": (0, 2, 3),
    "GroupQueryAttention": (3, 4, 7, 8),
    "NonMaxSuppression": (0, 1),
    "RotaryEmbedding": (1, 2, 3),
}
_KEPT = "DequantizeLinear"  # of constants too: its operand takes less room than its result
_BIAS = 2  # of a transposed convolution
_OF_SIZES_ALONE = frozenset({"EyeLike", "RandomNormalLike", "RandomUniformLike"})
_SCATTERS = frozenset({"ScatterElements", "ScatterND"})
# Constant parameters that are folded: four of a BatchNormalization into two; the two biases of gates into one.
_BATCH_STATISTICS = (3, 4)
_RECURRENT = frozenset({"GRU", "LSTM", "RNN"})
_BIASES, _LENGTHS, _STATE, _CELL, _PEEPHOLES = 3, 4, 5, 6, 7  # their operands
_OF_GATES = (1, 2, _BIASES)


def moving(op: Operator) -> tuple[Tensor, ...]:
    """Return the operands that move: not those that tasks know, as axes, sizes, constant indices, zero points are."""
    return tuple(tensor for place, tensor in enumerate(op.inputs) if tensor is not None and _moves(op, place, tensor))


def _moves(op: Operator, place: int, tensor: Tensor) -> bool:
    if _name(op) in _WITH_SETTINGS:
        return place == 0
    if tensor.value is None:
        return True
    if _name(op) == "BatchNormalization" and place in _BATCH_STATISTICS:
        return False
    if not np.issubdtype(tensor.value.dtype, np.integer) and tensor.dtype not in PACKED_BITS:
        return True
    if _name(op) == _OF_ALTERNATING:
        return place % 3 == 2
    return _name(op) in _OF_DATA or place in _DATA.get(_name(op), (0,))


def _name(op: Operator) -> str:
    """Return the type of an operator without its domain: contributed ones are like ONNX's own."""
    return op.op_type.rpartition(".")[2]


def words_of(tensor: Tensor) -> int:
    """Return the words of a tensor; elements of less than a byte are packed."""
    return packed(tensor, prod(tensor.shape))


def packed(tensor: Tensor, elements: int) -> int:
    """Return the words of so many elements of a tensor."""
    return -(-elements * PACKED_BITS.get(tensor.dtype, 8) // 8)


def least_read(op: Operator, tensor: Tensor) -> int:
    """Return how many different words of an operand are read at least, whatever the operator's windows."""
    elements = prod(tensor.shape)
    place = next(place for place, operand in enumerate(op.inputs) if operand is tensor)
    if place == 0:
        elements = min(elements, _least_of_first(op, tensor))
    if _is_uncertain(op, place):
        elements = 0
    if _name(op) == "Einsum":
        elements = min(elements, _on_diagonals(op, place, tensor))
    if _name(op) in _RECURRENT and place == _BIASES and tensor.value is not None:
        elements //= 2
    return packed(tensor, elements)


def _is_uncertain(op: Operator, place: int) -> bool:
    """Return whether an operator may leave out any element of an operand."""
    name = _name(op)
    if name != _KEPT and all(operand is None or operand.is_constant for operand in op.inputs):
        return True  # the result may be a constant as well
    if name in _RECURRENT:
        return _is_uncertain_of_gates(op, place)
    if name == "Gemm":
        return not op.real("beta" if place == _BIAS else "alpha", 1.0)
    if name == "Where":  # a constant condition may be the same everywhere
        return place > 0 and op.inputs[0] is not None and op.inputs[0].value is not None
    if name == "IsInf":
        return not (op.integer("detect_negative", 1) or op.integer("detect_positive", 1))
    if name == "ConvTranspose":  # what is written beside the result may be all that an element is for
        is_cut = any(size > 0 for size in op.integers("pads", ())) or bool(op.integers("output_shape", ()))
        return place < _BIAS and (is_cut or op.input(0).is_constant)
    return name in _OF_SIZES_ALONE or place in _READ_IN_PART.get(name, ())


def _is_uncertain_of_gates(op: Operator, place: int) -> bool:
    """Return whether gates may leave out any element: sequences may be empty, and before the first state is nothing."""
    given = [operand is not None for operand in op.inputs]
    if place in (_STATE, _CELL) and _is_zero(op.inputs[place]):
        return True  # as if it were not given
    if len(given) > _LENGTHS and given[_LENGTHS]:
        return True
    states = (_STATE, _CELL) if _name(op) == "LSTM" else (_STATE,)
    has_state = all(len(given) > state and given[state] and not _is_zero(op.inputs[state]) for state in states)
    is_long = op.input(0).shape[op.integer("layout", 0)] > 1
    uses_all_gates = (has_state or is_long) and not op.integer("input_forget", 0)
    return place == _PEEPHOLES or (place in _OF_GATES and not uses_all_gates)


def _is_zero(tensor: Tensor | None) -> bool:
    """Return whether an operand is a constant of zeros."""
    return tensor is not None and tensor.value is not None and not np.any(tensor.value)


def _least_of_first(op: Operator, tensor: Tensor) -> int:
    words, written = prod(tensor.shape), sum(prod(result.shape) for result in op.results())
    if _name(op) in _SELECTIONS:
        return min(written, _indexed(op, tensor))
    if _name(op) in _SCATTERS:
        updates = op.optional_input(2)
        return max(0, words - (0 if updates is None else prod(updates.shape)))
    if _name(op) in ("Resize", "Upsample"):
        return _resized(op, tensor)
    if _name(op) == "Trilu":
        return _kept_of_triangle(op, tensor)
    return 0 if _name(op) == "Pad" and _crops(op) else words


def _indexed(op: Operator, tensor: Tensor) -> int:
    """Return the elements that constant indices name; all of others, which may name any."""
    words = prod(tensor.shape)
    indices, name = op.optional_input(1), _name(op)
    if indices is None or indices.value is None or not words or not name.startswith("Gather"):
        return words
    numbers = np.asarray(indices.value, np.int64)
    if name == "GatherND":
        batch, depth = op.integer("batch_dims", 0), indices.shape[-1]
        places = numbers.reshape(-1, depth) % tensor.shape[batch : batch + depth]
        return len(np.unique(places, axis=0)) * prod(tensor.shape[batch + depth :])
    extent = tensor.shape[op.axis()]
    return len(distinct(numbers % extent)) * (words // extent if name == "Gather" else 1)


def _resized(op: Operator, tensor: Tensor) -> int:
    """Return the elements of the smaller of both images, but for a border: places beside it may be one and the same."""
    if op.text("coordinate_transformation_mode", "") == "tf_crop_and_resize":
        return 0
    return prod(
        size if size == other else min(size, other) - 1
        for size, other in zip(tensor.shape, op.output().shape, strict=True)
    )


def least_written(op: Operator, result: Tensor) -> int:
    """Return how many words of a result are written at least: windows that are added up may leave gaps of zeros."""
    if _name(op) == "ConvTranspose":
        return packed(result, _reached_by_convolution(op, result))
    return packed(result, _reached_by_columns(op, result)) if _name(op) == "Col2Im" else words_of(result)


def _reached_by_convolution(op: Operator, result: Tensor) -> int:
    x, w = op.input(0), op.input(1)
    rank = x.rank - 2
    strides, dilations = op.integers("strides", (1,) * rank), op.integers("dilations", (1,) * rank)
    is_cut = any(op.integers("pads", (0,) * rank)) or op.text("auto_pad", "NOTSET") not in ("NOTSET", "VALID")
    if is_cut and any(stride > taps for stride, taps in zip(strides, w.shape[2:], strict=True)):
        return 0
    return prod((*result.shape[:2], *map(_reached, result.shape[2:], x.shape[2:], w.shape[2:], strides, dilations)))


def _reached_by_columns(op: Operator, result: Tensor) -> int:
    taps = op.static_integers(2, "block_shape") or ()
    ones, none = (1,) * len(taps), (0,) * (2 * len(taps))
    strides, dilations, pads = op.integers("strides", ones), op.integers("dilations", ones), op.integers("pads", none)
    before, after = pads[: len(taps)], pads[len(taps) :]
    places = (
        (size + first + last - dilation * (tap - 1) - 1) // stride + 1
        for size, first, last, tap, stride, dilation in zip(
            result.shape[2:], before, after, taps, strides, dilations, strict=True
        )
    )
    return prod((*result.shape[:2], *map(_reached, result.shape[2:], places, taps, strides, dilations, before)))


def _reached(size: int, places: int, taps: int, stride: int, dilation: int, before: int = 0) -> int:
    """Return how many elements of an axis are in a window."""
    reached = {place * stride + tap * dilation - before for place in range(places) for tap in range(taps)}
    return sum(0 <= place < size for place in reached)


def _kept_of_triangle(op: Operator, tensor: Tensor) -> int:
    """Return the elements of the triangles that stay; of an unknown diagonal none is certain."""
    k = op.optional_input(1)
    if k is not None and k.value is None:
        return 0
    rows, columns = tensor.shape[-2:]
    diagonal = 0 if k is None or k.value is None else int(k.value.reshape(-1)[0])
    places = np.clip(diagonal + np.arange(rows), 0, columns)
    kept = int((columns - places).sum()) if op.integer("upper", 1) else int(np.clip(places + 1, 0, columns).sum())
    return kept * prod(tensor.shape[:-2])


def _crops(op: Operator) -> bool:
    """Return whether some padding is negative, or may be."""
    pads = op.optional_input(1)
    if pads is None:
        return any(size < 0 for size in op.integers("pads", ()))
    return pads.value is None or bool((np.asarray(pads.value, np.int64) < 0).any())


def _on_diagonals(op: Operator, place: int, tensor: Tensor) -> int:
    """Return the elements of an operand of an Einsum whose repeated letters agree: those on diagonals."""
    term = op.text("equation", "").replace(" ", "").split("->")[0].split(",")[place]
    before, has_dots, after = term.partition("...")
    sizes = dict(zip(before, tensor.shape, strict=False))
    sizes |= dict(zip(reversed(after), reversed(tensor.shape), strict=False))
    middle = tensor.shape[len(before) : tensor.rank - len(after)] if has_dots else ()
    return prod(sizes.values()) * prod(middle)
