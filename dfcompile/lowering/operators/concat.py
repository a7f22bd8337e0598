"""The canonical concatenation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from dfcompile.lowering.operators.base import CanonicalOperator
from dfcompile.lowering.operators.field_kinds import Axis
from dfcompile.lowering.operators.loop_nest import Loop, LoopNest
from dfcompile.lowering.tensor import Tensor


@dataclass(frozen=True, slots=True)
class Concat(CanonicalOperator):
    """``Y[…, offset_n + i, …] = X_n[…, i, …]``: the operands one behind the other along an axis.

    Attributes:
        axis: counted from the front.
    """

    axis: Axis

    def check(self, operands: Sequence[Tensor], results: Sequence[Tensor]) -> None:
        """Check that the operands fill the result and differ along the axis alone."""
        y = results[0]
        self.check_axis("axis", self.axis, y)
        others = {(*tensor.shape[: self.axis], *tensor.shape[self.axis + 1 :]) for tensor in (*operands, y)}
        if len(others) > 1 or sum(tensor.shape[self.axis] for tensor in operands) != y.shape[self.axis]:
            raise self.fault(f"operands {', '.join(map(str, operands))} along axis {self.axis} against {y}")

    def loop_nest(self, operands: Sequence[Tensor], result: Tensor) -> LoopNest:
        """Return the axes but the one along which the operands lie one behind the other."""
        index = tuple(None if axis == self.axis else f"i{axis}" for axis in range(result.rank))
        loops = {f"i{axis}": Loop(extent) for axis, extent in enumerate(result.shape) if axis != self.axis}
        return LoopNest(loops, (index,) * len(operands), index)

    def on_share(self, operands: Sequence[Tensor], result: Tensor, extents: Mapping[str, int]) -> Self:  # noqa: ARG002
        """Return the same operator: nothing of it depends on extents."""
        return self
