"""The canonical element-wise operator."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from dfcompile.lowering.expressions import MOST_OPERANDS
from dfcompile.lowering.operators.base import CanonicalOperator
from dfcompile.lowering.operators.field_kinds import Axes
from dfcompile.lowering.operators.loop_nest import LoopNest, loops_over
from dfcompile.lowering.tensor import Tensor


@dataclass(frozen=True, slots=True)
class Elementwise(CanonicalOperator):
    """``Y[i, …] = expression(a[i, …], b[i, …], …)``, every element of Y written once, in row order.

    Attributes:
        expression: Python source of the operands' elements ``a``, ``b``, ``c`` …, at most 26.
        axes: per operand the result dimensions that its own dimensions stand for; broadcast as in numpy if none are
            given.
        starts: per operand where the part of it that is read begins along each of its dimensions, which may be longer
            than the result's then; all operands are read whole if none are given.
    """

    expression: str
    axes: tuple[tuple[int, ...], ...] | None = None
    starts: tuple[Axes, ...] | None = None

    def check(self, operands: Sequence[Tensor], results: Sequence[Tensor]) -> None:
        """Check that the expression is one of the operands, and that these can be broadcast to the result."""
        self.check_operands(operands, 1, MOST_OPERANDS)
        self.check_expression(self.expression, len(operands))
        result = results[0]
        for name in ("axes", "starts"):
            if getattr(self, name) is not None:
                self.check_length(name, len(operands))
        begins = self.starts or (None,) * len(operands)
        placed = zip(operands, self.operand_axes(operands, result), begins, strict=True)
        for position, (operand, axes, starts) in enumerate(placed):
            for axis in axes:
                self.check_axis("axes", axis, result)
            pairs = [(extent, result.shape[axis]) for extent, axis in zip(operand.shape, axes, strict=False)]
            if len(axes) != operand.rank or not (starts is not None or all(one in (1, whole) for one, whole in pairs)):
                raise self.fault(f"operand {position}, {operand}, at axes {list(axes)} of the result {result}")
            begun = zip(pairs, starts or (), strict=False)
            fits = all(start + whole <= extent or (extent, start) == (1, 0) for (extent, whole), start in begun)
            if starts is not None and (len(starts) != operand.rank or not fits):
                raise self.fault(f"operand {position}, {operand}, read from {list(starts)} on for the result {result}")

    def operand_axes(self, operands: Sequence[Tensor], result: Tensor) -> tuple[tuple[int, ...], ...]:
        """Return per operand the result dimensions that its dimensions stand for."""
        if self.axes is not None:
            return self.axes
        return tuple(tuple(range(result.rank - operand.rank, result.rank)) for operand in operands)

    def indices(self, operands: Sequence[Tensor], result: Tensor) -> tuple[tuple[str, ...], ...]:
        """Return per operand the index along each of its dimensions, of loops ``i0``, ``i1`` … over the result."""
        starts = self.starts or tuple((0,) * operand.rank for operand in operands)
        placed = zip(operands, self.operand_axes(operands, result), starts, strict=True)
        columns = (zip(operand.shape, axes, its, strict=True) for operand, axes, its in placed)
        return tuple(tuple(_index(extent, axis, start) for extent, axis, start in column) for column in columns)

    def loop_nest(self, operands: Sequence[Tensor], result: Tensor) -> LoopNest:
        """Return the dimensions of the result; one that is broadcast does not move in an operand."""
        loops = loops_over(result.shape)
        return LoopNest(loops, self.indices(operands, result), tuple(loops))

    def on_share(self, operands: Sequence[Tensor], result: Tensor, extents: Mapping[str, int]) -> Self | None:  # noqa: ARG002
        """Return the same operator: nothing of it depends on extents; None where parts of operands are read."""
        return self if self.starts is None else None


def _index(extent: int, axis: int, start: int) -> str:
    if extent == 1:
        return "0"
    return f"{start} + i{axis}" if start else f"i{axis}"
