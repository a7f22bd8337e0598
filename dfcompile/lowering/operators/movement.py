"""The canonical operators that move elements: whole arrays, places that are known, indices of which data may tell."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, Self, TypeAlias

from dfcompile.lowering.expressions import Reduction
from dfcompile.lowering.operators.base import AnyExtents, CanonicalOperator
from dfcompile.lowering.operators.field_kinds import Axes, Axis, Extents
from dfcompile.lowering.operators.loop_nest import (
    KINDS,
    Index,
    Loop,
    LoopNest,
    axes_but,
    kernel_loops,
    loops_over,
    moved_indices,
)
from dfcompile.lowering.tensor import Tensor
from dfcompile.records import replace

PadMode: TypeAlias = Literal["constant", "edge", "reflect", "wrap"]


@dataclass(frozen=True, slots=True)
class Concat(AnyExtents):
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
        return axes_but(self.axis, operands, result)


@dataclass(frozen=True, slots=True)
class Copy(CanonicalOperator):
    """``Y[write(i)] = X[read(i)]`` in the order of the loops; element by element in row order if none are given.

    Attributes:
        loops: extents of the loops ``i0``, ``i1`` …, outer to inner; the result's shape if none are given.
        read: where to read, one affine expression of the loops per dimension of X; ``i0``, ``i1`` … if none are given.
        write: where to write, one affine expression of the loops per dimension of Y; as for ``read``.
    """

    loops: Extents | None = None
    read: tuple[str, ...] | None = None
    write: tuple[str, ...] | None = None

    def check(self, operands: Sequence[Tensor], results: Sequence[Tensor]) -> None:
        """Check that there is an index per dimension, and that it names no loop that is not there."""
        self.check_operands(operands, 1)
        loops = set(self.extents(results[0]))
        for name, indices, tensor in (("read", self.read, operands[0]), ("write", self.write, results[0])):
            if len(loops if indices is None else indices) != tensor.rank:
                raise self.fault(f"field {name!r} is {indices!r} against one index per dimension of {tensor}")
            for index in indices or ():
                if not _names(index) <= loops:
                    found = min(_names(index) - loops)
                    wanted = f"{len(loops)} loops i0 …"
                    raise self.fault(f"field {name!r} has index {index!r} with {found!r} against {wanted}")

    def loop_nest(self, operands: Sequence[Tensor], result: Tensor) -> LoopNest:
        """Return the loops that read and write are indexed by."""
        extents = self.extents(result)
        given = ((self.read, operands[0]), (self.write, result))
        read, write = (tuple(loops_over(one.shape)) if indices is None else indices for indices, one in given)
        return LoopNest({name: Loop(extent) for name, extent in extents.items()}, (read,), write)

    def on_share(self, operands: Sequence[Tensor], result: Tensor, extents: Mapping[str, int]) -> Self | None:
        """Return the copy of the first iterations; places behind what is left out move up."""
        nest = self.loop_nest(operands, result)
        known = kernel_loops(nest, [operands[0].shape], result.shape)
        read = moved_indices(nest.reads[0], [(loop, loop.inputs[0]) for loop in known], extents)
        write = moved_indices(nest.write, [(loop, loop.outputs[0]) for loop in known], extents)
        if read is None or write is None:
            return None
        loops = None if self.loops is None else tuple(extents[f"i{axis}"] for axis in range(len(self.loops)))
        is_plain = self.read is None and read == nest.reads[0], self.write is None and write == nest.write
        return type(self)(loops, None if is_plain[0] else read, None if is_plain[1] else write)

    def extents(self, result: Tensor) -> dict[str, int]:
        """Return the loops with their extents, outer to inner."""
        return {f"i{axis}": extent for axis, extent in enumerate(result.shape if self.loops is None else self.loops)}


@lru_cache(maxsize=4096)
def _names(index: str) -> frozenset[str]:
    return frozenset(re.findall(r"[A-Za-z_]\w*", index))


@dataclass(frozen=True, slots=True)
class Pad(AnyExtents):
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
        x, y = *self.check_operands(operands, 1), results[0]
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
