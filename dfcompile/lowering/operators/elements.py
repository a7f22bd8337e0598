"""Canonical operators that compute an expression of elements: one by one, reduced over axes, or in any loop nest."""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from math import prod
from typing import Annotated, Self

from dfcompile.canonical_dag import LoopKind
from dfcompile.frontend.affine import span
from dfcompile.lowering.expressions import MOST_OPERANDS, Reduction, expression_tree
from dfcompile.lowering.operators.base import AnyExtents, CanonicalOperator
from dfcompile.lowering.operators.field_kinds import AtLeast, Axes, Extents
from dfcompile.lowering.operators.loop_nest import (
    KINDS,
    Loop,
    LoopNest,
    affine,
    kernel_loops,
    loops_over,
    moved_indices,
)
from dfcompile.lowering.tensor import Tensor
from dfcompile.records import replace


@dataclass(frozen=True, slots=True)
class Elementwise(CanonicalOperator):
    """``Y[i, …] = expression(a[i, …], b[i, …], …)``, every element of Y written once, in row order.

    Attributes:
        expression: Python source of the operands' elements ``a``, ``b``, ``c`` …, at most 26.
        axes: per operand the result dimension of each of its dimensions; if none are given, operands are broadcast as
            in numpy.
        starts: per operand and dimension the first index that is read: a dimension may then be longer than the
            result's; if none are given, operands are read whole.
    """

    expression: str
    axes: tuple[tuple[int, ...], ...] | None = None
    starts: tuple[Axes, ...] | None = None

    def check(self, operands: Sequence[Tensor], results: Sequence[Tensor]) -> None:
        """Check that the expression names the operands, and that these can be broadcast to the result."""
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
            pairs = [(own, result.shape[axis]) for own, axis in zip(operand.shape, axes, strict=False)]
            is_broadcast = all(own in (1, extent) for own, extent in pairs)
            if len(axes) != operand.rank or (starts is None and not is_broadcast):
                raise self.fault(f"operand {position}, {operand}, at axes {list(axes)} of the result {result}")
            parts = zip(pairs, starts or (), strict=False)
            fits = all(start + extent <= own or (own, start) == (1, 0) for (own, extent), start in parts)
            if starts is not None and (len(starts) != operand.rank or not fits):
                raise self.fault(f"operand {position}, {operand}, read from {list(starts)} on for the result {result}")

    def operand_axes(self, operands: Sequence[Tensor], result: Tensor) -> tuple[tuple[int, ...], ...]:
        """Return per operand the result dimension of each of its dimensions."""
        if self.axes is not None:
            return self.axes
        return tuple(tuple(range(result.rank - operand.rank, result.rank)) for operand in operands)

    def indices(self, operands: Sequence[Tensor], result: Tensor) -> tuple[tuple[str, ...], ...]:
        """Return per operand the index along each of its dimensions, of loops ``i0``, ``i1`` … over the result."""
        starts = self.starts or tuple((0,) * operand.rank for operand in operands)
        placed = zip(operands, self.operand_axes(operands, result), starts, strict=True)
        dimensions = (zip(operand.shape, axes, begins, strict=True) for operand, axes, begins in placed)
        return tuple(tuple(_index(*dimension) for dimension in of_operand) for of_operand in dimensions)

    def loop_nest(self, operands: Sequence[Tensor], result: Tensor) -> LoopNest:
        """Return a loop per dimension of the result; the index of a broadcast dimension is 0."""
        loops = loops_over(result.shape)
        return LoopNest(loops, self.indices(operands, result), tuple(loops))

    def on_share(self, operands: Sequence[Tensor], result: Tensor, extents: Mapping[str, int]) -> Self | None:  # noqa: ARG002
        """Return the same operator, as no field depends on extents; None if it reads parts of operands."""
        return self if self.starts is None else None


def _index(extent: int, axis: int, start: int) -> str:
    if extent == 1:
        return "0"
    return f"{start} + i{axis}" if start else f"i{axis}"


