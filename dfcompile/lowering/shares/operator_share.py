"""A canonical operator on fewer iterations: the same operator on parts of its operands and of its result."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from dfcompile.canonical_dag import Digit, KernelLoop
from dfcompile.errors import OperatorFieldError
from dfcompile.lowering.node import CanonicalNode
from dfcompile.lowering.operators import CanonicalOperator
from dfcompile.lowering.operators.loop_nest import Index, kernel_loops
from dfcompile.records import replace

Values = npt.NDArray[np.generic]


class Cut(Struct, frozen=True):
    """The first iterations of a loop, where it moves in an array.

    Attributes:
        loop: name.
        digit: of the loop in the array.
        extent: iterations of the whole loop.
        kept: iterations that are left.
    """

    loop: str
    digit: Digit
    extent: int
    kept: int


class OperatorShare(Struct, frozen=True):
    """An operator on fewer iterations.

    Attributes:
        operator: with fields of the share.
        operands: shape of each part that it reads.
        results: shape of each part that it writes.
        cuts: per operand what is left of it.
    """

    operator: CanonicalOperator
    operands: tuple[tuple[int, ...], ...]
    results: tuple[tuple[int, ...], ...]
    cuts: tuple[tuple[Cut, ...], ...]


def share_of(op: CanonicalNode[CanonicalOperator], loops: Mapping[str, int]) -> OperatorShare | None:
    """Return an operator on the first iterations of some of its loops; None if it does not say how.

    An array of which a loop has no digit is whole. That the share has the loops that are wanted, and the same digits,
    is seen from the operator that is made.

    Args:
        op: the whole operator.
        loops: iterations that are left of each loop that is split, by name.
    """
    operands, results = op.operands(), op.results()
    if not loops:
        shapes = tuple(tensor.shape for tensor in operands), tuple(tensor.shape for tensor in results)
        return OperatorShare(op.operator, *shapes, ((),) * len(operands))
    nest = op.operator.loop_nest(operands, op.output()) if len(results) == 1 else None
    if nest is None:
        return None
    known = {loop.name: loop for loop in kernel_loops(nest, [one.shape for one in operands], results[0].shape)}
    extents = {name: loops.get(name, loop.extent) for name, loop in nest.loops.items()}
    operator = op.operator.on_share(operands, results[0], extents) if set(loops) <= set(known) else None
    cuts = [_cuts(known, loops, place) for place in range(len(operands))]
    cut = [(known[name], kept) for name, kept in loops.items() if name in known]
    written = tuple(
        Cut(loop.name, loop.outputs[0], loop.extent, kept) for loop, kept in cut if loop.outputs[0] is not None
    )
    ends = zip((*operands, results[0]), (*nest.reads, nest.write), (*cuts, written), strict=True)
    shapes_found = [_shape(tensor.shape, index, found) for tensor, index, found in ends]
    kept_shapes = [shape for shape in shapes_found if shape is not None]
    if operator is None or len(kept_shapes) < len(shapes_found):
        return None
    found = OperatorShare(operator, tuple(kept_shapes[:-1]), (kept_shapes[-1],), tuple(cuts))
    return found if _has_loops(op, found, extents, (*cuts, written)) else None


def _cuts(known: Mapping[str, KernelLoop], loops: Mapping[str, int], operand: int) -> tuple[Cut, ...]:
    digits = ((name, known[name].inputs[operand]) for name in loops if name in known)
    return tuple(Cut(name, digit, known[name].extent, loops[name]) for name, digit in digits if digit is not None)


def _shape(shape: Sequence[int], indices: Sequence[Index], cuts: Sequence[Cut]) -> tuple[int, ...] | None:
    """Return the shape of what is left of an array; None if that is no array of as many dimensions."""
    left = list(shape)
    for cut in cuts:
        axis = cut.digit.axis
        if left[axis] % cut.extent or indices[axis] is None:
            return None
        left[axis] = left[axis] // cut.extent * cut.kept
    return tuple(left)


def _has_loops(
    op: CanonicalNode[CanonicalOperator],
    share: OperatorShare,
    extents: Mapping[str, int],
    cuts: Sequence[tuple[Cut, ...]],
) -> bool:
    """Return whether a share fits its arrays, has the loops that are wanted, and moves in all parts as it should."""
    operands = [replace(tensor, shape=shape) for tensor, shape in zip(op.operands(), share.operands, strict=True)]
    result = replace(op.output(), shape=share.results[0])
    try:
        share.operator.check(operands, [result])
    except OperatorFieldError:
        return False
    nest = share.operator.loop_nest(operands, result)
    if nest is None or {name: loop.extent for name, loop in nest.loops.items()} != extents:
        return False
    loops = {loop.name: loop for loop in kernel_loops(nest, share.operands, share.results[0])}
    for place, found in enumerate(cuts):
        for cut in found:
            if cut.kept > 1:
                loop = loops.get(cut.loop)
                digits = () if loop is None else (*loop.inputs, loop.outputs[0])
                if not digits or digits[place] != Digit(_stride(cut, found), cut.digit.axis):
                    return False
    return True


def _stride(cut: Cut, cuts: Sequence[Cut]) -> int:
    """Return the stride of a digit in what is left of its array."""
    stride = cut.digit.stride
    for other in cuts:
        if other.digit.stride < cut.digit.stride:
            stride = stride // other.extent * other.kept
    return stride


def cut_values(values: Values, cuts: Sequence[Cut]) -> Values:
    """Return the elements of an array that are left, in their order, flat.

    >>> cut_values(np.arange(12), [Cut("k", Digit(1, 1), 4, 2)])
    array([0, 1, 4, 5, 8, 9])
    """
    flat = np.ascontiguousarray(values).reshape(-1)
    # Outer digits first: they leave the strides of inner ones as they are.
    for cut in sorted(cuts, key=lambda one: -one.digit.stride):
        stride = cut.digit.stride
        flat = flat.reshape(-1, cut.extent, stride)[:, : cut.kept].reshape(-1)
    return flat
