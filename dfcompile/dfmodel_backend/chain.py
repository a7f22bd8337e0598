"""Arcs between down-sets: which configurations are possible and what they cost."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from dfcompile.dfmodel_backend.configuration import ConfigurationModel
from dfcompile.dfmodel_backend.down_sets import DownSets, list_down_sets


@dataclass(frozen=True, slots=True)
class Arc:
    """A configuration: the kernels between two down-sets."""

    before: int
    after: int
    time_ns: float


@dataclass(frozen=True)
class ChainSpace:
    """All chains of down-sets that keep every limit of the chip."""

    model: ConfigurationModel
    down_sets: DownSets

    @cached_property
    def _time_ns(self) -> dict[int, float | None]:
        return {}

    def time_ns(self, kernels: int) -> float | None:
        """Return the time of a configuration, computed once."""
        known = self._time_ns
        if kernels not in known:
            known[kernels] = self.model.time_ns(kernels)
        return known[kernels]

    def arcs_from(self, before: int) -> Iterator[Arc]:
        """Yield the possible configurations after a down-set, smaller ones first."""
        most = min(self.model.system.accelerator.cores, len(self.model.workload.kernels))
        for after in self.down_sets.supersets(before, most, self.model.may_grow):
            kernels = after ^ before
            time_ns = self.time_ns(kernels)
            if time_ns is not None and self.model.fits_dram(before, kernels):
                yield Arc(before, after, time_ns)


def chain_space(model: ConfigurationModel) -> ChainSpace | None:
    """Return the space of a workload, or None if it has more down-sets than the options allow."""
    found = list_down_sets(model.workload.predecessors, model.options.max_down_sets)
    return None if found is None else ChainSpace(model, found)
