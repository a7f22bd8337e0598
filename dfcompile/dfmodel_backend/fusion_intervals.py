"""Fusion along topological orders: the best cut of an order into intervals, for graphs with too many down-sets."""

from collections.abc import Callable, Iterator

from dfcompile.dfmodel_backend.configuration import ConfigurationModel
from dfcompile.dfmodel_backend.fusion_dp import Chain


def fuse_by_intervals(model: ConfigurationModel) -> Chain | None:
    """Return the fastest chain whose configurations are intervals of one of a few topological orders."""
    best: tuple[float, int, Chain] | None = None
    for order in topological_orders(model):
        found = cut_order(model, order)
        if found is not None and (best is None or found < best):
            best = found
    return None if best is None else best[2]


def cut_order(model: ConfigurationModel, order: tuple[int, ...]) -> tuple[float, int, Chain] | None:
    """Return (time in ns, configurations, chain) of the fastest cut of one topological order."""
    limit = model.options.max_configurations
    rounds = limit or 1
    prefix = [0]
    for kernel in order:
        prefix.append(prefix[-1] | 1 << kernel)
    start = (0.0, 0, ())
    layers: list[tuple[float, int, Chain] | None] = [start, *[None] * len(order)]
    if not limit:
        for end in range(1, len(order) + 1):
            layers[end] = _best_end(model, prefix, layers, end)
        return layers[-1]
    best: tuple[float, int, Chain] | None = None
    for _ in range(rounds):
        layers = [None, *(_best_end(model, prefix, layers, end) for end in range(1, len(order) + 1))]
        last = layers[-1]
        if last is not None and (best is None or last < best):
            best = last
    return best


def _best_end(
    model: ConfigurationModel, prefix: list[int], layers: list[tuple[float, int, Chain] | None], end: int
) -> tuple[float, int, Chain] | None:
    best: tuple[float, int, Chain] | None = None
    for start in range(end - 1, max(-1, end - 1 - model.system.accelerator.cores), -1):
        so_far = layers[start]
        if so_far is None:
            continue
        kernels = prefix[end] ^ prefix[start]
        time_ns = model.time_ns(kernels)
        if time_ns is None or not model.fits_dram(prefix[start], kernels):
            if not model.may_grow(kernels):
                break
            continue
        found = (so_far[0] + time_ns, so_far[1] + 1)
        if best is None or found < best[:2]:
            best = (*found, (*so_far[2], kernels))
    return best


def topological_orders(model: ConfigurationModel) -> Iterator[tuple[int, ...]]:
    """Yield a few orders: as given, depth first (consumers follow their producer), and level by level."""
    predecessors = model.workload.predecessors
    count = len(predecessors)
    yield tuple(range(count))
    latest = [-1] * count  # step at which the last producer ran
    rules: list[Callable[[int], tuple[int, int]]] = [
        lambda kernel: (-latest[kernel], kernel),
        lambda kernel: (latest[kernel], kernel),
    ]
    for rule in rules:
        latest[:] = [-1] * count
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
