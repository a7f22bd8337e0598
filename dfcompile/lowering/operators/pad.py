"""The canonical padding."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Self, TypeAlias

from dfcompile.lowering.operators.base import CanonicalOperator
from dfcompile.lowering.operators.loop_nest import Loop, LoopNest
from dfcompile.lowering.tensor import Tensor

PadMode: TypeAlias = Literal["constant", "edge", "reflect", "wrap"]


@dataclass(frozen=True, slots=True)
class Pad(CanonicalOperator):
    """``Y[begin + i, …] = X[i, …]``, and around it a constant, the edge, a reflection or the other side; or cropped.

    Attributes:
        pads: elements to put before the data in every dimension, then behind it in every dimension; negative ones crop.
        mode: what is put there.
        value: the constant.
    """

    pads: tuple[int, ...]
    mode: PadMode = "constant"
    value: float = 0

    def check(self, operands: Sequence[Tensor], results: Sequence[Tensor]) -> None:
        """Check that the pads make the result's shape."""
        self.check_operands(operands, 1)
        x, y = operands[0], results[0]
        self.check_length("pads", 2 * x.rank)
        pads = zip(self.pads[: x.rank], self.pads[x.rank :], strict=True)
        shape = tuple(extent + begin + end for extent, (begin, end) in zip(x.shape, pads, strict=True))
        if y.shape != shape:
            raise self.fault(f"field 'pads' is {self.pads} for {x} against the result {y}")

    def loop_nest(self, operands: Sequence[Tensor], result: Tensor) -> LoopNest:
        """Return the axes that are not padded."""
        rank = operands[0].rank
        kept = [axis for axis in range(rank) if not self.pads[axis] and not self.pads[rank + axis]]
        index = tuple(f"i{axis}" if axis in kept else None for axis in range(rank))
        return LoopNest({f"i{axis}": Loop(result.shape[axis]) for axis in kept}, (index,), index)

    def on_share(self, operands: Sequence[Tensor], result: Tensor, extents: Mapping[str, int]) -> Self:  # noqa: ARG002
        """Return the same operator: nothing of it depends on extents."""
        return self
