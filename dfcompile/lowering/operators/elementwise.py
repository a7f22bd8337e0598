"""The canonical element-wise operator."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from dfcompile.lowering.expressions import MOST_OPERANDS
from dfcompile.lowering.operators.base import CanonicalOperator
from dfcompile.lowering.operators.expression_field import check_expression
from dfcompile.lowering.operators.loop_nest import Loop, LoopNest
from dfcompile.lowering.tensor import Tensor


@dataclass(frozen=True, slots=True)
class Elementwise(CanonicalOperator):
    """``Y[i, …] = expression(a[i, …], b[i, …], …)``, every element of Y written once, in row order.

    Attributes:
        expression: Python source of the operands' elements ``a``, ``b``, ``c`` …, at most 26.
        axes: per operand the result dimensions that its own dimensions stand for; broadcast as in numpy if none are
            given.
    """

    expression: str
    axes: tuple[tuple[int, ...], ...] | None = None

    def check(self, operands: Sequence[Tensor], results: Sequence[Tensor]) -> None:
        """Check that the expression is one of the operands, and that these can be broadcast to the result."""
        self.check_operands(operands, 1, MOST_OPERANDS)
        check_expression(self, self.expression, len(operands))
        result = results[0]
        if self.axes is not None:
            self.check_length("axes", len(operands))
        for position, (operand, axes) in enumerate(zip(operands, self.operand_axes(operands, result), strict=True)):
            for axis in axes:
                self.check_axis("axes", axis, result)
            fits = [extent in (1, result.shape[axis]) for extent, axis in zip(operand.shape, axes, strict=False)]
            if len(axes) != operand.rank or not all(fits):
                raise self.fault(f"operand {position}, {operand}, at axes {list(axes)} of the result {result}")

    def operand_axes(self, operands: Sequence[Tensor], result: Tensor) -> tuple[tuple[int, ...], ...]:
        """Return per operand the result dimensions that its dimensions stand for."""
        if self.axes is not None:
            return self.axes
        return tuple(tuple(range(result.rank - operand.rank, result.rank)) for operand in operands)

    def loop_nest(self, operands: Sequence[Tensor], result: Tensor) -> LoopNest:
        """Return the dimensions of the result; one that is broadcast does not move in an operand."""
        reads = tuple(
            tuple(f"i{axis}" if extent > 1 else "0" for extent, axis in zip(operand.shape, axes, strict=True))
            for operand, axes in zip(operands, self.operand_axes(operands, result), strict=True)
        )
        loops = {f"i{axis}": Loop(extent) for axis, extent in enumerate(result.shape)}
        return LoopNest(loops, reads, tuple(loops))

    def on_share(self, operands: Sequence[Tensor], result: Tensor, extents: Mapping[str, int]) -> Self:  # noqa: ARG002
        """Return the same operator: nothing of it depends on extents."""
        return self