@dataclass(frozen=True, slots=True)
class Reduce(AnyExtents):
    """``Y[kept axes] = reduction, over the other axes, of expression(a[i, …], b[i, …], …)``.

    Attributes:
        reduction: how values become one.
        axes: that are reduced, counted from the front, of the shape that operands are broadcast to as in numpy.
        keepdims: the result has extent 1 in the reduced axes; else it does not have these axes.
        expression: Python source of the operands' elements ``a``, ``b`` …, computed before the reduction.
    """

    reduction: Reduction
    axes: Axes
    keepdims: bool = True
    expression: str = "a"

    def check(self, operands: Sequence[Tensor], results: Sequence[Tensor]) -> None:
        """Check that the axes exist, and that the shape of the result has those that are kept."""
        self.check_operands(operands, 1, MOST_OPERANDS)
        self.check_expression(self.expression, len(operands))
        shape, result = self.full_shape(operands), results[0]
        if len(set(self.axes)) != len(self.axes) or any(axis >= len(shape) for axis in self.axes):
            raise self.fault(f"field 'axes' is {self.axes} against different axes of rank {len(shape)}")
        full_rank = kept_shape(shape, self.axes)
        lower_rank = tuple(extent for axis, extent in enumerate(shape) if axis not in self.axes)
        wanted = full_rank if self.keepdims else lower_rank
        # A single element may have any rank.
        if result.shape != wanted and (self.keepdims or not result.elements == prod(lower_rank) == 1):
            raise self.fault(f"field 'keepdims' is {self.keepdims} with a result {result} against shape {list(wanted)}")

    def loop_nest(self, operands: Sequence[Tensor], result: Tensor) -> LoopNest:
        """Return a loop per axis: parallel if it is kept, a reduction if not."""
        shape = self.full_shape(operands)
        kinds = [KINDS[self.reduction] if axis in self.axes else LoopKind.PARALLEL for axis in range(len(shape))]
        loops = {f"i{axis}": Loop(extent, kind=kinds[axis]) for axis, extent in enumerate(shape)}
        dimensions = [enumerate(tensor.shape, len(shape) - tensor.rank) for tensor in operands]
        reads = tuple(tuple(f"i{axis}" if extent > 1 else "0" for axis, extent in own) for own in dimensions)
        if result.rank == len(shape):
            write = tuple("0" if axis in self.axes else f"i{axis}" for axis in range(result.rank))
            return LoopNest(loops, reads, write)
        kept = tuple(f"i{axis}" for axis in range(len(shape)) if axis not in self.axes)
        return LoopNest(loops, reads, kept if result.rank == len(kept) else ("0",) * result.rank)

    def full_shape(self, operands: Sequence[Tensor]) -> tuple[int, ...]:
        """Return the shape that the operands are broadcast to.

        Raises:
            OperatorFieldError: their shapes do not broadcast.
        """
        shape = broadcast_shape([tensor.shape for tensor in operands])
        if shape is None:
            raise self.fault(f"operands {', '.join(map(str, operands))} against shapes that broadcast")
        return shape


def broadcast_shape(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...] | None:
    """Return the shape that shapes are broadcast to as in numpy, or None if they do not fit.

    >>> broadcast_shape([(4, 1), (3,)])
    (4, 3)
    """
    backwards = []
    for extents in zip_longest(*(reversed(shape) for shape in shapes), fillvalue=1):
        wide = {extent for extent in extents if extent != 1}
        if len(wide) > 1:
            return None
        backwards.append(wide.pop() if wide else 1)
    return tuple(reversed(backwards))


