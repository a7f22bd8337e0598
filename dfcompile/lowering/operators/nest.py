"""The canonical loops around one expression: what a map of a numerical program is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from dfcompile.lowering.expressions import MOST_OPERANDS
from dfcompile.lowering.operators.base import CanonicalOperator
from dfcompile.lowering.operators.expression_field import check_expression
from dfcompile.lowering.operators.field_kinds import AtLeast, Extents
from dfcompile.lowering.operators.loop_nest import affine
from dfcompile.lowering.reduction import Reduction
from dfcompile.lowering.tensor import Tensor


@dataclass(frozen=True, slots=True)
class Nest(CanonicalOperator):
    """``Y[write(i)] = expression(a[read_0(i)], b[read_1(i)], …)`` in the order of the loops, reduced where asked for.

    Attributes:
        expression: Python source of the operands' elements ``a``, ``b`` … and of the loops ``i0``, ``i1`` …
        extents: of the loops, outer to inner.
        reads: per operand one affine expression of the loops per dimension.
        write: one affine expression of the loops per dimension of Y.
        spatial: so many of the outermost loops are tasks, one per iteration.
        reduction: how values written to one element become one; each element is written once if there is none.
        has_base: a last operand of Y's shape has the elements that nothing else is written to; reductions start there.
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
        check_expression(self, self.expression, len(read))
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

    def _check_indices(self, indices: Sequence[str], tensor: Tensor) -> None:
        loops = self.loops()
        if len(indices) != tensor.rank:
            raise self.fault(f"indices {list(indices)} against one per dimension of {tensor}")
        for index, extent in zip(indices, tensor.shape, strict=True):
            terms = affine(index)
            if terms is None or not set(terms) <= {*loops, ""}:
                raise self.fault(f"index {index!r} against an affine expression of {', '.join(loops)}")
            ends = [step * (loops[name] - 1) for name, step in terms.items() if name]
            least = terms.get("", 0) + sum(end for end in ends if end < 0)
            most = terms.get("", 0) + sum(end for end in ends if end > 0)
            if least < 0 or most >= extent:
                raise self.fault(f"index {index!r} from {least} to {most} against 0 to {extent - 1} of {tensor}")
