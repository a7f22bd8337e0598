"""A few topological orders of kernels."""

from collections.abc import Callable, Iterator


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
    done = 0
    order: list[int] = []
    ready = [kernel for kernel, needed in enumerate(predecessors) if not needed]
    while ready:
        kernel = min(ready, key=rule)
        ready.remove(kernel)
        order.append(kernel)
        done |= 1 << kernel
        for follower, needed in enumerate(predecessors):
            if needed >> kernel & 1:
                latest[follower] = len(order)
                if needed & ~done == 0:
                    ready.append(follower)
    return tuple(order)
