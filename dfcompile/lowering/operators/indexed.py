"""The canonical operators that read or write at indices: known when the model is lowered, or only when it runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self, TypeAlias

from dfcompile.lowering.expressions import Reduction
from dfcompile.lowering.operators.base import AnyExtents, CanonicalOperator
from dfcompile.lowering.operators.field_kinds import Axes, Axis
from dfcompile.lowering.operators.loop_nest import KINDS, Index, Loop, LoopNest, axes_but, loops_over
from dfcompile.lowering.tensor import Tensor
from dfcompile.records import replace

Run: TypeAlias = tuple[int, int, int]  # first, step, count
_DIFFERENT = "different indices"


@dataclass(frozen=True, slots=True)
class _Runs(CanonicalOperator):
    """An operator whose indices along an axis are arithmetic progressions."""

    axis: Axis
    runs: tuple[Run, ...]

    def check_runs(self, x: Tensor, taken: Tensor, indices: str) -> None:
        """Check that the runs lie within the data and are as many indices as the array has that they go through.

        Raises:
            OperatorFieldError: they do not.
        """
        self.check_axis("axis", self.axis, x)
        extent = x.shape[self.axis]
        for first, step, count in self.runs:
            inside = 0 <= first < extent and 0 <= first + step * (count - 1) < extent
            if count < 1 or not inside or (step == 0 and count > 1 and indices == _DIFFERENT):
                raise self.fault(f"field 'runs' has {(first, step, count)} against {indices} below {extent}")
        total = sum(count for _, _, count in self.runs)
        if taken.shape != (*x.shape[: self.axis], total, *x.shape[self.axis + 1 :]):
            raise self.fault(f"field 'runs' has {total} indices along axis {self.axis} of {x} against {taken}")


@dataclass(frozen=True, slots=True)
class Gather(_Runs):
    """``Y[…, offset + j, …] = X[…, first + step * j, …]``: constant indices as arithmetic progressions.

    Attributes:
        axis: of X that the indices are of, counted from the front.
        runs: the progressions (first, step, count), one behind the other in Y.
    """

    def check(self, operands: Sequence[Tensor], results: Sequence[Tensor]) -> None:
        """Check that the runs lie within the data and fill the result."""
        self.check_operands(operands, 1)
        self.check_runs(operands[0], results[0], "indices")

    def loop_nest(self, operands: Sequence[Tensor], result: Tensor) -> LoopNest:
        """Return the dimensions of the result; all of X is needed along the axis of the indices."""
        loops = loops_over(result.shape)
        read = tuple(None if axis == self.axis else f"i{axis}" for axis in range(operands[0].rank))
        return LoopNest(loops, (read,), tuple(loops))

    def on_share(self, operands: Sequence[Tensor], result: Tensor, extents: Mapping[str, int]) -> Self:  # noqa: ARG002
        """Return the first of the indices."""
        left, runs = extents[f"i{self.axis}"], list[Run]()
        for first, step, count in self.runs:
            if left > 0:
                runs.append((first, step, min(count, left)))
            left -= count
        return replace(self, runs=tuple(runs))


@dataclass(frozen=True, slots=True)
class Lookup(AnyExtents):
    """``Y[…, j…, …] = X[…, indices[j…], …]``: rows of a table, as of an embedding; a negative index is from the end.

    Attributes:
        axis: of X that the indices are of, counted from the front.
    """

    axis: Axis

    def check(self, operands: Sequence[Tensor], results: Sequence[Tensor]) -> None:  # noqa: ARG002
        """Check the axis."""
        self.check_operands(operands, 2)
        self.check_axis("axis", self.axis, operands[0])

    def loop_nest(self, operands: Sequence[Tensor], result: Tensor) -> LoopNest:
        """Return the dimensions of the result; what is read along the axis of the indices depends on data."""
        x, indices = operands
        loops, behind = loops_over(result.shape), self.axis + indices.rank
        write = tuple(loops)
        if result.rank != x.rank - 1 + indices.rank:
            return LoopNest({}, ((None,) * x.rank, (None,) * indices.rank), write)
        return LoopNest(loops, ((*write[: self.axis], None, *write[behind:]), write[self.axis : behind]), write)


@dataclass(frozen=True, slots=True)
class LookupElements(AnyExtents):
    """``Y[i, j, …] = X[i, indices[i, j, …], …]``: single elements of a table; a negative index is from the end.

    Attributes:
        axis: the one dimension of X in which the indices say where to read, counted from the front.
    """

    axis: Axis

    def check(self, operands: Sequence[Tensor], results: Sequence[Tensor]) -> None:
        """Check the axis, and that there is an index per element of the result."""
        x, indices = self.check_operands(operands, 2)
        self.check_axis("axis", self.axis, x)
        if indices.shape != results[0].shape or indices.rank != x.rank:
            raise self.fault(f"indices {indices} of {x} against the result {results[0]}")

    def loop_nest(self, operands: Sequence[Tensor], result: Tensor) -> LoopNest:
        """Return the dimensions of the result; what is read along the axis of the indices depends on data."""
        write = tuple(loops_over(result.shape))
        return LoopNest(loops_over(result.shape), (_followed(operands[0], result, self.axis), write), write)


@dataclass(frozen=True, slots=True)
class Scatter(_Runs, AnyExtents):
    """``Y = X``, but ``Y[…, first + step * j, …] = U[…, offset + j, …]``: constant indices as arithmetic progressions.

    Attributes:
        axis: of X that the indices are of, counted from the front.
        runs: the progressions (first, step, count), one behind the other in U; a later one overwrites an earlier one.
    """

    def check(self, operands: Sequence[Tensor], results: Sequence[Tensor]) -> None:
        """Check that the runs lie within the data and take all of the updates."""
        x, updates = self.check_operands(operands, 2)
        self.check_runs(x, updates, _DIFFERENT)
        _check_same(self, x, results[0])

    def loop_nest(self, operands: Sequence[Tensor], result: Tensor) -> LoopNest:
        """Return the dimensions but that of the indices."""
        return axes_but(self.axis, operands, result)


@dataclass(frozen=True, slots=True)
class Update(AnyExtents):
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
        x, indices, updates = self.check_operands(operands, 3)
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
        index = _followed(x, updates, self.axis)
        loops = {name: loop for name, loop in loops_over(x.shape).items() if name in index}
        return LoopNest(loops, (index, tuple(index[axis] for axis in self.index_axes), index), index)


def _followed(x: Tensor, other: Tensor, but: int) -> tuple[Index, ...]:
    """Return the loops over the dimensions that two arrays have in common but for one; None for the others."""
    extents = enumerate(zip(x.shape, other.shape, strict=True))
    return tuple(f"i{axis}" if axis != but and one == two else None for axis, (one, two) in extents)


def _check_same(operator: CanonicalOperator, x: Tensor, result: Tensor) -> None:
    if x.shape != result.shape:
        raise operator.fault(f"the result {result} against {x}")


@dataclass(frozen=True, slots=True)
class Sample(AnyExtents):
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
