"""A canonical operator of this laboratory's own: a softmax that is one kernel, as its machine has a unit for it."""

from collections.abc import Sequence
from dataclasses import dataclass

from dfcompile.lowering import (
    CanonicalFragment,
    CanonicalNode,
    CanonicalOperator,
    MapFragment,
    Operator,
    Reduction,
    Tensor,
    expansion,
    onnx_expansion,
)
from dfcompile.lowering.operators import Axis


@dataclass(frozen=True, slots=True)
class RowSoftmax(CanonicalOperator):
    """``Y[i] = exp(X[i]) / sum(exp(X))`` along an axis, of numbers that are small.

    Attributes:
        axis: counted from the front.
    """

    axis: Axis

    def check(self, operands: Sequence[Tensor], results: Sequence[Tensor]) -> None:
        """Check the axis, and that operand and result have one shape."""
        self.check_operands(operands, 1)
        self.check_axis("axis", self.axis, operands[0])
        if operands[0].shape != results[0].shape:
            raise self.fault(f"{operands[0]} against the result {results[0]}")


@onnx_expansion("Softmax", "one-kernel", source="mylab24")
def one_kernel(op: Operator, build: CanonicalFragment) -> None:
    """One canonical RowSoftmax."""
    build.add(RowSoftmax(axis=op.axis(default=-1)), [op.input(0)], op.output())


@expansion(RowSoftmax, "two-scopes", source="mylab24")
def two_scopes(op: CanonicalNode[RowSoftmax], build: MapFragment) -> None:
    """A task sums up, another one divides; both read X."""
    x, y, axis = op.input(0), op.output(), op.operator.axis
    place = [f"i{at}" for at in range(x.rank)]
    row = ["0" if at == axis else name for at, name in enumerate(place)]
    inner_last = dict(sorted(zip(place, x.shape, strict=True), key=lambda loop: loop[0] == place[axis]))
    total = build.array("total", tuple(1 if at == axis else extent for at, extent in enumerate(x.shape)))
    build.map(
        "sum",
        loops=inner_last,
        reads={"a": (x, place)},
        write=(total, row),
        code="exp(a)",
        accumulate=Reduction.SUM,
    )
    build.map(
        "divide",
        loops=inner_last,
        reads={"a": (x, place), "s": (total, row)},
        write=(y, place),
        code="exp(a) / s",
    )
