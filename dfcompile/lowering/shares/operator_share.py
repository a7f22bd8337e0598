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
        whole = tuple(tensor.shape for tensor in operands), tuple(tensor.shape for tensor in results)
        return OperatorShare(op.operator, *whole, ((),) * len(operands))
    nest = op.operator.loop_nest(operands, op.output()) if len(results) == 1 else None
    if nest is None:
        return None
    known = {loop.name: loop for loop in kernel_loops(nest, [one.shape for one in operands], results[0].shape)}
    if not set(loops) <= set(known):
        return None
    extents = {name: loops.get(name, loop.extent) for name, loop in nest.loops.items()}
    operator = op.operator.on_share(operands, results[0], extents)
    split = [known[name] for name in loops]
    digits = [[loop.inputs[place] for loop in split] for place in range(len(operands))]
    cuts = [_cuts(split, one, loops) for one in (*digits, [loop.outputs[0] for loop in split])]
    ends = zip((*operands, results[0]), (*nest.reads, nest.write), cuts, strict=True)
    shapes = [_shape(tensor.shape, indices, found) for tensor, indices, found in ends]
    kept = tuple(shape for shape in shapes if shape is not None)
    if operator is None or len(kept) < len(shapes):
        return None
    share = OperatorShare(operator, kept[:-1], kept[-1:], tuple(cuts[:-1]))
    return share if _has_loops(op, share, extents, cuts) else None


def _cuts(split: Sequence[KernelLoop], digits: Sequence[Digit | None], loops: Mapping[str, int]) -> tuple[Cut, ...]:
    """Return what is left of an array in which loops that are split have these digits."""
    pairs = zip(split, digits, strict=True)
    return tuple(Cut(loop.name, digit, loop.extent, loops[loop.name]) for loop, digit in pairs if digit is not None)


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
