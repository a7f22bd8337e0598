"""Checks of loop nests: what expansions of third parties build, and what passes leave."""

from collections import Counter
from collections.abc import Collection, Sequence
from math import prod

from dfcompile.errors import VerificationError
from dfcompile.frontend.affine import affine_text, span
from dfcompile.lowering.expressions import expression_tree
from dfcompile.lowering.nests.program import Nest, NestAccess, NestProgram, View, tasklet_code
from dfcompile.lowering.node import CanonicalNode
from dfcompile.lowering.operators import CanonicalOperator
from dfcompile.lowering.tensor import Tensor


def check_built(op: CanonicalNode[CanonicalOperator], nests: Sequence[Nest]) -> None:
    """Check every nest that an expansion built, and that results are written; those of ours are proved by their tests.

    Raises:
        VerificationError: an index leaves its array, an array is read that nothing has written, or a result is not
            written, or not all of its elements can be.
        UserError: the code of a nest is no expression of Python.
    """
    written = Counter[str]()  # elements at most
    operands = {tensor.name for tensor in op.operands()}
    for nest in nests:
        check_nest(nest, {*operands, *written})
        written[nest.write.tensor.name] += _most_written(nest, nest.write.tensor)
    for tensor in op.results():
        if written[tensor.name] < tensor.elements:
            found = f"{written[tensor.name]} elements written of result {tensor.name!r}"
            raise VerificationError(f"operator {op.name!r}: {found} against {tensor.elements}")


def verify_nests(program: NestProgram) -> None:
    """Check that every nest accesses arrays within their shapes, after what writes them, and that outputs are written.

    Raises:
        VerificationError: naming the scope, the view or the output.
        UserError: the code of a nest is no expression of Python.
    """
    library = program.library
    known = {*library.parameters, *(port.array for port in library.inputs)}
    for step in program.steps:
        if isinstance(step, View):
            if step.source not in known:
                raise VerificationError(f"view {step.tensor.name!r}: of {step.source!r}, which nothing has written")
            known.add(step.tensor.name)
            continue
        for nest in step.nests:
            check_nest(nest, known)
            known.add(nest.write.tensor.name)
    for port in library.outputs:
        if port.array not in known:
            raise VerificationError(f"output {port.name!r}: nothing writes {port.array!r}")


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
        least, largest = span(index, nest.extents)
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