def kept_shape(shape: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
    """Return the shape with extent 1 in the reduced axes.

    >>> kept_shape((2, 3, 4), [1])
    (2, 1, 4)
    """
    return tuple(1 if axis in axes else extent for axis, extent in enumerate(shape))


@dataclass(frozen=True, slots=True)
class Nest(CanonicalOperator):
    """``Y[write(i)] = expression(a[read_0(i)], b[read_1(i)], …)`` for all iterations i, in the order of the loops.

    Attributes:
        expression: Python source of the operands' elements ``a``, ``b`` … and of the loops ``i0``, ``i1`` …
        extents: of the loops, outer to inner.
        reads: per operand one affine expression of the loops per dimension.
        write: one affine expression of the loops per dimension of Y.
        spatial: how many of the outermost loops become tasks, one per iteration.
        reduction: how values written to one element become one; without it each element is written at most once.
        has_base: whether the last operand, of Y's shape, has the initial values of Y: reductions start from them.
    """

    expression: str
    extents: Extents
    reads: tuple[tuple[str, ...], ...]
    write: tuple[str, ...]
    spatial: Annotated[int, AtLeast(0)] = 0
    reduction: Reduction | None = None
    has_base: bool = False

    def check(self, operands: Sequence[Tensor], results: Sequence[Tensor]) -> None:
        """Check that each index stays within its array, and that the base has the result's shape."""
        read = operands[:-1] if self.has_base else operands
        self.check_operands(read, 1, MOST_OPERANDS)
        self.check_expression(self.expression, len(read))
        self.check_length("reads", len(read))
        if self.spatial > len(self.extents):
            raise self.fault(f"field 'spatial' is {self.spatial} against {len(self.extents)} loops")
        if self.has_base and operands[-1].shape != results[0].shape:
            raise self.fault(f"base {operands[-1]} against the result {results[0]}")
        for indices, tensor in zip((*self.reads, self.write), (*read, results[0]), strict=True):
            self._check_indices(indices, tensor)

    def loops(self) -> dict[str, int]:
        """Return the loops with their extents, outer to inner."""
        return {f"i{number}": extent for number, extent in enumerate(self.extents)}

    def loop_nest(self, operands: Sequence[Tensor], result: Tensor) -> LoopNest:  # noqa: ARG002
        """Return the loops that may be split: not those whose number the expression uses as a value.

        Reductions that start from a base are not split either: every part would start from it.
        """
        used = {node.id for node in ast.walk(expression_tree(self.expression)) if isinstance(node, ast.Name)}
        written = {name for index in self.write for name in affine(index) or ()}
        loops = {}
        for name, extent in self.loops().items():
            is_reduced = self.reduction is not None and name not in written
            if name not in used and not (is_reduced and self.has_base):
                kind = KINDS[self.reduction] if self.reduction is not None and is_reduced else LoopKind.PARALLEL
                loops[name] = Loop(extent, kind=kind)
        return LoopNest(loops, (*self.reads, *((self.write,) if self.has_base else ())), self.write)

    def on_share(self, operands: Sequence[Tensor], result: Tensor, extents: Mapping[str, int]) -> Self:
        """Return the first iterations alone, with indices into the parts of the arrays that these need."""
        split = kernel_loops(self.loop_nest(operands, result), [operand.shape for operand in operands], result.shape)
        digits = [[(loop, loop.inputs[number]) for loop in split] for number in range(len(self.reads))]
        reads = [moved_indices(indices, own, extents) for indices, own in zip(self.reads, digits, strict=True)]
        write = moved_indices(self.write, [(loop, loop.outputs[0]) for loop in split], extents)
        remaining = tuple(extents.get(name, whole) for name, whole in self.loops().items())
        return replace(self, extents=remaining, reads=tuple(indices or () for indices in reads), write=write or ())

    def _check_indices(self, indices: Sequence[str], tensor: Tensor) -> None:
        loops = self.loops()
        if len(indices) != tensor.rank:
            raise self.fault(f"indices {list(indices)} against one per dimension of {tensor}")
        for index, extent in zip(indices, tensor.shape, strict=True):
            terms = affine(index)
            if terms is None or not set(terms) <= {*loops, ""}:
                raise self.fault(f"index {index!r} against an affine expression of {', '.join(loops)}")
            least, most = span(terms, loops)
            if least < 0 or most >= extent:
                raise self.fault(f"index {index!r} from {least} to {most} against 0 to {extent - 1} of {tensor}")
