"""Slices of arrays: what some tasks write and others read, apart from all others, is a buffer of its own.

Whoever reads a slice waits for those who write it, not for the array; and a slice is in memory for less time. Where
tasks are pieces of a batch, and each step works on the same piece, every piece goes through all steps by itself.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag.dag import Int64
from dfcompile.canonical_dag.extraction.families import TaskFamily
from dfcompile.canonical_dag.extraction.scopes import Access


class Slices(Struct, frozen=True):
    """An array in slices that follow one another in memory.

    Attributes:
        count: their number; all are written and read.
        elements: of each, but for the last one, which may have fewer.
    """

    count: int
    elements: int

    def touched(self, family: TaskFamily, access: Access) -> Int64:
        """Return the slice that each task of a family touches, shape [members]."""
        outermost = _outermost(family)
        assert outermost is not None
        each = np.arange(family.members) // (family.members // family.cuts[outermost].tasks)
        step = access.strides[outermost] * family.cuts[outermost].size
        return step * each // self.elements


def slices_of(families: Sequence[TaskFamily], uses: Iterable[tuple[int, Access]]) -> Slices | None:
    """Return in how many slices an array is so that no task touches two of them; ``None``: in one.

    Of each family the outermost loop counts that is divided.

    Args:
        families: of tasks.
        uses: numbers of families, and what each of their tasks touches of the array.
    """
    found: list[tuple[int, int]] = []  # elements that a round of the loop moves by, and how often
    for number, access in uses:
        family = families[number]
        outermost = _outermost(family)
        if outermost is None or access.is_indirect:
            return None
        cut, stride = family.cuts[outermost], access.strides[outermost]
        low, high = (access.base + move for move in _reach(family, access, outermost))
        step = stride * cut.size
        if step <= 0 or low < 0 or high + step - stride >= step:
            return None
        found.append((step, cut.tasks))
    most = max(step for step, _ in found)
    counts = {-(-step * tasks // most) for step, tasks in found}
    if any(most % step for step, _ in found) or len(counts) > 1 or counts == {1}:
        return None
    return Slices(counts.pop(), most)


def _outermost(family: TaskFamily) -> int | None:
    """Return the first loop that is divided; before it there may be loops that are not."""
    return next((at for at, cut in enumerate(family.cuts) if cut.tasks > 1), None)


def _reach(family: TaskFamily, access: Access, outermost: int) -> tuple[int, int]:
    """Return how far below and above its first element tasks go that differ in all loops but one."""
    extents = family.scope.extents
    moves = [stride * (extents[at] - 1) for at, stride in enumerate(access.strides) if at != outermost]
    return sum(min(move, 0) for move in moves), sum(max(move, 0) for move in moves)
