"""The canonical operators that read at indices: known when the model is lowered, or only when it runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self, TypeAlias

from dfcompile.lowering.operators.base import CanonicalOperator
from dfcompile.lowering.operators.field_kinds import Axis
from dfcompile.lowering.operators.loop_nest import Loop, LoopNest
from dfcompile.lowering.tensor import Tensor
from dfcompile.records import replace

Run: TypeAlias = tuple[int, int, int]  # first, step, count


@dataclass(frozen=True, slots=True)
class Gather(CanonicalOperator):
    """``Y[…, offset + j, …] = X[…, first + step * j, …]``: constant indices as arithmetic progressions.

    Attributes:
        axis: of X that the indices are of, counted from the front.
        runs: the progressions (first, step, count), one behind the other in Y.
    """

    axis: Axis
    runs: tuple[Run, ...]

    def check(self, operands: Sequence[Tensor], results: Sequence[Tensor]) -> None:
        """Check that the runs lie within the data and fill the result."""
        self.check_operands(operands, 1)
        x, y = operands[0], results[0]
        self.check_axis("axis", self.axis, x)
        extent = x.shape[self.axis]
        for first, step, count in self.runs:
            if count < 1 or not (0 <= first < extent and 0 <= first + step * (count - 1) < extent):
                raise self.fault(f"field 'runs' has {(first, step, count)} against indices below {extent}")
        total = sum(count for _, _, count in self.runs)
        if y.shape != (*x.shape[: self.axis], total, *x.shape[self.axis + 1 :]):
            raise self.fault(f"field 'runs' has {total} indices along axis {self.axis} of {x} against {y}")

    def loop_nest(self, operands: Sequence[Tensor], result: Tensor) -> LoopNest:
        """Return the dimensions of the result; all of X is needed along the axis of the indices."""
        loops = {f"i{axis}": Loop(extent) for axis, extent in enumerate(result.shape)}
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
class Lookup(CanonicalOperator):
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
        write = tuple(f"i{axis}" for axis in range(result.rank))
        before, inner = write[: self.axis], write[self.axis : self.axis + indices.rank]
        read = (*before, None, *write[self.axis + indices.rank :])
        known = result.rank == x.rank - 1 + indices.rank
        loops = {name: Loop(extent) for name, extent in zip(write, result.shape, strict=True)} if known else {}
        return LoopNest(loops, (read, inner) if known else ((None,) * x.rank, (None,) * indices.rank), write)

    def on_share(self, operands: Sequence[Tensor], result: Tensor, extents: Mapping[str, int]) -> Self:  # noqa: ARG002
        """Return the same operator: nothing of it depends on extents."""
        return self


@dataclass(frozen=True, slots=True)
class LookupElements(CanonicalOperator):
    """``Y[i, j, …] = X[i, indices[i, j, …], …]``: single elements of a table; a negative index is from the end.

    Attributes:
        axis: the one dimension of X in which the indices say where to read, counted from the front.
    """

    axis: Axis

    def check(self, operands: Sequence[Tensor], results: Sequence[Tensor]) -> None:
        """Check the axis, and that there is an index per element of the result."""
        self.check_operands(operands, 2)
        x, indices = operands
        self.check_axis("axis", self.axis, x)
        if indices.shape != results[0].shape or indices.rank != x.rank:
            raise self.fault(f"indices {indices} of {x} against the result {results[0]}")

    def loop_nest(self, operands: Sequence[Tensor], result: Tensor) -> LoopNest:
        """Return the dimensions of the result; what is read along the axis of the indices depends on data."""
        x = operands[0]
        write = tuple(f"i{axis}" for axis in range(result.rank))
        same = [axis != self.axis and x.shape[axis] == result.shape[axis] for axis in range(x.rank)]
        read = tuple(name if followed else None for name, followed in zip(write, same, strict=True))
        return LoopNest(
            {name: Loop(extent) for name, extent in zip(write, result.shape, strict=True)}, (read, write), write
        )

    def on_share(self, operands: Sequence[Tensor], result: Tensor, extents: Mapping[str, int]) -> Self:  # noqa: ARG002
        """Return the same operator: nothing of it depends on extents."""
        return self
