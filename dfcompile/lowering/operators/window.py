"""The canonical reduction over windows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from dfcompile.lowering.operators.base import CanonicalOperator
from dfcompile.lowering.operators.expression_field import check_expression
from dfcompile.lowering.operators.field_kinds import Extents
from dfcompile.lowering.operators.loop_nest import KINDS, Loop, LoopNest, moved_windows
from dfcompile.lowering.reduction import Reduction
from dfcompile.lowering.tensor import Tensor
from dfcompile.records import replace


@dataclass(frozen=True, slots=True)
class Window(CanonicalOperator):
    """``Y[b, c, y…] = reduce_k expression(X[b, c, stride*y + dilation*k …])``, X being padded before.

    Attributes:
        reduction: how the elements of a window become one.
        kernel: extent of a window, per spatial dimension.
        strides: distance between windows, per spatial dimension.
        dilations: distance between the elements of a window, per spatial dimension.
        expression: Python source of the element ``a``, computed before the reduction.
    """

    reduction: Reduction
    kernel: Extents
    strides: Extents
    dilations: Extents
    expression: str = "a"

    def check(self, operands: Sequence[Tensor], results: Sequence[Tensor]) -> None:
        """Check that the windows lie within the data."""
        self.check_operands(operands, 1)
        check_expression(self, self.expression, 1)
        x, y = operands[0], results[0]
        if y.rank != x.rank or y.shape[:2] != x.shape[:2]:
            raise self.fault(f"result {y} against the batch and the channels of {x}")
        for name in ("kernel", "strides", "dilations"):
            self.check_length(name, x.rank - 2)
        spatial = zip(x.shape[2:], y.shape[2:], self.kernel, self.strides, self.dilations, strict=True)
        for axis, (extent, count, kernel, stride, dilation) in enumerate(spatial, 2):
            span = stride * (count - 1) + dilation * (kernel - 1) + 1
            if span > extent:
                raise self.fault(f"{count} windows span {span} elements against {extent} of axis {axis} of {x}")

    def loop_nest(self, operands: Sequence[Tensor], result: Tensor) -> LoopNest:  # noqa: ARG002
        """Return batch, channels, windows and the elements of a window; windows that overlap need all of X."""
        write = ("b", "c", *(f"y{axis}" for axis in range(len(self.kernel))))
        loops = {name: Loop(extent) for name, extent in zip(write, result.shape, strict=True)}
        loops |= {f"k{axis}": Loop(extent, kind=KINDS[self.reduction]) for axis, extent in enumerate(self.kernel)}
        places = (f"{self.strides[axis]}*y{axis} + {self.dilations[axis]}*k{axis}" for axis in range(len(self.kernel)))
        return LoopNest(loops, (("b", "c", *places),), write)

    def on_share(self, operands: Sequence[Tensor], result: Tensor, extents: Mapping[str, int]) -> Self:
        """Return the first elements of each window."""
        nest, windows = self.loop_nest(operands, result), (self.strides, self.dilations)
        shapes = [tensor.shape for tensor in operands]
        strides, dilations = moved_windows(nest, shapes, result.shape, extents, windows)
        return replace(
            self,
            strides=strides,
            dilations=dilations,
            kernel=tuple(extents[f"k{axis}"] for axis in range(len(self.kernel))),
        )
