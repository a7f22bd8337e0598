"""The loops of a canonical operator: which of its dimensions index which axis of each operand and of the result."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from types import MappingProxyType
from typing import TypeAlias

from dfcompile.canonical_dag import Digit, KernelLoop, LoopKind, LoopPart
from dfcompile.errors import UserError
from dfcompile.frontend.affine import affine_text
from dfcompile.lowering import expressions
from dfcompile.lowering.expressions import Reduction
from dfcompile.lowering.tensor import Tensor

Index: TypeAlias = str | None  # an affine expression of the loops; None: any place along the axis

KINDS: Mapping[Reduction, LoopKind] = MappingProxyType({one: LoopKind[one.name] for one in Reduction})


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop of an operator.

    Attributes:
        extent: iterations.
        part: the dimension of the kernel that it is all of, or a part of.
        kind: what becomes of its iterations; of a reduction partial results are combined element by element.
    """

    extent: int
    part: LoopPart = LoopPart.M
    kind: LoopKind = LoopKind.PARALLEL


@dataclass(frozen=True, slots=True)
class LoopNest:
    """What an operator says of its loops; those that it does not list are nobody's concern.

    Attributes:
        loops: by the names that indices use.
        reads: per operand one index per axis.
        write: one index per axis of the result.
    """

    loops: Mapping[str, Loop]
    reads: tuple[tuple[Index, ...], ...]
    write: tuple[Index, ...]


def loops_over(shape: Sequence[int]) -> dict[str, Loop]:
    """Return the parallel loops ``i0``, ``i1`` … over an array."""
    return {f"i{axis}": Loop(extent) for axis, extent in enumerate(shape)}


def axes_but(axis: int, operands: Sequence[Tensor], result: Tensor) -> LoopNest:
    """Return the loops over all axes but one, along which a share reads and writes at any place."""
    loops = loops_over(result.shape)
    index = tuple(None if name == f"i{axis}" else name for name in loops)
    loops.pop(f"i{axis}")
    return LoopNest(loops, (index,) * len(operands), index)


def kernel_loops(nest: LoopNest, operands: Sequence[Sequence[int]], result: Sequence[int]) -> tuple[KernelLoop, ...]:
    """Return the loops of a nest that may be split, with their digits of operands and result.

    A parallel loop may be split if each iteration has elements of the result of its own, a reduction if the result has
    nothing of it. An operand that a loop goes through in any other way, such as windows that overlap, is needed whole.

    Args:
        nest: of the operator.
        operands: shape of each.
        result: its shape.
    """
    reads = tuple(zip(map(tuple, operands), map(tuple, nest.reads), strict=True))
    return _kernel_loops(tuple(nest.loops.items()), reads, (tuple(result), tuple(nest.write)))


_Indexed: TypeAlias = tuple[tuple[int, ...], tuple[Index, ...]]  # the shape of an array, and an index per axis


@lru_cache(maxsize=4096)  # many operators of a model are equal
def _kernel_loops(
    loops: tuple[tuple[str, Loop], ...], operands: tuple[_Indexed, ...], result: _Indexed
) -> tuple[KernelLoop, ...]:
    extents = {name: loop.extent for name, loop in loops}
    reads = [_Terms.of(shape, indices, extents) for shape, indices in operands]
    write = _Terms.of(*result, extents)
    found = []
    for name, loop in loops:
        if loop.extent < 2:
            continue
        digit = write.digit(name)
        if (digit is None) is (loop.kind is LoopKind.PARALLEL) or (digit is None and write.moves(name)):
            continue
        inputs = tuple(read.digit(name) for read in reads)
        found.append(KernelLoop(name, loop.part, loop.extent, loop.kind, inputs, (digit,)))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Terms:
    """The offset in an array as a sum over loops: how far each moves, and what is not followed."""

    elements: int
    base: int
    strides: Mapping[str, int]
    axes: Mapping[str, int]
    extents: Mapping[str, int]
    unknown: tuple[tuple[int, int], ...]  # stride and extent of each axis that is not followed

    @staticmethod
    def of(shape: Sequence[int], indices: Sequence[Index], extents: Mapping[str, int]) -> "_Terms":
        base, strides, axes, unknown = 0, dict[str, int](), dict[str, int](), list[tuple[int, int]]()
        for axis, index in enumerate(indices):
            step = prod(shape[axis + 1 :])
            terms = None if index is None else affine(index)
            if terms is None or any(name not in extents for name in terms if name):
                unknown.append((step, shape[axis]))
                continue
            base += terms.get("", 0) * step
            for name, factor in terms.items():
                if name and factor:
                    strides[name] = strides.get(name, 0) + factor * step
                    axes.setdefault(name, axis)
        return _Terms(prod(shape), base, strides, axes, extents, tuple(unknown))

    def moves(self, name: str) -> bool:
        return bool(self.strides.get(name, 0))

    def digit(self, name: str) -> Digit | None:
        """Return the digit of a loop: all other terms leave it alone, those within it and those of whole periods."""
        stride, extent = self.strides.get(name, 0), self.extents[name]
        period = stride * extent
        if stride < 1 or self.elements % period:
            return None
        low, high = self.base % period, self.base % period
        others = [(self.strides[other], self.extents[other]) for other in self.strides if other != name]
        for step, count in (*others, *self.unknown):
            if step % period:
                low, high = low + min(0, step * (count - 1)), high + max(0, step * (count - 1))
        return Digit(stride, self.axes[name]) if 0 <= low <= high < stride else None


def moved_up(
    terms: Mapping[str, int], axis: int, digits: Sequence[tuple[KernelLoop, Digit | None]], extents: Mapping[str, int]
) -> dict[str, int]:
    """Return an index in what is left of an array: a step over a loop that is split is one over what is left of it.

    Args:
        terms: of the index along an axis of the whole array, as `affine` gives them.
        axis: of the array.
        digits: of all loops in the array.
        extents: of the loops, as many iterations as are left.

    >>> column = KernelLoop("j", LoopPart.M, 4, LoopKind.PARALLEL, (), ())
    >>> moved_up({"i": 4, "j": 1, "": 8}, 0, [(column, Digit(1, 0))], {"i": 4, "j": 2})
    {'i': 2, 'j': 1, '': 4}
    """
    moved = dict(terms)
    for loop, digit in digits:
        kept = extents[loop.name]
        if digit is not None and digit.axis == axis and kept < loop.extent:
            step = moved[loop.name]
            for name, value in moved.items():
                if name != loop.name:
                    periods, rest = divmod(value, step * loop.extent)
                    moved[name] = periods * step * kept + rest
    return moved


def moved_indices(
    indices: Sequence[Index], digits: Sequence[tuple[KernelLoop, Digit | None]], extents: Mapping[str, int]
) -> tuple[str, ...] | None:
    """Return the indices in what is left of an array, as `moved_up` does each; None if one of them is not affine."""
    found = []
    for axis, index in enumerate(indices):
        terms = None if index is None else affine(index)
        if index is None or terms is None:
            return None
        moved = moved_up(terms, axis, digits, extents)
        found.append(index if moved == terms else affine_text(moved))
    return tuple(found)


@lru_cache(maxsize=4096)
def affine(text: str) -> Mapping[str, int] | None:
    """Return the factor of each loop of an index, and under no name the constant; None if it is not affine.

    >>> affine("2*i0 + i1 - 1")
    {'i0': 2, 'i1': 1, '': -1}
    """
    try:
        return expressions.affine(text.strip())
    except UserError:
        return None
