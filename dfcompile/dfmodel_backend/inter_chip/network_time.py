"""Time that the chips of a design spend exchanging, for many configurations at once [ko24, section 4]."""

from collections.abc import Mapping
from typing import assert_never

import numpy as np
from msgspec import Struct

from dfcompile.dfmodel_backend.columns import Column
from dfcompile.dfmodel_backend.compatibility import Compatibility
from dfcompile.dfmodel_backend.inter_chip.degrees import Degrees
from dfcompile.dfmodel_backend.machine.machine import Collective, Link
from dfcompile.dfmodel_backend.machine.network.collective_times import (
    all_reduce_latency_ns,
    all_to_all_ns_per_byte,
    domain_ns_per_byte,
    everywhere_ns_per_byte,
    exchange_ns_per_byte,
    ns_per_byte,
)
from dfcompile.dfmodel_backend.machine.network.topologies import topology
from dfcompile.dfmodel_backend.workload.design import Design, WorkloadKind
from dfcompile.records import replace


class Exchanged(Struct, frozen=True):
    """What configurations exchange, per tile; one entry per configuration."""

    sizes: Mapping[Collective, Column]  # bytes
    sequence_sizes: Mapping[Collective, Column]  # bytes, in the sequence parallel group
    reductions: Column  # how many all-reduces
    gathers: Column  # how many all-gathers and all-to-alls
    tiles: Column


class NetworkTime:
    """Times per byte on the network of a design."""

    def __init__(self, design: Design, degrees: Degrees, compatibility: Compatibility) -> None:
        self._design = design
        self._degrees = degrees
        self._compatibility = compatibility
        self._separate = design.execution.separate_reduce_scatter
        links = design.machine.links
        self._has_domain = design.machine.domain_chips > 0 and len(links) == 3
        self._tensor = self._ratios(degrees.tensor_link)
        self._sequence = self._ratios(degrees.sequence_link)
        self._latency_ns = self._hops_ns(compatibility, separate_phases=self._separate)
        once = replace(compatibility, all_reduce_factor=1)
        self._gather_ns = 0.0 if compatibility.gathers_without_latency else self._hops_ns(once, separate_phases=False)
        self._periodic_ns_per_byte = self._periodic_ratio()

    def times_ns(self, found: Exchanged, *, tensor_only: bool = False) -> Column:
        """Return the time of each configuration.

        With ``tensor_only`` it is a part that adds up over kernels: groups that exchange at the same time do not.
        """
        parts = self.parts_ns(found)
        if tensor_only:
            return parts[0]
        longest: Column = np.maximum.reduce(parts)
        return longest

    def parts_ns(self, found: Exchanged) -> tuple[Column, ...]:
        """Return the times of what is exchanged at the same time; each part adds up over kernels."""
        kind = self._design.execution.batch.kind
        periodic = found.sizes[Collective.ALL_REDUCE_PERIODIC] * self._periodic_ns_per_byte
        links = self._design.machine.links
        match kind:
            case WorkloadKind.LLM:
                tensor = self._group_ns(found, found.sizes, self._tensor) + found.reductions * self._latency_ns
                tensor = tensor + found.gathers * self._gather_ns
                if self._compatibility.network_is_sum:
                    return (tensor + periodic,)
                return (tensor, periodic, self._group_ns(found, found.sequence_sizes, self._sequence))
            case WorkloadKind.HPL:
                return (
                    found.sizes[Collective.POINT_TO_POINT] / links[0].gb_per_s,
                    found.sizes[Collective.BROADCAST] / links[-1].gb_per_s,
                )
            case WorkloadKind.DLRM | WorkloadKind.FFT:
                return (found.sizes[Collective.ALL_TO_ALL] * self._exchange_ns_per_byte() + periodic,)
        assert_never(kind)

    def ratio_ns_per_byte(self, collective: Collective) -> float:
        """Return the time per byte of a collective in the tensor parallel group."""
        return self._tensor.get(collective, 0.0)

    def _ratios(self, link: Link | None) -> dict[Collective, float]:
        wanted = (Collective.ALL_REDUCE, Collective.ALL_GATHER, Collective.ALL_TO_ALL)
        if link is None or link.chips <= 1:
            return dict.fromkeys(wanted, 0.0)
        ratios = {
            collective: ns_per_byte(
                collective, link, separate_phases=self._separate, compat=self._compatibility
            )
            for collective in wanted
        }  # fmt: skip
        if not self._compatibility.layouts_change_by_share:
            ratios[Collective.ALL_TO_ALL] = exchange_ns_per_byte(topology(link.shape), [link.chips], [link.gb_per_s])
        if self._has_domain and link is self._degrees.tensor_link:
            links = self._design.machine.links
            ratios[Collective.ALL_REDUCE] = domain_ns_per_byte(
                Collective.ALL_REDUCE,
                replace(links[1], chips=link.chips),
                links[0],
                self._design.machine.domain_chips,
                separate_phases=self._separate,
                compat=self._compatibility,
            )
        return ratios

    def _group_ns(
        self, found: Exchanged, sizes: Mapping[Collective, Column], ratios: dict[Collective, float]
    ) -> Column:
        total = np.zeros_like(found.tiles)
        for collective, ratio in ratios.items():
            if ratio and collective in sizes:
                total = total + sizes[collective] * ratio
        return total * found.tiles

    def latency_ns(self, collective: Collective) -> float:
        """Return the latency of the links that one collective in the tensor parallel group passes."""
        return self._latency_ns if collective is Collective.ALL_REDUCE else self._gather_ns

    def _hops_ns(self, compatibility: Compatibility, *, separate_phases: bool) -> float:
        link = self._degrees.tensor_link
        if link is None or link.chips <= 1 or self._is_hierarchical(link):
            return 0.0
        latency_ns = self._design.machine.link_latency_ns
        return all_reduce_latency_ns(link, latency_ns, separate_phases=separate_phases, compat=compatibility)

    def _is_hierarchical(self, link: Link) -> bool:
        return self._has_domain and self._design.machine.domain_chips < link.chips

    def _periodic_ratio(self) -> float:
        kind, links = self._design.execution.batch.kind, self._design.machine.links
        match kind:
            case WorkloadKind.LLM:
                return self._data_parallel_ratio()
            case WorkloadKind.DLRM | WorkloadKind.HPL | WorkloadKind.FFT:
                return everywhere_ns_per_byte(links, separate_phases=self._separate, compat=self._compatibility)
        assert_never(kind)

    def _data_parallel_ratio(self) -> float:
        links, link = self._design.machine.links, self._degrees.data_link
        if link is None or link.chips <= 1:
            return 0.0
        if self._has_domain:
            return domain_ns_per_byte(
                Collective.ALL_REDUCE_PERIODIC,
                links[2],
                links[0],
                self._design.machine.domain_chips,
                separate_phases=self._separate,
                compat=self._compatibility,
            )
        return ns_per_byte(
            Collective.ALL_REDUCE_PERIODIC, link, separate_phases=self._separate, compat=self._compatibility
        )

    def _exchange_ns_per_byte(self) -> float:
        """Return the time per byte that each chip sends to each other; recommendation models give one chip's sum."""
        links = self._design.machine.links
        ratio = all_to_all_ns_per_byte(
            topology(self._design.machine.topology),
            [link.chips for link in links],
            [link.gb_per_s for link in links],
            compat=self._compatibility,
        )
        is_sum = self._design.execution.batch.kind is WorkloadKind.DLRM
        return ratio / self._degrees.data if is_sum and not self._compatibility.all_to_all_as_given else ratio
