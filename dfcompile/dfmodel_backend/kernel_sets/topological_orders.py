"""A few topological orders of kernels."""

from collections.abc import Callable, Iterator

from dfcompile.dfmodel_backend.kernel_sets.down_sets import followers_of


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
