"""The chips that share the kernels of a model: a part of a network, of any number of dimensions."""

from collections.abc import Iterator

from msgspec import Struct

from dfcompile.dfmodel_backend.machine.machine import Collective, Link
from dfcompile.dfmodel_backend.machine.network.all_to_all import exchange_ns_per_byte
from dfcompile.dfmodel_backend.machine.network.collective_times import all_reduce_latency_ns, ns_per_byte
from dfcompile.dfmodel_backend.machine.network.topologies import Topology, topology
from dfcompile.dfmodel_backend.machine.system import System


class TensorGroup(Struct, frozen=True):
    """All chips of a system as one tensor parallel group.

    Attributes:
        shape: of the network.
        links: one per dimension, innermost first.
        link_latency_ns: of one hop.
    """

    shape: Topology
    links: tuple[Link, ...]
    link_latency_ns: float

    @staticmethod
    def of(system: System) -> "TensorGroup":
        """Return the group of all chips of a system of several."""
        machine = system.machine
        return TensorGroup(topology(machine.topology), machine.links, machine.link_latency_ns)

    @property
    def chips(self) -> tuple[int, ...]:
        """Chips along each dimension, innermost first."""
        return tuple(link.chips for link in self.links)

    def time_ns(self, collective: Collective, size_bytes: float) -> float:
        """Return the time of a collective on a whole tensor.

        All-reduces (a reduce-scatter and an all-gather) and all-gathers go dimension by dimension: on a grid each
        chip takes its share of what the inner dimensions left on to the next one, ``sum_d r_d / (N_0 ... N_(d-1))``
        per byte; in a hierarchy the whole tensor passes the gateway of each inner group. An exchange among all is
        bound by the narrowest cut.
        """
        per_byte, latency_ns = self.cost(collective)
        return size_bytes * per_byte + latency_ns

    def cost(self, collective: Collective) -> tuple[float, float]:
        """Return the time per byte of a whole tensor, and the latency of the hops."""
        if collective is Collective.NONE:
            return 0.0, 0.0
        # An all-reduce goes around twice, as a scatter and a gather; everything else passes each link on its way once.
        separate_phases = collective is Collective.ALL_REDUCE
        latency_ns = sum(
            all_reduce_latency_ns(link, self.link_latency_ns, separate_phases=separate_phases) for link in self.links
        )
        if collective is Collective.ALL_TO_ALL:
            chips = [link.chips for link in self.links]
            return exchange_ns_per_byte(self.shape, chips, [link.gb_per_s for link in self.links]), latency_ns
        per_byte = sum(
            ns_per_byte(collective, link, separate_phases=True) * share
            for link, share in zip(self.links, self._shares(), strict=True)
        )
        return per_byte, latency_ns

    def _shares(self) -> Iterator[float]:
        """Yield the part of a tensor that a chip exchanges along each dimension."""
        share = 1.0
        for link in self.links:
            yield share
            share /= link.chips if self.shape.is_grid else 1
