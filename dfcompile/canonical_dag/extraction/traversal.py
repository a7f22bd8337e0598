"""Traversals: the order in which a loop nest visits the elements of an array, as flat offsets."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from math import gcd, prod
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from dfcompile.distinct import distinct

LARGEST_FOOTPRINT = 20_000_000  # iterations that are enumerated to count the distinct elements of an irregular write


class Loop(NamedTuple):
    """One loop of a nest, seen from one array: every iteration moves by ``stride`` elements."""

    extent: int
    stride: int


class Traversal(Struct, frozen=True):
    """A loop nest over an array: offset ``base + sum(stride * index)``, in elements, loops outer to inner."""

    base: int
    loops: tuple[Loop, ...]

    @property
    def accesses(self) -> int:
        """Number of iterations."""
        return prod(loop.extent for loop in self.loops)

    @property
    def normal(self) -> "Traversal":
        """The one way to write this order: no loops of extent 1, no two loops that are one."""
        return Traversal(self.base, merged(self.loops))

    @property
    def is_injective(self) -> bool:
        """Whether no element is visited twice (sufficient: every loop steps over all that the smaller ones span)."""
        span = 0
        for extent, stride in sorted(merged(self.loops), key=lambda loop: abs(loop.stride)):
            if abs(stride) <= span:
                return False
            span += abs(stride) * (extent - 1)
        return True

    @property
    def without_repeats(self) -> "Traversal":
        """The traversal without loops that do not move, such as the accumulation loops of a write."""
        return Traversal(self.base, tuple(loop for loop in self.loops if loop.stride != 0))

    @property
    def completion(self) -> "Traversal | None":
        """The order in which a writer finishes elements, normal; None if elements are final only at the end.

        Accumulation loops must be innermost, and no element may be taken up again later.
        """
        loops = [loop for loop in self.loops if loop.extent > 1]
        while loops and loops[-1].stride == 0:
            loops.pop()
        finished = Traversal(self.base, tuple(loops))
        return finished.normal if finished.is_injective else None

    def distinct(self) -> int | None:
        """Return the number of distinct elements visited; None if the nest is irregular and too large to enumerate."""
        moving = self.without_repeats
        if moving.is_injective:
            return moving.accesses
        if moving.accesses > LARGEST_FOOTPRINT:
            return None
        return prod(map(_sums, _apart(merged(moving.loops))))


def _apart(loops: Iterable[Loop]) -> Iterator[list[Loop]]:
    """Yield loops in groups: steps of each are multiples of more than all groups before it span together."""
    ordered = [Loop(extent, abs(stride)) for extent, stride in sorted(loops, key=lambda loop: abs(loop.stride))]
    steps = [*accumulate((stride for _, stride in reversed(ordered)), gcd)][::-1]
    group: list[Loop] = []
    span = 0
    for loop, step in zip(ordered, steps, strict=True):
        if group and span < step:
            yield group
            group, span = [], 0
        group.append(loop)
        span += loop.stride * (loop.extent - 1)
    if group:
        yield group


def _sums(loops: Sequence[Loop]) -> int:
    """Return how many different elements some loops of rising positive strides visit."""
    first = loops[0].stride
    span = 0  # as long as every multiple of the first stride up to here is visited
    for extent, stride in loops:
        if stride % first or stride > span + first:
            break
        span += stride * (extent - 1)
    else:
        return span // first + 1
    offsets = np.zeros(1, dtype=np.int64)
    for extent, stride in loops:
        offsets = distinct(np.add.outer(offsets, stride * np.arange(extent, dtype=np.int64)))
    return len(offsets)


def merged(loops: Iterable[Loop]) -> tuple[Loop, ...]:
    """Drop loops of extent 1 and join neighbours that step through memory as one loop would.

    >>> merged([Loop(4, 6), Loop(1, 99), Loop(6, 1)])
    (Loop(extent=24, stride=1),)
    """
    joined: list[Loop] = []
    for loop in loops:
        if loop.extent == 1:
            continue
        if joined and joined[-1].stride == loop.stride * loop.extent:
            joined[-1] = Loop(joined[-1].extent * loop.extent, loop.stride)
        else:
            joined.append(loop)
    return tuple(joined)


def is_round_robin(reader: Traversal, member: Traversal, family: Sequence[Loop]) -> bool:
    """Whether a reader takes one element from each member of a family in turn, in the members' own order.

    Args:
        reader: what the reader visits.
        member: normal order in which member 0 finishes its elements.
        family: the loops over the members.
    """
    split = _split_inner(list(merged(reader.loops)), prod(loop.extent for loop in family))
    if split is None or reader.base != member.base:
        return False
    outer, inner = split
    return merged(outer) == member.loops and _as_set(inner) == _as_set(family)


def _split_inner(loops: list[Loop], count: int) -> tuple[list[Loop], list[Loop]] | None:
    """Split off the innermost ``count`` iterations, cutting a loop in two if need be."""
    inner: list[Loop] = []
    while count > 1:
        if not loops:
            return None
        extent, stride = loops.pop()
        if count % extent == 0:
            inner.append(Loop(extent, stride))
            count //= extent
        elif extent % count == 0:
            inner.append(Loop(count, stride))
            loops.append(Loop(extent // count, stride * count))
            count = 1
        else:
            return None
    return loops, inner


def _as_set(loops: Iterable[Loop]) -> tuple[Loop, ...]:
    """Return a normal form of the set of offsets that a nest visits, whatever the order of its loops."""
    return merged(sorted(loops, key=lambda loop: loop.stride, reverse=True))


def reused_elements(loops: Sequence[Loop]) -> int | None:
    """Return how many elements must be at hand so that a nest takes none for the second time; ``None``: all of them.

    They are those inside of the outermost loop that does not move; without such a loop none is taken twice. Where
    places overlap, more would be needed.

    >>> reused_elements([Loop(4, 8), Loop(3, 0), Loop(8, 1)])
    8
    """
    moving = Traversal(0, tuple(loop for loop in loops if loop.stride and loop.extent > 1))
    if not moving.is_injective:
        return None
    still = next((at for at, loop in enumerate(loops) if not loop.stride and loop.extent > 1), len(loops))
    return prod(loop.extent for loop in loops[still:] if loop.stride) if still < len(loops) else 0


def loops_of(order: str) -> tuple[Loop, ...]:
    """Return the loops that the text of an order names; none of whole dimensions, of which each element comes once."""
    if order.startswith("["):
        return ()
    return tuple(Loop(*map(int, loop.split("@"))) for loop in order.split(","))


def order_text(traversal: Traversal, shape: Sequence[int], strides: Sequence[int]) -> str:
    """Return a short text of an order.

    ``[1,0]``: dimensions of the array, outer to inner, each walked in full. Otherwise ``extent@stride`` of each loop,
    such as ``6@25,25@1``; ``[]`` is a single element.
    """
    dimensions = {loop: axis for axis, loop in enumerate(map(Loop, shape, strides)) if loop.extent > 1}
    loops = [loop for loop in traversal.loops if loop.extent > 1]
    if all(loop in dimensions for loop in loops) and len(set(loops)) == len(loops):
        return f"[{','.join(str(dimensions[loop]) for loop in loops)}]"
    axes = _axes_of_merged(merged(loops), shape, strides)
    if axes is not None:
        return f"[{','.join(map(str, axes))}]"
    return ",".join(f"{extent}@{stride}" for extent, stride in merged(loops))


def _axes_of_merged(loops: Sequence[Loop], shape: Sequence[int], strides: Sequence[int]) -> list[int] | None:
    """Return the dimensions that merged loops stand for, if each loop is a run of whole neighbouring dimensions."""
    axes: list[int] = []
    for loop in loops:
        run: list[int] = []
        extent = 1
        for axis in range(len(shape) - 1, -1, -1):
            if shape[axis] > 1 and strides[axis] == loop.stride * extent and extent < loop.extent:
                run.insert(0, axis)
                extent *= shape[axis]
        if extent != loop.extent or set(run) & set(axes):
            return None
        axes.extend(run)
    return axes
