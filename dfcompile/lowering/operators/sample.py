"""The canonical weighted lookup: sums over a few elements of a table at places that are data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from dfcompile.lowering.operators.base import CanonicalOperator
from dfcompile.lowering.operators.loop_nest import KINDS, Loop, LoopNest
from dfcompile.lowering.reduction import Reduction
from dfcompile.lowering.tensor import Tensor


@dataclass(frozen=True, slots=True)
class Sample(CanonicalOperator):
    """``Y[b, c, p, r] = reduce_t weights[b, p, t] * X[b, c, places[b, p, t], r]``: interpolation between elements.

    A negative place is outside: its element is 0. Without weights, the third operand, elements count as they are.
    Places and weights of batch 1 are those of every batch of X.

    Attributes:
        reduction: how the elements of one point become one.
    """

    reduction: Reduction = Reduction.SUM

    def check(self, operands: Sequence[Tensor], results: Sequence[Tensor]) -> None:
        """Check that operands and result have the same batch, points, channels and rows."""
        self.check_operands(operands, 2, 3)
        x, places, y = operands[0], operands[1], results[0]
        fits = (x.rank, places.rank, y.rank) == (4, 3, 4) and places.shape[0] in (1, x.shape[0])
        if not fits or y.shape != (*x.shape[:2], places.shape[1], x.shape[3]):
            raise self.fault(f"places {places} in {x} against the result {y}")
        if len(operands) > 2 and operands[2].shape != places.shape:
            raise self.fault(f"weights {operands[2]} against places {places}")

    def loop_nest(self, operands: Sequence[Tensor], result: Tensor) -> LoopNest:
        """Return batch, channels, points, rows and the elements of a point; places depend on data."""
        loops = {name: Loop(extent) for name, extent in zip("bcpr", result.shape, strict=True)}
        loops["t"] = Loop(operands[1].shape[2], kind=KINDS[self.reduction])
        of_points = (("0" if operands[1].shape[0] == 1 else "b", "p", "t"),) * (len(operands) - 1)
        return LoopNest(loops, (("b", "c", None, "r"), *of_points), ("b", "c", "p", "r"))

    def on_share(self, operands: Sequence[Tensor], result: Tensor, extents: Mapping[str, int]) -> Self:  # noqa: ARG002
        """Return the same operator: nothing of it depends on extents."""
        return self
