"""What splitting loops of a kernel over the dimensions of a network makes of the kernel and of its arrays."""

import math
from collections.abc import Sequence
from itertools import product

from dfcompile.canonical_dag import Digit, Kernel, KernelLoop, LoopKind, LoopPart
from dfcompile.dfmodel_backend.inter_chip.splits import split_of
from dfcompile.dfmodel_backend.workload.array_layout import Held, Layout, Partial
from dfcompile.records import replace

Choice = tuple[int, ...]  # per dimension of the network the number of the loop that is split along it, or WHOLE
WHOLE = -1


def choices_of(kernel: Kernel, dimensions: int) -> tuple[Choice, ...]:
    """Return every way to split a kernel: one loop or none along each dimension; the first is none at all.

    Reductions of one kernel are combined in one way, so that any of them may be split along any dimension.
    """
    return tuple(product((WHOLE, *range(len(kernel.loops))), repeat=dimensions))


def operand_layout(kernel: Kernel, operand: int, choice: Choice, elements: int, chips: Sequence[int]) -> Layout:
    """Return the layout in which a kernel needs an operand."""
    digits = [loop.inputs[operand] for loop in kernel.loops]
    return _layout(kernel.loops, digits, choice, elements, chips, is_result=False)


def result_layout(kernel: Kernel, result: int, choice: Choice, elements: int, chips: Sequence[int]) -> Layout:
    """Return the layout in which a kernel leaves a result."""
    digits = [loop.outputs[result] for loop in kernel.loops]
    return _layout(kernel.loops, digits, choice, elements, chips, is_result=True)


def _layout(
    loops: Sequence[KernelLoop],
    digits: Sequence[Digit | None],
    choice: Choice,
    elements: int,
    chips: Sequence[int],
    *,
    is_result: bool,
) -> Layout:
    held: list[Held] = []
    for place, number in enumerate(choice):
        digit = None if number == WHOLE else digits[number]
        if digit is not None:
            shared = _dimensions_of(number, choice)
            counts = [chips[dimension] for dimension in shared]
            held.append(split_of(elements, digit.stride, loops[number].extent, counts, shared.index(place)))
        elif number != WHOLE and is_result and loops[number].kind is not LoopKind.PARALLEL:
            held.append(Partial(loops[number].kind))
        else:
            held.append(None)
    return tuple(held)


def _dimensions_of(number: int, choice: Choice) -> list[int]:
    """Return the dimensions along which a loop is split: outer ones part it first."""
    return [dimension for dimension in range(len(choice) - 1, -1, -1) if choice[dimension] == number]


def loops_left(kernel: Kernel, choice: Choice, chips: Sequence[int]) -> tuple[tuple[KernelLoop, int], ...]:
    """Return the loops that are split, with the iterations that the chip with most of them has."""
    found = []
    for number in sorted(set(choice) - {WHOLE}):
        left = kernel.loops[number].extent
        for dimension in _dimensions_of(number, choice):
            left = -(-left // chips[dimension])
        found.append((kernel.loops[number], left))
    return tuple(found)


def kernel_share(kernel: Kernel, choice: Choice, chips: Sequence[int]) -> Kernel:
    """Return the part of a kernel that the chip with most of it runs; of elements in any order a part of them."""
    sizes = {LoopPart.OUTER: kernel.outer, LoopPart.M: kernel.m, LoopPart.K: kernel.k, LoopPart.N: kernel.n}
    whole = part = 1
    for loop, left in loops_left(kernel, choice, chips):
        whole, part = whole * loop.extent, part * left
        if kernel.variant.is_gemm:
            sizes[loop.part] = sizes[loop.part] // loop.extent * left
    if part == whole:
        return kernel
    if not kernel.variant.is_gemm:
        elements = -(-math.prod(sizes.values()) * part // whole)
        sizes = {LoopPart.OUTER: 1, LoopPart.M: elements, LoopPart.K: 1, LoopPart.N: 1}
    return replace(kernel, outer=sizes[LoopPart.OUTER], m=sizes[LoopPart.M], k=sizes[LoopPart.K], n=sizes[LoopPart.N])


def parallel_share(kernel: Kernel, choice: Choice, chips: Sequence[int]) -> tuple[int, int]:
    """Return the part of a kernel's iterations that the chip with most of it runs, as a fraction."""
    split = loops_left(kernel, choice, chips)
    return math.prod(left for _, left in split), math.prod(loop.extent for loop, _ in split)


def held_in_words(kernel: Kernel, digits: Sequence[Digit | None], number: int, *, is_result: bool) -> str:
    """Return how an array lies along a dimension of the network, given the loop that is split along it."""
    if number == WHOLE:
        return "whole"
    digit, loop = digits[number], kernel.loops[number]
    if digit is not None:
        return f"split by axis {digit.axis}"
    if is_result and loop.kind is not LoopKind.PARALLEL:
        return f"partial over {loop.name}, to be combined by {loop.kind}"
    return "whole"
