"""Down-sets of a DAG: sets of kernels that hold every predecessor of their members, as bit masks.

A mapping into configurations is a chain of down-sets from the empty set to all kernels, each configuration the
difference of two neighbours.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DownSets:
    """All down-sets of a DAG."""

    larger: dict[int, tuple[int, ...]]  # per down-set, those with one kernel more; smaller down-sets first

    def __iter__(self) -> Iterator[int]:
        return iter(self.larger)

    def supersets(self, down_set: int, most: int, may_grow: Callable[[int], bool]) -> Iterator[int]:
        """Yield larger down-sets with at most ``most`` kernels more, fewer kernels first.

        ``may_grow`` tells of a set of added kernels whether larger ones are of interest; where it says no, no set
        that holds them is yielded but for those reached another way.
        """
        layer = [down_set]
        for _ in range(most):
            following: dict[int, None] = {}
            for smaller in layer:
                following.update(dict.fromkeys(self.larger[smaller]))
            layer = sorted(following)
            if not layer:
                return
            yield from layer
            layer = [larger for larger in layer if may_grow(larger ^ down_set)]


def list_down_sets(predecessors: tuple[int, ...], limit: int) -> DownSets | None:
    """Return all down-sets, or None if there are more than ``limit``."""
    larger: dict[int, tuple[int, ...]] = {}
    layer = [0]
    while layer:
        if len(larger) + len(layer) > limit:
            return None
        following: dict[int, None] = {}
        for down_set in layer:
            larger[down_set] = tuple(down_set | bit for bit in _free_kernels(predecessors, down_set))
            following.update(dict.fromkeys(larger[down_set]))
        layer = sorted(following)
    return DownSets(larger)


def _free_kernels(predecessors: tuple[int, ...], down_set: int) -> Iterator[int]:
    """Yield, as a mask each, the kernels outside a down-set whose predecessors are all in it."""
    for kernel, needed in enumerate(predecessors):
        if needed & ~down_set == 0 and not down_set >> kernel & 1:
            yield 1 << kernel


def joined(orders: Iterable[tuple[int, ...]]) -> DownSets:
    """Return the prefixes of topological orders of the same kernels as down-sets."""
    larger: dict[int, dict[int, None]] = {0: {}}
    for order in orders:
        done = 0
        for kernel in order:
            larger[done][done | 1 << kernel] = None
            done |= 1 << kernel
            larger.setdefault(done, {})
    by_size = sorted(larger, key=lambda down_set: (down_set.bit_count(), down_set))
    return DownSets({down_set: tuple(larger[down_set]) for down_set in by_size})
