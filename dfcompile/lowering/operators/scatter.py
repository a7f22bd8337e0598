"""The canonical operators that write at other places than in row order: at indices, or where windows overlap."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from dfcompile.lowering.operators.base import CanonicalOperator
from dfcompile.lowering.operators.field_kinds import Axes, Axis, Extents
from dfcompile.lowering.operators.gather import Run
from dfcompile.lowering.operators.loop_nest import Loop, LoopNest
from dfcompile.lowering.reduction import Reduction
from dfcompile.lowering.tensor import Tensor


@dataclass(frozen=True, slots=True)
class Scatter(CanonicalOperator):
    """``Y = X``, but ``Y[…, first + step * j, …] = U[…, offset + j, …]``: constant indices as arithmetic progressions.

    Attributes:
        axis: of X that the indices are of, counted from the front.
        runs: the progressions (first, step, count), one behind the other in U; a later one overwrites an earlier one.
    """

    axis: Axis
    runs: tuple[Run, ...]

    def check(self, operands: Sequence[Tensor], results: Sequence[Tensor]) -> None:
        """Check that the runs lie within the data and take all of the updates."""
        self.check_operands(operands, 2)
        x, updates = operands
        self.check_axis("axis", self.axis, x)
        extent = x.shape[self.axis]
        for first, step, count in self.runs:
            inside = 0 <= first < extent and 0 <= first + step * (count - 1) < extent
            if count < 1 or not inside or (step == 0 and count > 1):
                raise self.fault(f"field 'runs' has {(first, step, count)} against different indices below {extent}")
        total = sum(count for _, _, count in self.runs)
        wanted = (*x.shape[: self.axis], total, *x.shape[self.axis + 1 :])
        if updates.shape != wanted:
            raise self.fault(f"field 'runs' has {total} indices along axis {self.axis} of {x} against {updates}")
        _check_same(self, x, results[0])

    def loop_nest(self, operands: Sequence[Tensor], result: Tensor) -> LoopNest:
        """Return the dimensions but that of the indices."""
        index = tuple(None if axis == self.axis else f"i{axis}" for axis in range(result.rank))
        loops = {f"i{axis}": Loop(extent) for axis, extent in enumerate(result.shape) if axis != self.axis}
        return LoopNest(loops, (index,) * len(operands), index)

    def on_share(self, operands: Sequence[Tensor], result: Tensor, extents: Mapping[str, int]) -> Self:  # noqa: ARG002
        """Return the same operator: nothing of it depends on the other extents."""
        return self


@dataclass(frozen=True, slots=True)
class Update(CanonicalOperator):
    """``Y = X``, but ``Y[…, indices[…], …] = U[…]``, or combined with what is there; a negative index is from the end.

    Attributes:
        axis: the one dimension of X in which the indices say where to write, counted from the front.
        index_axes: the dimensions of U that those of the indices stand for.
        reduction: how an element of U and the one at its place become one; the last one written stays if none is given.
    """

    axis: Axis
    index_axes: Axes
    reduction: Reduction | None = None

    def check(self, operands: Sequence[Tensor], results: Sequence[Tensor]) -> None:
        """Check that there is an index for each update, and that the updates fit into the data."""
        self.check_operands(operands, 3)
        x, indices, updates = operands
        self.check_axis("axis", self.axis, x)
        if len(self.index_axes) != indices.rank:
            raise self.fault(f"field 'index_axes' is {self.index_axes} against one axis per dimension of {indices}")
        for axis in self.index_axes:
            self.check_axis("index_axes", axis, updates)
        if indices.shape != tuple(updates.shape[axis] for axis in self.index_axes):
            raise self.fault(f"indices {indices} at axes {list(self.index_axes)} of the updates {updates}")
        pairs = enumerate(zip(updates.shape, x.shape, strict=False))
        if updates.rank != x.rank or any(count > extent for axis, (count, extent) in pairs if axis != self.axis):
            raise self.fault(f"updates {updates} of {x}")
        _check_same(self, x, results[0])

    def loop_nest(self, operands: Sequence[Tensor], result: Tensor) -> LoopNest:  # noqa: ARG002
        """Return the dimensions that all updates are of; what is written along that of the indices depends on data."""
        x, _, updates = operands
        names = [f"i{axis}" for axis in range(x.rank)]
        same = [axis != self.axis and x.shape[axis] == updates.shape[axis] for axis in range(x.rank)]
        index = tuple(name if followed else None for name, followed in zip(names, same, strict=True))
        loops = {name: Loop(x.shape[axis]) for axis, name in enumerate(names) if same[axis]}
        return LoopNest(loops, (index, tuple(index[axis] for axis in self.index_axes), index), index)

    def on_share(self, operands: Sequence[Tensor], result: Tensor, extents: Mapping[str, int]) -> Self:  # noqa: ARG002
        """Return the same operator: nothing of it depends on extents."""
        return self


def _check_same(operator: CanonicalOperator, x: Tensor, result: Tensor) -> None:
    if x.shape != result.shape:
        raise operator.fault(f"the result {result} against {x}")


@dataclass(frozen=True, slots=True)
class Col2im(CanonicalOperator):
    """``Y[b, c, stride*y + dilation*k …] += X[b, c, k…, y…]``: windows are added up where they overlap.

    Attributes:
        strides: distance between windows of the result, per spatial dimension.
        dilations: distance between the elements of a window, per spatial dimension.
    """

    strides: Extents
    dilations: Extents

    def check(self, operands: Sequence[Tensor], results: Sequence[Tensor]) -> None:
        """Check that the windows lie within the result."""
        self.check_operands(operands, 1)
        x, y = operands[0], results[0]
        rank = len(self.strides)
        self.check_length("dilations", rank)
        if y.rank != 2 + rank or x.rank != 2 + 2 * rank or x.shape[:2] != y.shape[:2]:
            raise self.fault(f"windows {x} of {rank} spatial dimensions against the result {y}")
        for axis, (stride, dilation) in enumerate(zip(self.strides, self.dilations, strict=True)):
            span = stride * (x.shape[2 + rank + axis] - 1) + dilation * (x.shape[2 + axis] - 1) + 1
            if span > y.shape[2 + axis]:
                raise self.fault(f"windows span {span} elements against {y.shape[2 + axis]} of axis {2 + axis} of {y}")

    def loop_nest(self, operands: Sequence[Tensor], result: Tensor) -> LoopNest:  # noqa: ARG002
        """Return batch and channels; windows overlap."""
        anywhere = (None,) * (result.rank - 2)
        loops = {"b": Loop(result.shape[0]), "c": Loop(result.shape[1])}
        return LoopNest(loops, (("b", "c", *anywhere, *anywhere),), ("b", "c", *anywhere))

    def on_share(self, operands: Sequence[Tensor], result: Tensor, extents: Mapping[str, int]) -> Self:  # noqa: ARG002
        """Return the same operator: nothing of it depends on batch and channels."""
        return self
