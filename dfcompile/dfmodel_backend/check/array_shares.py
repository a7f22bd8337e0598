"""Which element of an array lies on which chip, element by element (docs/dfmodel.md, layouts)."""

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

from dfcompile.canonical_dag import Digit, Kernel, LoopKind
from dfcompile.canonical_dag.dag import Int64
from dfcompile.dfmodel_backend.workload.graph import DimensionLayout, Layout, Partial, Split

PIECE = 1 << 22  # elements that are looked at at a time
KEPT = 1 << 12  # counts
NOT_SPLIT = -1


def layout_of(kernel: Kernel, place: int, choice: Sequence[int], chips: Sequence[int], *, is_result: bool) -> Layout:
    """Return how an operand or a result of a kernel lies on the chips along each dimension of their network.

    Args:
        kernel: with its loops.
        place: of the array among operands or results.
        choice: per dimension the number of the loop that is split along it, -1 for none.
        chips: along each dimension.
        is_result: whether the kernel makes it.
    """
    held: list[DimensionLayout] = []
    for dimension, number in enumerate(choice):
        loop = None if number == NOT_SPLIT else kernel.loops[number]
        digit: Digit | None = None if loop is None else (loop.outputs if is_result else loop.inputs)[place]
        if loop is None or (digit is None and not (is_result and loop.kind is not LoopKind.PARALLEL)):
            held.append(None)
        elif digit is None:
            held.append(Partial(loop.kind))
        else:
            held.append(_split(digit.stride, loop.extent, _parted(number, choice, chips), dimension))
    return tuple(held)


def iterations_left(kernel: Kernel, choice: Sequence[int], chips: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the number of each loop that is split, and the iterations of the chip with most of them."""
    for number in dict.fromkeys(choice):
        if number != NOT_SPLIT:
            left = kernel.loops[number].extent
            for _, count in _parted(number, choice, chips):
                left = -(-left // count)
            yield number, left


def _parted(number: int, choice: Sequence[int], chips: Sequence[int]) -> list[tuple[int, int]]:
    """Return the dimensions along which a loop is split, with their chips; the outermost parts it first."""
    return [(place, chips[place]) for place in reversed(range(len(choice))) if choice[place] == number]


def _split(stride: int, extent: int, parted: Sequence[tuple[int, int]], dimension: int) -> Split:
    moduli, block = [stride * extent], extent
    for place, count in parted:
        block = -(-block // count)
        if place == dimension:
            break
        moduli.append(stride * block)
    return Split(tuple(moduli), stride * block)


def splits(layout: Layout) -> tuple[Split, ...]:
    """Return the splits of a layout; elements lie on all chips along the other dimensions."""
    return tuple(held for held in layout if isinstance(held, Split))


@lru_cache(maxsize=KEPT)
def most_elements(layout: Layout, elements: int) -> int:
    """Return how many elements of an array lie on the chip with most of them."""
    parted = splits(layout)
    counts: dict[int, int] = {}
    for columns, weight in _coordinates(parted, elements):
        chip = np.zeros(1, dtype=np.int64)
        for split, column in zip(parted, columns, strict=True):
            chip = chip * (split.moduli[-1] // split.block + 1) + column
        for number, many in enumerate(np.bincount(chip).tolist()):
            counts[number] = counts.get(number, 0) + many * weight
    return max(counts.values())


@lru_cache(maxsize=KEPT)
def elements_missing(before: Layout, after: Layout, elements: int, chips: tuple[int, ...]) -> int:
    """Return how many elements of an array all chips together lack under one layout that they have under another.

    Args:
        before: without partial results.
        after: the same.
        elements: of the array.
        chips: along each dimension.
    """
    held = list(zip(before, after, chips, strict=True))
    needing = math.prod(count for _, need, count in held if need is None)
    having = math.prod(count for has, need, count in held if has is None and need is None)
    both = [(has, need) for has, need, _ in held if isinstance(has, Split) and isinstance(need, Split)]
    missing = elements * needing
    for columns, weight in _coordinates([split for pair in both for split in pair], elements):
        agree = np.ones(1, dtype=np.bool_)
        for column, other in zip(columns[::2], columns[1::2], strict=True):
            agree = agree & (column == other)
        missing -= int(np.count_nonzero(agree)) * weight * having
    return missing


@lru_cache(maxsize=KEPT)
def are_alike(one: DimensionLayout, other: DimensionLayout, elements: int) -> bool:
    """Return whether an array lies in the same way along a dimension, however that is written."""
    if isinstance(one, Split) and isinstance(other, Split):
        return elements_missing((one,), (other,), elements, (1,)) == 0
    return one == other


def _coordinates(parted: Sequence[Split], elements: int) -> Iterator[tuple[list[Int64], int]]:
    """Yield the coordinates of elements under each split, and how many elements each of them is for."""
    period = math.lcm(*(split.moduli[0] for split in parted))
    span = period if elements % period == 0 else elements
    step = math.gcd(span, *(part for split in parted for part in (*split.moduli, split.block)))
    for first in range(0, span, PIECE * step):
        offsets = np.arange(first, min(span, first + PIECE * step), step, dtype=np.int64)
        columns = []
        for split in parted:
            place = offsets
            for modulus in split.moduli:
                place = place % modulus
            columns.append(place // split.block)
        yield columns, step * (elements // span)
