"""Quantised steps: integers that stand for real numbers, ``real = (integer - zero_point) * scale``; as expressions.

Each operation on real numbers is rounded to single precision, as in onnxruntime: a product that lies half-way between
two steps else becomes another one.
"""

from collections.abc import Sequence

import numpy as np

from dfcompile.frontend import PACKED_BITS, element_kind, integer_limits, largest_real
from dfcompile.lowering import CanonicalFragment, Tensor
from dfcompile.lowering.expressions import operand_names
from dfcompile.lowering.node import Node

_LINES = {-2: "row", -1: "column"}
ACCUMULATED = "int32"  # sums of products of what is quantised to 8 bits


def is_zero(zero_point: Tensor | None) -> bool:
    """Whether a zero point is omitted or known to be zero."""
    return zero_point is None or (zero_point.value is not None and not np.any(zero_point.value))


def quantised(value: str, zero_point: str, dtype: str, *, saturate: bool = True) -> str:
    """Return the step next to a multiple of the scale; of two that are as near, the even one.

    Args:
        value: how often the scale goes into the number.
        zero_point: the step that stands for zero; empty if that is 0.
        dtype: of the steps: integers, or real numbers of 4 or 8 bits.
        saturate: whether real numbers beyond the largest one become that; integers always do.

    >>> quantised("a", "b", "int8")
    'min(max(rint(a) + dace.float32(b), -128.0), 127.0)'
    """
    shift = f" + dace.float32({zero_point})" if zero_point else ""
    if element_kind(dtype) == "f":
        if dtype in PACKED_BITS:
            return f"{value}{shift}"  # what is stored saturates: it has no infinity
        largest = largest_real(dtype)
        # In this order a NaN stays one.
        return f"min({largest}, max(-{largest}, {value}{shift}))" if saturate else f"{value}{shift}"
    least, most = integer_limits(dtype)
    return f"min(max(rint({value}){shift}, {least}.0), {most}.0)"


def quotient(value: str, scale: str) -> str:
    """Return how often a scale goes into a number."""
    return f"dace.float32(dace.float32({value}) / dace.float32({scale}))"


def real_number(step: str, zero_point: str, scale: str, dtype: str) -> str:
    """Return what a step of a type stands for.

    >>> real_number("a", "", "b", "int8"), real_number("a", "c", "b", "uint8")
    ('dace.float32(a) * b', 'dace.float32(dace.int32(a) - dace.int32(c)) * b')
    """
    if not zero_point:
        return f"dace.float32({step}) * {scale}"
    if element_kind(dtype) == "f":
        return f"(dace.float32({step}) - dace.float32({zero_point})) * {scale}"
    return f"dace.float32(dace.int32({step}) - dace.int32({zero_point})) * {scale}"


def rescaled(total: str, left: str, right: str, scale: str) -> str:
    """Return how often a scale goes into a sum of products of steps of two other scales."""
    return f"dace.float32(dace.float32({total}) * dace.float32(dace.float32({left} * {right}) / {scale}))"


def shifted(
    build: CanonicalFragment, steps: Tensor, zero_point: Tensor | None, axes: Sequence[int], name: str
) -> Tensor:
    """Return steps less their zero point, one element-wise task; themselves if that is zero.

    Args:
        build: what to add it to.
        steps: of 8 bits.
        zero_point: of their type.
        axes: of the steps that the zero point's dimensions stand for.
        name: short.
    """
    if zero_point is None or is_zero(zero_point):
        return steps
    source, own = "dace.int32(a) - dace.int32(b)", [range(steps.rank), axes]
    return build.computed(name, source, [steps, zero_point], steps.shape, "int16", axes=own, step=f"{name}_shift")


def aligned(op: Node, operand: Tensor, other: Tensor, vector_axis: int) -> tuple[int, ...]:
    """Return the dimensions of matrices that a scale, zero point or bias of their rows or columns stands for.

    Those of a vector: one; of others: from the last on.

    Args:
        op: for errors.
        operand: the scale, zero point or bias.
        other: the matrices.
        vector_axis: the dimension of rows, or of columns; along the other one the operand has one element.

    Raises:
        UnsupportedOpError: it has another extent than that.
    """
    is_vector = operand.rank == 1 and operand.elements > 1
    axes = (vector_axis,) if is_vector else tuple(range(other.rank - operand.rank, other.rank))
    extents = {axis: 1 if axis >= other.rank - 2 else extent for axis, extent in enumerate(other.shape)}
    extents[vector_axis] = other.shape[vector_axis]
    for axis, extent in zip(axes, operand.shape, strict=True):
        if axis < 0 or extent not in (1, extents[axis]):
            raise op.unsupported(f"{operand} against one element per {_LINES[vector_axis - other.rank]} of {other}")
    return axes


class Terms:
    """The operands of an expression that grows; each gets the next letter."""

    def __init__(self) -> None:
        self.operands: list[Tensor] = []

    def name(self, tensor: Tensor) -> str:
        """Return the letter of an operand."""
        self.operands.append(tensor)
        return operand_names(len(self.operands))[-1]

    def shift(self, zero_point: Tensor | None) -> str:
        """Return the letter of a zero point; nothing if it is zero."""
        return "" if zero_point is None or is_zero(zero_point) else self.name(zero_point)

    def real(self, steps: Tensor, scale: Tensor, zero_point: Tensor | None) -> str:
        """Return what steps stand for, in single precision."""
        names = self.name(steps), self.shift(zero_point), self.name(scale)
        return f"dace.float32({real_number(*names, steps.dtype)})"

    def steps(self, value: str, scale: Tensor, zero_point: Tensor | None, dtype: str) -> str:
        """Return the step of another scale next to a real number."""
        return quantised(quotient(value, self.name(scale)), self.shift(zero_point), dtype)
