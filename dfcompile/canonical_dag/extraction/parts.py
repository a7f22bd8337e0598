"""Parts of arrays: what some tasks write and others read, apart from all others, is a buffer of its own.

Whoever reads a part waits for those who write it, not for the array; and a part is in memory for less time. Where tasks
are pieces of a batch, and each step works on the same piece, every piece goes through all steps by itself.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag.dag import Int64
from dfcompile.canonical_dag.extraction.families import TaskFamily
from dfcompile.canonical_dag.extraction.scopes import Access, Array


class Parts(Struct, frozen=True):
    """An array in parts that follow one another in memory.

    Attributes:
        count: their number.
        elements: of each, but for the last one, which may have fewer.
    """

    count: int
    elements: int

    def touched(self, family: TaskFamily, access: Access) -> Int64:
        """Return the part that each task of a family touches, shape [members]."""
        outermost = _outermost(family)
        assert outermost is not None
        each = np.arange(family.members) // (family.members // family.cuts[outermost].tasks)
        step = access.strides[outermost] * family.cuts[outermost].size
        return (access.base + _reach(family, access, outermost)[0] + step * each) // self.elements


def parts_of(families: Sequence[TaskFamily], uses: Iterable[tuple[int, Access]], array: Array) -> Parts | None:
    """Return in how many parts an array is so that no task touches two of them; ``None``: in one.

    Of each family the outermost loop counts that is divided.

    Args:
        families: of tasks.
        uses: numbers of families, and what each of their tasks touches.
        array: that they touch.
    """
    most = 0
    steps = []
    for number, access in uses:
        family = families[number]
        outermost = _outermost(family)
        if outermost is None or access.is_indirect:
            return None
        step = access.strides[outermost] * family.cuts[outermost].size
        if step <= 0:
            return None
        low, high = _reach(family, access, outermost)
        low, high = access.base + low, access.base + high + step - access.strides[outermost]
        if low < 0 or low // step != high // step:
            return None
        most = max(most, step)
        steps.append(step)
    if any(most % step for step in steps) or array.elements <= most:
        return None
    return Parts(-(-array.elements // most), most)


def _outermost(family: TaskFamily) -> int | None:
    """Return the first loop that is divided; before it there may be loops that are not."""
    return next((at for at, cut in enumerate(family.cuts) if cut.tasks > 1), None)


def _reach(family: TaskFamily, access: Access, outermost: int) -> tuple[int, int]:
    """Return how far below and above its first element tasks go that differ in all loops but one."""
    extents = family.scope.extents
    moves = [stride * (extents[at] - 1) for at, stride in enumerate(access.strides) if at != outermost]
    return sum(min(move, 0) for move in moves), sum(max(move, 0) for move in moves)
