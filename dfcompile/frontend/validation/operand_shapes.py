"""Operand shapes: the operands of a node fit together, operator by operator."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import onnx
from onnx import AttributeProto

from dfcompile.errors import UserError
from dfcompile.frontend.shapes import TensorType

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Operands:
    """A node and what is known of its operands.

    Attributes:
        node: the node.
        shapes: static shape of each input by position; None if it is omitted or not known.
    """

    node: onnx.NodeProto
    shapes: tuple[Shape | None, ...]

    @property
    def where(self) -> str:
        """How the node reads in errors."""
        return f"node {self.node.name!r}"

    def shape(self, position: int) -> Shape | None:
        """Return the shape of an input, None if it is omitted or not known."""
        return self.shapes[position] if position < len(self.shapes) else None

    def name(self, position: int) -> str:
        """Return how an input reads in errors."""
        return repr(self.node.input[position])

    def integer(self, name: str, default: int) -> int:
        """Return an integer attribute."""
        return next((entry.i for entry in self.node.attribute if entry.name == name), default)

    def integers(self, name: str) -> tuple[int, ...] | None:
        """Return an attribute that is a list of integers, None if it is absent."""
        return next((tuple(entry.ints) for entry in self.node.attribute if entry.name == name), None)


def check_operand_shapes(node: onnx.NodeProto, types: Mapping[str, TensorType]) -> None:
    """Check the shapes of a node's operands, as far as they are known.

    Raises:
        UserError: two operands, or an operand and an attribute, do not fit together.
    """
    operands = Operands(node, tuple(types[name].known_shape if name in types else None for name in node.input))
    _check_window(operands)
    check = _CHECKS.get(node.op_type)
    if check is not None:
        check(operands)


def _check_window(operands: Operands) -> None:
    """Strides, dilations and kernels are positive, pads are not negative, whatever the operator."""
    for entry in operands.node.attribute:
        least = _LEAST.get(entry.name)
        if least is None:
            continue
        for size in (entry.i,) if entry.type == AttributeProto.INT else entry.ints:
            if size < least:
                raise UserError(f"{operands.where}: attribute {entry.name!r} has {size} against at least {least}")


def _check_convolution(operands: Operands) -> None:
    data, weights = operands.shape(0), operands.shape(1)
    if data is None or weights is None:
        return
    _check_rank(operands, 1, weights, len(data))
    group = operands.integer("group", 1)
    if data[1] != weights[1] * group:
        raise UserError(
            f"{operands.where}: input {operands.name(0)} has {data[1]} channels against weights "
            f"for {weights[1] * group} (groups {group})"
        )
    if weights[0] % group:
        raise UserError(f"{operands.where}: {weights[0]} filters against a multiple of {group} groups")
    kernel = operands.integers("kernel_shape")
    if kernel is not None and kernel != weights[2:]:
        raise UserError(
            f"{operands.where}: attribute 'kernel_shape' is {_text(kernel)} against {_text(weights[2:])} weights"
        )
    _check_window_ranks(operands, len(data) - 2)
    _check_vector(operands, 2, weights[0], "filters")


def _check_transposed_convolution(operands: Operands) -> None:
    data, weights = operands.shape(0), operands.shape(1)
    if data is None or weights is None:
        return
    _check_rank(operands, 1, weights, len(data))
    if data[1] != weights[0]:
        raise UserError(
            f"{operands.where}: input {operands.name(0)} has {data[1]} channels against weights for {weights[0]}"
        )
    _check_window_ranks(operands, len(data) - 2)
    _check_vector(operands, 2, weights[1] * operands.integer("group", 1), "filters")


def _check_pooling(operands: Operands) -> None:
    data = operands.shape(0)
    if data is not None:
        _check_window_ranks(operands, len(data) - 2)


def _check_window_ranks(operands: Operands, rank: int) -> None:
    if rank < 1:
        raise UserError(f"{operands.where}: input {operands.name(0)} has {rank + 2} dimensions against at least 3")
    for name, factor in (("kernel_shape", 1), ("strides", 1), ("dilations", 1), ("pads", 2)):
        found = operands.integers(name)
        if found is not None and len(found) != factor * rank:
            raise UserError(f"{operands.where}: attribute {name!r} has {len(found)} entries against {factor * rank}")


def _check_gemm(operands: Operands) -> None:
    left, right, bias = operands.shape(0), operands.shape(1), operands.shape(2)
    if left is None or right is None:
        return
    _check_rank(operands, 0, left, 2)
    _check_rank(operands, 1, right, 2)
    rows, inner = left[::-1] if operands.integer("transA", 0) else left
    other, columns = right[::-1] if operands.integer("transB", 0) else right
    _check_inner(operands, inner, other)
    if bias is not None and not _broadcasts_to(bias, (rows, columns)):
        raise UserError(f"{operands.where}: {operands.name(2)} is {_text(bias)} against a product of {rows}×{columns}")


def _check_matmul(operands: Operands) -> None:
    left, right = operands.shape(0), operands.shape(1)
    if left is None or right is None:
        return
    for position, shape in enumerate((left, right)):
        if not shape:
            raise UserError(f"{operands.where}: {operands.name(position)} is a scalar against a matrix")
    _check_inner(operands, left[-1], right[-2] if len(right) > 1 else right[0])
    if not _broadcast_together(left[:-2], right[:-2]):
        raise UserError(
            f"{operands.where}: batches of {_text(left[:-2])} in {operands.name(0)} against {_text(right[:-2])} "
            f"in {operands.name(1)}"
        )


def _check_inner(operands: Operands, inner: int, other: int) -> None:
    if inner != other:
        raise UserError(
            f"{operands.where}: {operands.name(0)} has an inner dimension of {inner} against {other} "
            f"of {operands.name(1)}"
        )


def _check_elementwise(operands: Operands) -> None:
    known = [(position, shape) for position, shape in enumerate(operands.shapes) if shape is not None]
    for at, (position, shape) in enumerate(known):
        for other, other_shape in known[:at]:
            if not _broadcast_together(other_shape, shape):
                raise UserError(
                    f"{operands.where}: {operands.name(other)} is {_text(other_shape)} against {_text(shape)} "
                    f"of {operands.name(position)} (they do not broadcast)"
                )


def _check_concat(operands: Operands) -> None:
    known = [(position, shape) for position, shape in enumerate(operands.shapes) if shape is not None]
    if not known:
        return
    first, expected = known[0]
    axis = operands.integer("axis", 0)
    if not -len(expected) <= axis < len(expected):
        raise UserError(f"{operands.where}: axis {axis} against {len(expected)} dimensions of {operands.name(first)}")
    axis %= len(expected)
    for position, shape in known[1:]:
        _check_rank(operands, position, shape, len(expected))
        if shape[:axis] + shape[axis + 1 :] != expected[:axis] + expected[axis + 1 :]:
            raise UserError(
                f"{operands.where}: {operands.name(position)} is {_text(shape)} against {_text(expected)} "
                f"of {operands.name(first)} (all but axis {axis} must agree)"
            )


def _check_channel_parameters(operands: Operands) -> None:
    data = operands.shape(0)
    if data is None:
        return
    if len(data) < 2:
        raise UserError(f"{operands.where}: input {operands.name(0)} has {len(data)} dimensions against at least 2")
    for position in range(1, len(operands.shapes)):
        _check_vector(operands, position, data[1], "channels")


def _check_layer_normalization(operands: Operands) -> None:
    data = operands.shape(0)
    if data is None:
        return
    axis = operands.integer("axis", -1)
    if not -len(data) <= axis < len(data):
        raise UserError(f"{operands.where}: axis {axis} against {len(data)} dimensions of {operands.name(0)}")
    normalised = data[axis % len(data) :]
    for position in range(1, len(operands.shapes)):
        shape = operands.shape(position)
        if shape is not None and not _broadcasts_to(shape, normalised):
            raise UserError(
                f"{operands.where}: {operands.name(position)} is {_text(shape)} against {_text(normalised)} "
                f"normalised elements of {operands.name(0)}"
            )


def _check_rank(operands: Operands, position: int, shape: Shape, expected: int) -> None:
    if len(shape) != expected:
        raise UserError(
            f"{operands.where}: {operands.name(position)} has {len(shape)} dimensions ({_text(shape)}) "
            f"against {expected}"
        )


def _check_vector(operands: Operands, position: int, length: int, what: str) -> None:
    shape = operands.shape(position)
    if shape is not None and shape != (length,):
        raise UserError(f"{operands.where}: {operands.name(position)} is {_text(shape)} against {length} {what}")


def _broadcasts_to(shape: Sequence[int], target: Sequence[int]) -> bool:
    return len(shape) <= len(target) and all(
        size in {1, wanted} for size, wanted in zip(reversed(shape), reversed(target), strict=False)
    )


def _broadcast_together(left: Sequence[int], right: Sequence[int]) -> bool:
    return all(a == b or 1 in {a, b} for a, b in zip(reversed(left), reversed(right), strict=False))


def _text(shape: Sequence[int]) -> str:
    return "×".join(str(size) for size in shape) if shape else "a scalar"


_LEAST = {"strides": 1, "dilations": 1, "kernel_shape": 1, "group": 1, "num_groups": 1, "pads": 0}
_BROADCASTING = """
    Add And BitShift BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual Less LessOrEqual Max Mean Min Mod
    Mul Or PRelu Pow Sub Sum Where Xor
"""
_CHECKS: Mapping[str, Callable[[Operands], None]] = {
    "Conv": _check_convolution,
    "ConvTranspose": _check_transposed_convolution,
    "AveragePool": _check_pooling,
    "LpPool": _check_pooling,
    "MaxPool": _check_pooling,
    "Gemm": _check_gemm,
    "MatMul": _check_matmul,
    "Concat": _check_concat,
    "BatchNormalization": _check_channel_parameters,
    "InstanceNormalization": _check_channel_parameters,
    "LayerNormalization": _check_layer_normalization,
    **dict.fromkeys(_BROADCASTING.split(), _check_elementwise),
}
