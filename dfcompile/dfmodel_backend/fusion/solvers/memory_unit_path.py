"""Shortest path where memory units (PMUs) are counted: sets are evaluated exactly only where they may be on it.

Cores and PMUs split best take long to find. Without PMUs, and with weights whole, no set is slower: such times are
lower bounds. A shortest path with bounds is evaluated exactly and found again until all of its sets are exact; it is
then as short as any, because the others are at least as long as their bounds.
"""

from functools import partial

import numpy as np
import numpy.typing as npt

from dfcompile.dfmodel_backend.columns import Column
from dfcompile.dfmodel_backend.fusion.solvers.path import Chain, least_chain
from dfcompile.dfmodel_backend.intra_chip.set_model import SetModel
from dfcompile.dfmodel_backend.intra_chip.set_times import arc_times, least_limits, set_limits, set_times
from dfcompile.dfmodel_backend.kernel_sets.arcs import Arcs, SetLimits
from dfcompile.dfmodel_backend.kernel_sets.shape import FusionShape


def least_chain_of_pmus(model: SetModel, arcs: Arcs, shape: FusionShape) -> tuple[float, Chain | None]:
    """Return the least time of a chain of all kernels, and the chain, or None if there is none.

    Both are those of `least_chain` with exact times, ties included.
    """
    bounds = _Bounds(model, arcs)
    number = {kernels: place for place, kernels in enumerate(arcs.sets)}
    while True:
        time_ns, chain = least_chain(arcs, bounds.arc_times, shape)
        open_sets = [number[kernels] for kernels in chain or () if kernels and not bounds.is_exact[number[kernels]]]
        if not open_sets:
            return time_ns, chain
        for place in open_sets:
            bounds.settle(place)


class _Bounds:
    """Times of sets and arcs: exact ones of sets that are settled, lower bounds of the others."""

    def __init__(self, model: SetModel, arcs: Arcs) -> None:
        self._model = model
        self._arcs = arcs
        # Found once for all pipelines and micro-batches.
        limits = arcs.limits_of(b"bounds" + (model.tile_key or b""), partial(least_limits, model))
        self._compute_ns, self._crossing = limits.compute_ns.copy(), limits.crossing
        self._times = set_times(model, arcs.members, limits)
        self.is_exact = np.zeros(len(arcs.members), bool)
        self.arc_times = arc_times(model, arcs, limits)

    def settle(self, place: int) -> None:
        """Find the time of a set, and raise those of larger sets: no kernel is faster with more beside it."""
        members = self._arcs.members
        row = members[place]
        before_ns = self._compute_ns[place]
        exact = set_limits(self._model, members[place : place + 1])
        self.is_exact[place] = True
        changed = [place]
        self._set_times(np.array([place]), set_times(self._model, members[place : place + 1], exact))
        whole_ns = self._model.tile_compute_ns(members[place : place + 1])[0]
        if before_ns < whole_ns < np.inf:  # where it is infinite larger sets are impossible already
            larger = np.flatnonzero(
                members[:, row].all(axis=1) & (self._compute_ns < whole_ns) & ~self.is_exact
            )  # fmt: skip
            self._compute_ns[larger] = whole_ns
            changed += larger.tolist()
            limits = SetLimits(np.ones(len(larger), np.int64), self._crossing[larger], self._compute_ns[larger])
            self._set_times(larger, set_times(self._model, members[larger], limits))
        is_changed = np.zeros(len(members), bool)
        is_changed[changed] = True
        found = np.flatnonzero(is_changed[self._arcs.added] & np.isfinite(self.arc_times))
        self.arc_times[found] = self._times[self._arcs.added[found]]

    def _set_times(self, rows: npt.NDArray[np.intp], times: Column) -> None:
        """Never lower a bound: sums in another order differ in the last digit."""
        self._times[rows] = np.maximum(self._times[rows], times)
