"""Down-sets of a DAG: sets of kernels that hold every predecessor of their members, as bit masks.

A mapping into configurations is a chain of down-sets from the empty set to all kernels, each configuration the
difference of two neighbours.
"""

from collections.abc import Callable, Iterator


def list_down_sets(predecessors: tuple[int, ...], limit: int) -> list[int] | None:
    """Return all down-sets, smaller ones first, or None if there are more than ``limit``."""
    layer = [0]
    found = [0]
    while layer:
        following: dict[int, None] = {}
        for down_set in layer:
            for bit in free_kernels(predecessors, down_set):
                following[down_set | bit] = None
        layer = sorted(following)
        found.extend(layer)
        if len(found) > limit:
            return None
    return found


def free_kernels(predecessors: tuple[int, ...], down_set: int) -> Iterator[int]:
    """Yield, as a mask each, the kernels outside a down-set whose predecessors are all in it."""
    for kernel, needed in enumerate(predecessors):
        if needed & ~down_set == 0 and not down_set >> kernel & 1:
            yield 1 << kernel


def supersets(
    predecessors: tuple[int, ...], down_set: int, most: int, may_grow: Callable[[int], bool]
) -> Iterator[int]:
    """Yield larger down-sets with at most ``most`` kernels more, fewer kernels first.

    ``may_grow`` tells of a set of added kernels whether larger ones are of interest; where it says no, no set
    that holds them is yielded but for those reached another way.
    """
    layer = [down_set]
    for _ in range(most):
        following: dict[int, None] = {}
        for smaller in layer:
            for bit in free_kernels(predecessors, smaller):
                following[smaller | bit] = None
        layer = sorted(following)
        if not layer:
            return
        yield from layer
        layer = [larger for larger in layer if may_grow(larger ^ down_set)]
