"""Down-sets of a DAG: sets of kernels that hold every predecessor of their members, as bit masks.

A mapping into configurations is a chain of down-sets from the empty set to all kernels, each configuration the
difference of two neighbours. Of a few topological orders the prefixes are some of the down-sets,
few whatever the graph.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

from msgspec import Struct


def kernels_of(mask: int) -> Iterator[int]:
    """Yield the kernels of a set, ascending: a set has few of thousands of kernels."""
    while mask:
        bit = mask & -mask
        mask ^= bit
        yield bit.bit_length() - 1


class DownSets(Struct, frozen=True):
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


@lru_cache(maxsize=4)  # of one graph whatever its kernels cost
def list_down_sets(predecessors: tuple[int, ...], limit: int) -> DownSets | None:
    """Return all down-sets, or None if there are more than ``limit``."""
    followers = followers_of(predecessors)
    larger: dict[int, tuple[int, ...]] = {}
    free = {0: sum(1 << kernel for kernel, needed in enumerate(predecessors) if not needed)}
    while free:
        if len(larger) + len(free) > limit:
            return None
        following: dict[int, int] = {}
        for down_set, kernels in free.items():
            found = []
            for kernel in kernels_of(kernels):
                after = down_set | 1 << kernel
                found.append(after)
                if after not in following:
                    ready = (one for one in followers[kernel] if not predecessors[one] & ~after)
                    following[after] = kernels ^ 1 << kernel | sum(1 << one for one in ready)
            larger[down_set] = tuple(found)
        free = {down_set: following[down_set] for down_set in sorted(following)}
    return DownSets(larger)


def followers_of(predecessors: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Return the kernels that wait for each kernel, ascending."""
    followers: list[list[int]] = [[] for _ in predecessors]
    for kernel, needed in enumerate(predecessors):
        for one in kernels_of(needed):
            followers[one].append(kernel)
    return tuple(map(tuple, followers))


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


def topological_orders(predecessors: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yield orders: as given where that is one, depth first (consumers follow their producer), and level by level.

    Args:
        predecessors: the set of direct predecessors of each kernel, as bit masks.
    """
    latest = [-1] * len(predecessors)  # step at which the last producer ran
    rules: list[Callable[[int], tuple[int, int]]] = [
        lambda kernel: (0, kernel),
        lambda kernel: (-latest[kernel], kernel),
        lambda kernel: (latest[kernel], kernel),
    ]
    for rule in rules:
        latest[:] = [-1] * len(predecessors)
        yield _greedy_order(predecessors, latest, rule)


def _greedy_order(
    predecessors: tuple[int, ...], latest: list[int], rule: Callable[[int], tuple[int, int]]
) -> tuple[int, ...]:
    followers = followers_of(predecessors)
    waits = [needed.bit_count() for needed in predecessors]
    order: list[int] = []
    ready = [kernel for kernel, needed in enumerate(predecessors) if not needed]
    while ready:
        kernel = min(ready, key=rule)
        ready.remove(kernel)
        order.append(kernel)
        for follower in followers[kernel]:
            latest[follower] = len(order)
            waits[follower] -= 1
            if not waits[follower]:
                ready.append(follower)
    return tuple(order)
