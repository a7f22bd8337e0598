"""Time that the chips of a design spend exchanging [ko24, section 4]."""

from collections.abc import Mapping
from functools import partial
from typing import assert_never

import numpy as np
from msgspec import Struct

from dfcompile.dfmodel_backend.columns import Column
from dfcompile.dfmodel_backend.compatibility import Compatibility
from dfcompile.dfmodel_backend.inter_chip.degrees import Degrees
from dfcompile.dfmodel_backend.machine.network import collective_times as times
from dfcompile.dfmodel_backend.machine.network.topologies import topology
from dfcompile.dfmodel_backend.machine.system import Collective, Link
from dfcompile.dfmodel_backend.workload.design import Design, WorkloadKind
from dfcompile.records import replace


class Exchanged(Struct, frozen=True):
    """What each kernel exchanges, with the edges that start at it; one entry per kernel."""

    sizes: Mapping[Collective, Column]  # bytes, of a tile but for what comes once a batch
    sequence_sizes: Mapping[Collective, Column]  # bytes of a tile, in the sequence parallel group
    reductions: Column  # how many all-reduces
    gathers: Column  # how many all-gathers and all-to-alls


class ExchangeNs(Struct, frozen=True):
    """Times of each kernel that add up over kernels: per tile, and whatever the number of tiles."""

    per_tile: Column
    once: Column


class NetworkTime:
    """Times per byte on the network of a design."""

    def __init__(self, design: Design, degrees: Degrees, compatibility: Compatibility) -> None:
        self._design = design
        self._degrees = degrees
        self._compatibility = compatibility
        separate = design.execution.separate_reduce_scatter
        self._ns_per_byte = partial(times.ns_per_byte, separate_phases=separate, compat=compatibility)
        self._domain_ns_per_byte = partial(
            times.domain_ns_per_byte,
            innermost=design.machine.links[0],
            domain_chips=design.machine.domain_chips,
            separate_phases=separate,
            compat=compatibility,
        )
        self._has_domain = design.machine.domain_chips > 0 and len(design.machine.links) == 3
        self._tensor = self._ratios(degrees.tensor_link)
        self._sequence = self._ratios(degrees.sequence_link)
        self._latency_ns = self._hops_ns(compatibility, separate_phases=separate)
        once = replace(compatibility, all_reduce_factor=1)
        self._gather_ns = 0.0 if compatibility.gathers_without_latency else self._hops_ns(once, separate_phases=False)
        self._periodic_ns_per_byte = self._periodic_ratio()

    def parts(self, found: Exchanged) -> tuple[ExchangeNs, ...]:
        """Return the times of what is exchanged at the same time."""
        kind, links = self._design.execution.batch.kind, self._design.machine.links
        nothing = np.zeros_like(found.reductions)
        periodic = found.sizes[Collective.ALL_REDUCE_PERIODIC] * self._periodic_ns_per_byte
        if kind is WorkloadKind.LLM:
            latency = found.reductions * self._latency_ns + found.gathers * self._gather_ns
            tensor = nothing + sum(found.sizes[one] * ratio for one, ratio in self._tensor.items())
            if self._compatibility.network_is_sum:
                return (ExchangeNs(tensor, latency + periodic),)
            along = nothing + sum(size * self._sequence[one] for one, size in found.sequence_sizes.items())
            return ExchangeNs(tensor, latency), ExchangeNs(nothing, periodic), ExchangeNs(along, nothing)
        if kind is WorkloadKind.HPL:
            handed = found.sizes[Collective.POINT_TO_POINT] / links[0].gb_per_s
            spread = found.sizes[Collective.BROADCAST] / links[-1].gb_per_s
            return ExchangeNs(nothing, handed), ExchangeNs(nothing, spread)
        machine, compatibility = self._design.machine, self._compatibility
        chips, gb_per_s = [link.chips for link in links], [link.gb_per_s for link in links]
        exchange_ns = times.all_to_all_ns_per_byte(topology(machine.topology), chips, gb_per_s, compat=compatibility)
        if kind is WorkloadKind.DLRM and not compatibility.all_to_all_as_given:  # a file gives the sum of one chip
            exchange_ns /= self._degrees.data
        return (ExchangeNs(nothing, found.sizes[Collective.ALL_TO_ALL] * exchange_ns + periodic),)

    def ratio_ns_per_byte(self, collective: Collective) -> float:
        """Return the time per byte of a collective in the tensor parallel group."""
        return self._tensor.get(collective, 0.0)

    def _ratios(self, link: Link | None) -> dict[Collective, float]:
        wanted = (Collective.ALL_REDUCE, Collective.ALL_GATHER, Collective.ALL_TO_ALL)
        if link is None or link.chips <= 1:
            return dict.fromkeys(wanted, 0.0)
        ratios = {collective: self._ns_per_byte(collective, link) for collective in wanted}
        if not self._compatibility.layouts_change_by_share:
            ratios[Collective.ALL_TO_ALL] = times.exchange_ns_per_byte(
                topology(link.shape), [link.chips], [link.gb_per_s]
            )
        if self._has_domain and link is self._degrees.tensor_link:
            between = replace(self._design.machine.links[1], chips=link.chips)
            ratios[Collective.ALL_REDUCE] = self._domain_ns_per_byte(Collective.ALL_REDUCE, between)
        return ratios

    def latency_ns(self, collective: Collective) -> float:
        """Return the latency of the links that one collective in the tensor parallel group passes."""
        return self._latency_ns if collective is Collective.ALL_REDUCE else self._gather_ns

    def _hops_ns(self, compatibility: Compatibility, *, separate_phases: bool) -> float:
        machine, link = self._design.machine, self._degrees.tensor_link
        if link is None or link.chips <= 1 or (self._has_domain and machine.domain_chips < link.chips):
            return 0.0
        return times.all_reduce_latency_ns(
            link, machine.link_latency_ns, separate_phases=separate_phases, compat=compatibility
        )  # fmt: skip

    def _periodic_ratio(self) -> float:
        """Return the time per byte of the all-reduce of gradients."""
        execution, link = self._design.execution, self._degrees.data_link
        match execution.batch.kind:
            case WorkloadKind.LLM:
                if link is None or link.chips <= 1:
                    return 0.0
                per_byte = self._domain_ns_per_byte if self._has_domain else self._ns_per_byte
                return per_byte(Collective.ALL_REDUCE_PERIODIC, link)
            case WorkloadKind.DLRM | WorkloadKind.HPL | WorkloadKind.FFT:
                separate, links = execution.separate_reduce_scatter, self._design.machine.links
                return times.everywhere_ns_per_byte(links, separate_phases=separate, compat=self._compatibility)
        assert_never(execution.batch.kind)
