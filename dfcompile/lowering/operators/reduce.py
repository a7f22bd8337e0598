"""The canonical reduction over axes."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from math import prod

from dfcompile.canonical_dag import LoopKind
from dfcompile.lowering.expressions import MOST_OPERANDS, Reduction
from dfcompile.lowering.operators.base import AnyExtents
from dfcompile.lowering.operators.field_kinds import Axes
from dfcompile.lowering.operators.loop_nest import KINDS, Loop, LoopNest
from dfcompile.lowering.tensor import Tensor


@dataclass(frozen=True, slots=True)
class Reduce(AnyExtents):
    """``Y[kept] = reduce over the others of expression(a[i, …], b[i, …], …)``; operands are broadcast as in numpy.

    Attributes:
        reduction: how values become one.
        axes: of the operands' common shape that are reduced, counted from the front.
        keepdims: the result has extent 1 in the reduced axes; else it has no such dimensions.
        expression: Python source of the operands' elements ``a``, ``b`` …, computed before the reduction.
    """

    reduction: Reduction
    axes: Axes
    keepdims: bool = True
    expression: str = "a"

    def check(self, operands: Sequence[Tensor], results: Sequence[Tensor]) -> None:
        """Check that the axes are those of the operands and that the result has the other ones."""
        self.check_operands(operands, 1, MOST_OPERANDS)
        self.check_expression(self.expression, len(operands))
        shape, result = self.full_shape(operands), results[0]
        if len(set(self.axes)) != len(self.axes) or any(axis >= len(shape) for axis in self.axes):
            raise self.fault(f"field 'axes' is {self.axes} against different axes of rank {len(shape)}")
        kept = kept_shape(shape, self.axes)
        left = tuple(extent for axis, extent in enumerate(shape) if axis not in self.axes)
        fits = result.shape == kept if self.keepdims else result.shape == left or result.elements == prod(left) == 1
        if not fits:
            wanted = kept if self.keepdims else left
            raise self.fault(f"field 'keepdims' is {self.keepdims} with a result {result} against shape {list(wanted)}")

    def loop_nest(self, operands: Sequence[Tensor], result: Tensor) -> LoopNest:
        """Return the dimensions that are kept, and those that are reduced."""
        shape = self.full_shape(operands)
        kinds = [KINDS[self.reduction] if axis in self.axes else LoopKind.PARALLEL for axis in range(len(shape))]
        loops = {f"i{axis}": Loop(extent, kind=kinds[axis]) for axis, extent in enumerate(shape)}
        places = [enumerate(tensor.shape, len(shape) - tensor.rank) for tensor in operands]
        reads = tuple(tuple(f"i{axis}" if extent > 1 else "0" for axis, extent in each) for each in places)
        if result.rank == len(shape):
            write = tuple("0" if axis in self.axes else f"i{axis}" for axis in range(result.rank))
            return LoopNest(loops, reads, write)
        kept = tuple(f"i{axis}" for axis in range(len(shape)) if axis not in self.axes)
        return LoopNest(loops, reads, kept if result.rank == len(kept) else ("0",) * result.rank)

    def full_shape(self, operands: Sequence[Tensor]) -> tuple[int, ...]:
        """Return the shape that the operands are broadcast to.

        Raises:
            OperatorFieldError: they have none.
        """
        shape = broadcast_shape([tensor.shape for tensor in operands])
        if shape is None:
            raise self.fault(f"operands {', '.join(map(str, operands))} against shapes that broadcast")
        return shape


def broadcast_shape(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...] | None:
    """Return the shape that some are broadcast to, however many elements it has, or None if they do not fit.

    >>> broadcast_shape([(4, 1), (3,)])
    (4, 3)
    """
    found = []
    for extents in zip_longest(*(reversed(shape) for shape in shapes), fillvalue=1):
        wide = {extent for extent in extents if extent != 1}
        if len(wide) > 1:
            return None
        found.append(wide.pop() if wide else 1)
    return tuple(reversed(found))


def kept_shape(shape: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
    """Return the shape with extent 1 in the reduced axes.

    >>> kept_shape((2, 3, 4), [1])
    (2, 1, 4)
    """
    return tuple(1 if axis in axes else extent for axis, extent in enumerate(shape))
