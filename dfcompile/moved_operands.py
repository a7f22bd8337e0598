"""Which operands of an operator move, and how many different words of them at least: what bounds of its I/O count."""

from math import prod

import numpy as np

from dfcompile.distinct import distinct
from dfcompile.frontend import PACKED_BITS, scalar_type
from dfcompile.lowering.node import Operator
from dfcompile.lowering.tensor import Tensor

_WITH_SETTINGS = frozenset({"Resize", "Upsample", "Pad", "OneHot", "Clip", "Trilu"})  # operands after the first
# Operators whose operands are data all, constant integers as well; of others the first is, and those named.
_OF_DATA = frozenset({
    "Add", "And", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Concat", "Div", "Equal", "Greater",
    "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Mean", "Min", "Mod", "Mul", "Or", "PRelu", "Pow", "Sub", "Sum",
    "Where", "Xor", "MatMul", "FusedMatMul", "Gemm", "Conv", "FusedConv",
})  # fmt: skip
_DATA = {
    "ConvInteger": (0, 1),
    "DynamicQuantizeMatMul": (0, 1),
    "MatMulInteger": (0, 1),
    "MatMulIntegerToFloat": (0, 1),
    "MatMulNBits": (0, 1),
    "QGemm": (0, 3, 6),
    "QLinearAdd": (0, 3),
    "QLinearConv": (0, 3, 8),
    "QLinearMatMul": (0, 3),
    "QLinearMul": (0, 3),
    "QLinearWhere": (0, 1, 4),
}
_OF_ALTERNATING = "QLinearConcat"  # a scale and a zero point, then data, their scale and zero point
_SELECTIONS = frozenset({"Gather", "GatherElements", "GatherND", "Slice", "Split", "Resize", "Upsample"})
_SCATTERS = frozenset({"ScatterElements", "ScatterND"})
# Constant parameters that are folded: four of a BatchNormalization into two; the two biases of gates into one.
_BATCH_STATISTICS = (3, 4)
_RECURRENT, _BIASES = frozenset({"GRU", "LSTM", "RNN"}), 3


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


def word_bytes(tensor: Tensor) -> int:
    """Return the bytes of a word."""
    return int(scalar_type(tensor.dtype).bytes)


def least_read(op: Operator, tensor: Tensor) -> int:
    """Return how many different words of an operand are read at least, whatever the operator's windows."""
    elements = prod(tensor.shape)
    place = next(place for place, operand in enumerate(op.inputs) if operand is tensor)
    if place == 0:
        elements = min(elements, _least_of_first(op, tensor))
    if _name(op) == "Einsum":
        elements = min(elements, _on_diagonals(op, place, tensor))
    if _name(op) in _RECURRENT and place == _BIASES and tensor.value is not None:
        elements //= 2
    return packed(tensor, elements)


def _least_of_first(op: Operator, tensor: Tensor) -> int:
    words, written = prod(tensor.shape), sum(prod(result.shape) for result in op.results())
    if _name(op) in _SELECTIONS:
        return min(written, _indexed(op, tensor))
    if _name(op) in _SCATTERS:
        updates = op.inputs[2] if len(op.inputs) > 2 else None
        return max(0, words - (0 if updates is None else prod(updates.shape)))
    if _name(op) == "Trilu":
        return _kept_of_triangle(op, tensor)
    if _name(op) == "Pad":
        return _left_of_padding(op, tensor)
    return words


def _indexed(op: Operator, tensor: Tensor) -> int:
    """Return the elements that constant indices name; all of others, which may name any."""
    words = prod(tensor.shape)
    indices = op.inputs[1] if len(op.inputs) > 1 else None
    if indices is None or indices.value is None or not words:
        return words
    match _name(op):
        case "Gather":
            extent = tensor.shape[op.axis()]
            return len(distinct(np.asarray(indices.value, np.int64).reshape(-1) % extent)) * (words // extent)
        case "GatherElements":
            return len(distinct(np.asarray(indices.value, np.int64).reshape(-1)))
        case "GatherND":
            batch, depth = op.integer("batch_dims", 0), indices.shape[-1]
            rows = np.unique(indices.value.reshape(-1, depth), axis=0)
            return len(rows) * prod(tensor.shape[batch + depth :])
    return words


def _kept_of_triangle(op: Operator, tensor: Tensor) -> int:
    """Return the elements of the triangles that stay; of an unknown diagonal none is certain."""
    k = op.inputs[1] if len(op.inputs) > 1 else None
    if k is not None and k.value is None:
        return 0
    rows, columns = tensor.shape[-2:]
    diagonal = 0 if k is None or k.value is None else int(k.value.reshape(-1)[0])
    places = np.clip(diagonal + np.arange(rows), 0, columns)
    kept = int((columns - places).sum()) if op.integer("upper", 1) else int(np.clip(places + 1, 0, columns).sum())
    return kept * prod(tensor.shape[:-2])


def _left_of_padding(op: Operator, tensor: Tensor) -> int:
    """Return the elements if no padding is negative; else none is certain."""
    return 0 if _crops(op) else prod(tensor.shape)


def _crops(op: Operator) -> bool:
    pads = op.inputs[1] if len(op.inputs) > 1 else None
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
