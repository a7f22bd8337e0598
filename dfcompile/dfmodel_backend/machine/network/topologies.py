"""Topologies of networks, each a product of dimensions, and the links and switches that they take [ko24]."""

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cache

from msgspec import Struct

from dfcompile.dfmodel_backend.compatibility import RIGHT, Compatibility
from dfcompile.dfmodel_backend.machine.network.dimension_kind import RING, SWITCH, DimensionKind
from dfcompile.dfmodel_backend.machine.system import Network
from dfcompile.errors import UserError
from dfcompile.plugins import Collected, PluginKind, is_own, missing

SWITCHLESS_CHIPS = 4  # so many chips are wired to each other without a switch
MOST_DIMENSIONS = 4

DIMENSION_KINDS = PluginKind(
    "topology",
    DimensionKind,
    "dfcompile.dfmodel_backend.machine.network.dimension_kind",
    "dfcompile.topologies",
    plural="topologies",
)


class Topology(Struct, frozen=True):
    """Kinds of the dimensions, innermost first."""

    kinds: tuple[DimensionKind, ...]

    @property
    def name(self) -> str:
        """Names of the kinds, innermost first, such as ``r_sw``."""
        return "_".join(kind.name for kind in self.kinds)

    @property
    def is_grid(self) -> bool:
        """Whether every chip has links along every dimension, as in a torus.

        Otherwise only one chip of each inner group, its gateway, is part of the next dimension.
        """
        return all(kind.forms_grid for kind in self.kinds)

    @property
    def is_torus(self) -> bool:
        """Whether all dimensions are rings."""
        return all(kind is RING for kind in self.kinds)

    def faults(self) -> AbstractContextManager[None]:
        """Return a context in which what goes wrong is the fault of the first kind that is not ours, if any."""
        return next((kind for kind in self.kinds if not is_own(kind.module)), self.kinds[0]).faults()

    def groups(self, chips: Sequence[int], dimension: int) -> int:
        """Return how many groups there are along a dimension."""
        if self.is_grid:
            return math.prod(chips) // chips[dimension]
        return math.prod(chips[dimension + 1 :])


@cache
def dimension_kinds() -> Collected[DimensionKind]:
    """Return every kind of dimension: our own and those of installed plug-ins.

    Raises:
        RegistrationError: two modules claim one name.
    """
    return DIMENSION_KINDS.collect()


def topology(name: str) -> Topology:
    """Return the topology of that name: known kinds of dimensions, innermost first.

    Raises:
        UserError: a dimension is of no known kind, or there are too many of them.
    """
    known = dimension_kinds()
    names = name.split("_")
    for kind in names:
        if kind not in known.by_name:
            where = f" has a dimension {kind!r}, which is" if len(names) > 1 else ""
            raise UserError(f"topology {name!r}:{where} unknown{missing(kind, known.by_name, known.faults)}")
    if len(names) > MOST_DIMENSIONS:
        raise UserError(f"topology {name!r}: found {len(names)} dimensions against at most {MOST_DIMENSIONS}")
    return Topology(tuple(known.by_name[kind] for kind in names))


class NetworkUnits(Struct, frozen=True):
    """What is paid for, per dimension, over all copies of the workload: bandwidth summed over links and ports."""

    link_gb_per_s: tuple[float, ...]
    switch_gb_per_s: tuple[float, ...]


def network_units(
    shape: Topology, chips: Sequence[int], gb_per_s: Sequence[float], *, copies: int = 1, compat: Compatibility = RIGHT
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
    for what, given in (("extents", len(chips)), ("link bandwidths", len(gb_per_s))):
        if given != len(shape.kinds):
            raise UserError(f"topology {shape.name!r}: found {given} {what} against {len(shape.kinds)} dimensions")
    for what, values in (("chips", chips), ("GB/s per link", gb_per_s), ("copies", (copies,))):
        for value in values:
            if value <= 0:
                raise UserError(f"topology {shape.name!r}: found {value} {what} against more than 0")
    total = math.prod(chips)
    paid = len(chips) - (compat.fourth_dimension_free and len(chips) == 4)
    links, switches = [0.0] * len(chips), [0.0] * len(chips)
    for dimension in range(paid):
        times = copies
        if dimension == 0 and compat.innermost_links_of_all_copies and shape.name in ("r_sw", "sw_sw"):
            times *= copies
        kind = shape.kinds[dimension]
        if total > 1:
            paid_links = shape.groups(chips, dimension) * kind.count("paid_links", chips[dimension])
            links[dimension] = paid_links * gb_per_s[dimension] * times
        if total > SWITCHLESS_CHIPS:
            counted = chips[:3] if paid < len(chips) else chips
            # The doubly counted chips are those behind switches; ports of rings are counted per copy.
            times = times if kind is SWITCH else copies
            ports = kind.count("switch_ports", counted[dimension], dimension > 0)
            switches[dimension] = shape.groups(counted, dimension) * ports * gb_per_s[dimension] * times
    return NetworkUnits(tuple(links), tuple(switches))


def network_cost_usd(network: Network, *, copies: int = 1, compat: Compatibility = RIGHT) -> float:
    """Return the price of links and switches; a machine of one chip has none."""
    units = _units_of(network, copies, compat)
    links = sum(units.link_gb_per_s) * network.link_price_usd_per_gb_per_s
    return links + sum(units.switch_gb_per_s) * network.switch_price_usd_per_gb_per_s


def network_power_w(network: Network, *, copies: int = 1, compat: Compatibility = RIGHT) -> float:
    """Return the power of links and switches; a machine of one chip has none."""
    units = _units_of(network, copies, compat)
    links = sum(
        unit * dimension.link_power_w_per_gb_per_s
        for unit, dimension in zip(units.link_gb_per_s, network.dimensions, strict=True)
    )
    return links + sum(units.switch_gb_per_s) * network.switch_power_w_per_gb_per_s


def _units_of(network: Network, copies: int, compat: Compatibility) -> NetworkUnits:
    if not network.dimensions:
        return NetworkUnits((), ())
    chips = [dimension.chips for dimension in network.dimensions]
    gb_per_s = [dimension.link_bandwidth_gb_per_s for dimension in network.dimensions]
    return network_units(topology(network.kind), chips, gb_per_s, copies=copies, compat=compat)
