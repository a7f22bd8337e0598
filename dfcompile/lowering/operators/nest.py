"""The canonical loops around one expression: what a map of a numerical program is."""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Self

from dfcompile.canonical_dag import LoopKind
from dfcompile.frontend.affine import span
from dfcompile.lowering.expressions import MOST_OPERANDS, Reduction, expression_tree
from dfcompile.lowering.operators.base import CanonicalOperator
from dfcompile.lowering.operators.field_kinds import AtLeast, Extents
from dfcompile.lowering.operators.loop_nest import KINDS, Loop, LoopNest, affine, kernel_loops, moved_indices
from dfcompile.lowering.tensor import Tensor
from dfcompile.records import replace


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
        """Return the loops that may be split: not those whose number is a value of the expression.

        Reductions that start at a base are not split either: every part would start there.
        """
        numbers = {node.id for node in ast.walk(expression_tree(self.expression)) if isinstance(node, ast.Name)}
        written = {name for index in self.write for name in affine(index) or ()}
        loops = {}
        for name, extent in self.loops().items():
            is_reduced = self.reduction is not None and name not in written
            if name not in numbers and not (is_reduced and self.has_base):
                kind = KINDS[self.reduction] if self.reduction is not None and is_reduced else LoopKind.PARALLEL
                loops[name] = Loop(extent, kind=kind)
        return LoopNest(loops, (*self.reads, *((self.write,) if self.has_base else ())), self.write)

    def on_share(self, operands: Sequence[Tensor], result: Tensor, extents: Mapping[str, int]) -> Self:
        """Return the first iterations: steps over a loop that is split are over what is left of it."""
        found = kernel_loops(self.loop_nest(operands, result), [one.shape for one in operands], result.shape)
        digits = [[(loop, loop.inputs[place]) for loop in found] for place in range(len(self.reads))]
        reads = [moved_indices(indices, digits[place], extents) for place, indices in enumerate(self.reads)]
        write = moved_indices(self.write, [(loop, loop.outputs[0]) for loop in found], extents)
        left = tuple(extents.get(name, whole) for name, whole in self.loops().items())
        return replace(self, extents=left, reads=tuple(one or () for one in reads), write=write or ())

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
