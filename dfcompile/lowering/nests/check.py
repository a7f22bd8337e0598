"""Checks what an expansion of a third party builds, nest by nest: shapes, indices, code, results."""

from collections.abc import Collection
from math import prod

from dfcompile.errors import VerificationError
from dfcompile.lowering.expression_tree import expression_tree
from dfcompile.lowering.map_fragment import ArrayMaker, MapFragment
from dfcompile.lowering.nests.affine import affine_text
from dfcompile.lowering.nests.code import tasklet_code
from dfcompile.lowering.nests.nest import Nest, NestAccess
from dfcompile.lowering.node import CanonicalNode
from dfcompile.lowering.operators import CanonicalOperator
from dfcompile.lowering.tensor import Tensor


class CheckedFragment(MapFragment):
    """A fragment that looks at every index of every scope; ours are proved by their tests instead."""

    def __init__(self, op: CanonicalNode[CanonicalOperator], arrays: ArrayMaker) -> None:
        super().__init__(op, arrays)
        self._written: dict[str, int] = {}  # elements at most
        self._known = {tensor.name for tensor in op.operands()}

    def _add(self, nest: Nest) -> None:
        """Check a nest and add it.

        Raises:
            VerificationError: an index leaves its array, a loop is empty, or an array is read that nothing has written.
            UserError: its code is no expression of Python.
        """
        super()._add(nest)
        target = nest.write.tensor
        check_nest(nest, {*self._known, *self._written})
        self._written[target.name] = self._written.get(target.name, 0) + _most_written(nest, target)

    def check_results(self) -> None:
        """Check that the results are written.

        Raises:
            VerificationError: one is not, or not all of its elements can be.
        """
        for tensor in self._op.results():
            elements = self._written.get(tensor.name, 0)
            if elements < tensor.elements:
                raise VerificationError(
                    f"operator {self._op.name!r}: {elements} elements written of result {tensor.name!r} "
                    f"against {tensor.elements}"
                )


def check_nest(nest: Nest, known: Collection[str]) -> None:
    """Check what a nest accesses, and that its code is code.

    Args:
        nest: to check.
        known: names of the arrays that have elements before it runs.

    Raises:
        VerificationError: an index leaves its array, or an array is read that nothing has written.
        UserError: its code is no expression of Python.
    """
    for access in (*nest.reads.values(), *([] if nest.scatter else [nest.write])):
        _check_indices(nest, access)
    for tensor in (*(read.tensor for read in nest.reads.values()), *nest.tables.values()):
        if tensor.name not in known:
            raise VerificationError(f"scope {nest.name}: reads {tensor.name!r}, which nothing has written")
        if tensor.name == nest.write.tensor.name:
            raise VerificationError(f"scope {nest.name}: reads {tensor.name!r}, which it writes")
    if not nest.library:
        expression_tree(nest.code)
        tasklet_code(nest)


def _check_indices(nest: Nest, access: NestAccess) -> None:
    tensor, shape = access.tensor, list(access.tensor.shape)
    given = len(access.indices)
    if given != len(shape) and not (nest.library and given < len(shape)) and (given or tensor.elements > 1):
        raise VerificationError(f"scope {nest.name}: {given} indices of {tensor.name!r} against its shape {shape}")
    for index, size in zip(access.indices, shape, strict=False):
        ends = [factor * (nest.extents[name] - 1) for name, factor in index.items() if name]
        least = index.get("", 0) + sum(end for end in ends if end < 0)
        largest = index.get("", 0) + sum(end for end in ends if end > 0)
        if least < 0 or largest >= size:
            where = f"scope {nest.name}: index {affine_text(index)!r} of {tensor.name!r}"
            raise VerificationError(f"{where} from {least} to {largest} against 0 to {size - 1}")


def _most_written(nest: Nest, target: Tensor) -> int:
    """Return how many elements a scope writes at most: iterations of the loops that its indices depend on."""
    if nest.scatter is not None:
        return 0
    if nest.accumulate is not None or nest.library:
        return target.elements
    used = {name for index in nest.write.indices for name, factor in index.items() if name}
    return min(prod(nest.extents[name] for name in used), target.elements)
