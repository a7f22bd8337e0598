"""Times of collectives in groups of chips: those of the back end's topologies, or fitted ones."""

import math
from collections.abc import Callable
from functools import lru_cache

from dfcompile.language_models.parallel.degrees import Group
from dfcompile.language_models.times.calibrated import AllReduce


class Collectives:
    """Seconds of collectives on a machine.

    The back end's formulas are per dimension: what inner ones reduced goes on outside [ko24]. A fitted all-reduce is
    taken inside the innermost dimension, where it was measured.
    """

    def __init__(self, latency_s: float, fitted: AllReduce | None, innermost: int) -> None:
        self._latency_s = latency_s
        self._fitted = fitted
        self._innermost = innermost

    def all_reduce(self, group: Group, amount: float) -> float:
        """Return the seconds of the sum of so many bytes on every chip."""
        chips = math.prod(link.chips for link in group)
        if self._fitted is not None and 1 < chips <= self._innermost:
            return self._fitted.seconds(chips, amount)
        return self._taken(group, _reduce_s_per_byte, amount, 2)

    def all_gather(self, group: Group, amount: float) -> float:
        """Return the seconds until every chip has all of so many bytes."""
        return self._taken(group, _reduce_s_per_byte, amount / 2, 1)

    def all_to_all(self, group: Group, amount: float) -> float:
        """Return the seconds until so many bytes, all chips' together, stand with whom they are for."""
        return self._taken(group, _exchange_s_per_byte, amount, 1)

    def _taken(self, group: Group, s_per_byte: Callable[[Group], float], amount: float, phases: int) -> float:
        if not group:
            return 0.0
        hops = sum(1 if link.kind == "fc" else link.chips - 1 for link in group)
        return amount * s_per_byte(group) + phases * self._latency_s * hops

    def send(self, group: Group, amount: float) -> float:
        """Return the seconds of so many bytes from one stage to the next, over the slowest link between them."""
        return self._latency_s + amount / min(link.bytes_per_s for link in group)


@lru_cache(maxsize=1024)
def _reduce_s_per_byte(links: Group) -> float:
    from dfcompile.dfmodel_backend.machine.machine import Link
    from dfcompile.dfmodel_backend.machine.network.collective_times import everywhere_ns_per_byte

    groups = [Link(link.kind, link.chips, link.bytes_per_s * 1e-9, "TP", 0.0) for link in links]
    return everywhere_ns_per_byte(groups, separate_phases=True) * 1e-9


@lru_cache(maxsize=1024)
def _exchange_s_per_byte(links: Group) -> float:
    from dfcompile.dfmodel_backend.machine.network.collective_times import exchange_ns_per_byte
    from dfcompile.dfmodel_backend.machine.network.topologies import topology

    shape = topology("_".join(link.kind for link in links))
    seconds = exchange_ns_per_byte(shape, [link.chips for link in links], [link.bytes_per_s * 1e-9 for link in links])
    return seconds * 1e-9
