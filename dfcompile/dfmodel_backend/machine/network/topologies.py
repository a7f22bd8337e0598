"""The twelve network topologies: shape of each dimension, and the links and switches that it takes [ko24]."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum, unique
from types import MappingProxyType

from dfcompile.dfmodel_backend.compatibility import RIGHT, Compatibility
from dfcompile.dfmodel_backend.machine.system import Network
from dfcompile.errors import UserError, nearest

SWITCHLESS_CHIPS = 4  # so many chips are wired to each other without a switch


@unique
class DimensionKind(StrEnum):
    """How the chips of one group along a dimension are wired."""

    RING = "r"
    SWITCH = "sw"
    FULLY_CONNECTED = "fc"


@dataclass(frozen=True, slots=True)
class Topology:
    """Shapes of the dimensions, innermost first."""

    name: str
    kinds: tuple[DimensionKind, ...]
    description: str

    @property
    def is_torus(self) -> bool:
        """Whether all dimensions are rings, so that every chip has links along every dimension.

        Otherwise only one chip of each inner group, its gateway, is part of the next dimension.
        """
        return all(kind is DimensionKind.RING for kind in self.kinds)


def _topology(name: str, description: str) -> Topology:
    return Topology(name, tuple(DimensionKind(kind) for kind in name.split("_")), description)


TOPOLOGIES: Mapping[str, Topology] = MappingProxyType(
    {
        shape.name: shape
        for shape in (
            _topology("r", "ring"),
            _topology("sw", "one switch"),
            _topology("fc", "fully connected"),
            _topology("r_r", "two-dimensional torus"),
            _topology("r_fc", "rings, fully connected (ZionEX)"),
            _topology("r_sw", "rings behind a switch (DGX-1)"),
            _topology("sw_sw", "switches behind a switch (DGX-2)"),
            _topology("fc_fc", "dragonfly"),
            _topology("r_r_r", "three-dimensional torus"),
            _topology("r_sw_sw", "DGX-1 behind one more level of switches"),
            _topology("sw_sw_sw", "three levels of switches, a fat tree"),
            _topology("r_r_r_r", "four-dimensional torus"),
        )
    }
)


def topology(name: str) -> Topology:
    """Return the topology of that name.

    Raises:
        UserError: there is none.
    """
    if name not in TOPOLOGIES:
        raise UserError(f"topology {name!r}: unknown{nearest(name, TOPOLOGIES)}")
    return TOPOLOGIES[name]


@dataclass(frozen=True, slots=True)
class NetworkUnits:
    """What is paid for, per dimension, over all copies of the workload: bandwidth summed over links and ports."""

    link_gb_per_s: tuple[float, ...]
    switch_gb_per_s: tuple[float, ...]


def network_units(
    shape: Topology,
    chips: Sequence[int],
    gb_per_s: Sequence[float],
    *,
    copies: int = 1,
    compat: Compatibility = RIGHT,
) -> NetworkUnits:
    """Return the bandwidth of all links and of all switch ports along each dimension [ko24, section 5].

    Args:
        shape: of the network.
        chips: in a group, per dimension, innermost first; their product is one copy of the workload.
        gb_per_s: of one link, per dimension.
        copies: of the workload, each with a network of its own.
        compat: flaws to repeat.

    Raises:
        UserError: not one extent and one bandwidth per dimension, or one that is not positive.
    """
    _check_dimensions(shape, chips, gb_per_s, copies)
    total = math.prod(chips)
    paid = len(chips) - (compat.fourth_dimension_free and len(chips) == 4)
    links, switches = [0.0] * len(chips), [0.0] * len(chips)
    for dimension in range(paid):
        times = copies
        if dimension == 0 and compat.innermost_links_of_all_copies and shape.name in ("r_sw", "sw_sw"):
            times *= copies
        if total > 1:
            links[dimension] = _links(shape, chips, dimension) * gb_per_s[dimension] * times
        if total > SWITCHLESS_CHIPS:
            counted = chips[:3] if paid < len(chips) else chips
            # The doubly counted chips are those behind switches; ports of rings are counted per copy.
            times = times if shape.kinds[dimension] is DimensionKind.SWITCH else copies
            switches[dimension] = _ports(shape, counted, dimension) * gb_per_s[dimension] * times
    return NetworkUnits(tuple(links), tuple(switches))


def _links(shape: Topology, chips: Sequence[int], dimension: int) -> int:
    """Each chip (or gateway) has one link per ring or switch, and one to each other chip of a full group."""
    if shape.is_torus:
        return math.prod(chips)
    ends = math.prod(chips[dimension:])
    return ends * (chips[dimension] - 1) if shape.kinds[dimension] is DimensionKind.FULLY_CONNECTED else ends


def _ports(shape: Topology, chips: Sequence[int], dimension: int) -> int:
    """A ring is closed over two ports, a switch has one per chip; a full group of gateways has a router at each."""
    kind = shape.kinds[dimension]
    if kind is DimensionKind.RING:
        return 2 * (math.prod(chips) // chips[dimension])
    ends = math.prod(chips[dimension:])
    if kind is DimensionKind.SWITCH:
        return ends
    return ends * chips[dimension] if dimension > 0 else 0


def network_cost_usd(network: Network, *, copies: int = 1, compat: Compatibility = RIGHT) -> float:
    """Return the price of links and switches; a machine of one chip has none."""
    if not network.dimensions:
        return 0.0
    units = _units_of(network, copies, compat)
    links = sum(units.link_gb_per_s) * network.link_price_usd_per_gb_per_s
    return links + sum(units.switch_gb_per_s) * network.switch_price_usd_per_gb_per_s


def network_power_w(network: Network, *, copies: int = 1, compat: Compatibility = RIGHT) -> float:
    """Return the power of links and switches; a machine of one chip has none."""
    if not network.dimensions:
        return 0.0
    units = _units_of(network, copies, compat)
    links = sum(
        unit * dimension.link_power_w_per_gb_per_s
        for unit, dimension in zip(units.link_gb_per_s, network.dimensions, strict=True)
    )
    return links + sum(units.switch_gb_per_s) * network.switch_power_w_per_gb_per_s


def _units_of(network: Network, copies: int, compat: Compatibility) -> NetworkUnits:
    chips = [dimension.chips for dimension in network.dimensions]
    gb_per_s = [dimension.link_bandwidth_gb_per_s for dimension in network.dimensions]
    return network_units(topology(network.kind), chips, gb_per_s, copies=copies, compat=compat)


def _check_dimensions(shape: Topology, chips: Sequence[int], gb_per_s: Sequence[float], copies: int) -> None:
    for what, given in (("extents", len(chips)), ("link bandwidths", len(gb_per_s))):
        if given != len(shape.kinds):
            raise UserError(f"topology {shape.name!r}: found {given} {what} against {len(shape.kinds)} dimensions")
    for what, values in (("chips", chips), ("GB/s per link", gb_per_s), ("copies", (copies,))):
        for value in values:
            if value <= 0:
                raise UserError(f"topology {shape.name!r}: found {value} {what} against more than 0")
