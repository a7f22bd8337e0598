"""What chips, and links between them, take and cost, from the description of a machine alone [ko24, sections 4, 5]."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType

from msgspec import Struct

from dfcompile.dfmodel_backend.compatibility import RIGHT, Compatibility
from dfcompile.dfmodel_backend.machine.network.dimension_kind import Figure
from dfcompile.dfmodel_backend.machine.network.topologies import topology
from dfcompile.dfmodel_backend.machine.system import Amount, Dimension, Network, System
from dfcompile.dfmodel_backend.workload.graph import ExchangeKind

PER_GIGA = 1e9
PER_S = 1e9  # ns


def on_chip(amount: Amount, system: System) -> float:
    """Return a figure of one chip, of all its cores where it is given per core."""
    return amount.value * (system.accelerator.cores if amount.per_core else 1)


def peak_flop_per_s(system: System) -> float:
    """Return the operations per second of one chip: two of each multiply-adder in each cycle."""
    chip = system.accelerator
    return 2 * chip.lanes_per_core * chip.stages_per_core * chip.cores * chip.frequency_ghz * PER_GIGA


def dram_bytes_per_ns(system: System) -> float:
    """Return the bandwidth of the DRAM of one chip."""
    return on_chip(system.dram.bandwidth, system)


def price_usd(system: System) -> float:
    """Return the price of all chips with their DRAM and network."""
    chip_usd = (
        on_chip(system.accelerator.price, system) + dram_bytes_per_ns(system) * system.dram.price_usd_per_gb_per_s
    )
    return system.chips * chip_usd + ChipNetwork(system.network).price_usd


def power_w(system: System) -> float:
    """Return the power of all chips with their DRAM and network."""
    chip_w = on_chip(system.accelerator.power, system) + dram_bytes_per_ns(system) * system.dram.power_w_per_gb_per_s
    return system.chips * chip_w + ChipNetwork(system.network).power_w


WIRED_ALONE = 4  # so many chips need no switch

Count = Callable[[int], float]


class _Wiring(Struct, frozen=True):
    """How N chips are joined along a dimension.

    Attributes:
        is_grid: whether every chip is joined along every dimension.
        paid_links: that are paid.
        switch_ports: that are paid; whether the dimension is not the innermost one is told, too.
        cut: links between two halves.
        ports: links of a chip.
        hops: links that a share passes on its way through all chips.
        gathered_shares: shares of 1/N of a tensor that the busiest link carries, until all chips have all.
        exchanged_messages: messages that it carries, if each chip sends one to each other.
    """

    is_grid: bool
    paid_links: Count
    switch_ports: Callable[[int, bool], float]
    cut: Count
    ports: Count
    hops: Count
    gathered_shares: Count
    exchanged_messages: Count


# Of a ring, a switch, and fully connected chips, in the order of `_Wiring`.
_COUNTS: Mapping[Figure, tuple[Callable[..., float], ...]] = MappingProxyType(
    {
        "paid_links": (lambda n: n, lambda n: n, lambda n: n * (n - 1)),
        "switch_ports": (lambda _, __: 2, lambda n, _: n, lambda n, is_outer: n * n * is_outer),
        "cut": (lambda _: 2, lambda n: n, lambda n: n * n / 4),
        "ports": (lambda _: 2, lambda _: 1, lambda n: n - 1),
        "hops": (lambda n: n - 1, lambda n: n - 1, lambda _: 1),
        "gathered_shares": (lambda n: n - 1, lambda n: n - 1, lambda _: 1),
        "exchanged_messages": (lambda n: n * n / 8, lambda n: n / 4, lambda _: 1),
    }
)
WIRINGS: Mapping[str, _Wiring] = MappingProxyType(
    {kind: _Wiring(kind == "r", *counts) for kind, *counts in zip(("r", "sw", "fc"), *_COUNTS.values(), strict=True)}
)


def _wiring_of(kind: str) -> _Wiring:
    """Return how a kind of dimension is wired; one of a plug-in as it declares."""
    if kind in WIRINGS:
        return WIRINGS[kind]
    (declared,) = topology(kind).kinds
    return _Wiring(declared.forms_grid, *(partial(declared.count, figure) for figure in _COUNTS))


class ChipNetwork:
    """The chips in use, all along the dimensions of their network."""

    def __init__(self, network: Network, copies: int = 1, compatibility: Compatibility = RIGHT) -> None:
        """Take the network of the chips in use.

        Args:
            network: of them.
            copies: of the workload, each with such a network of its own.
            compatibility: flaws of prices to repeat.
        """
        self._network, self._copies, self._compatibility = network, copies, compatibility
        self._dimensions: Sequence[Dimension] = network.dimensions
        self._wirings = [_wiring_of(kind) for kind in network.kind.split("_")] if network.dimensions else []
        self.chips = tuple(dimension.chips for dimension in network.dimensions)
        self.is_grid = all(wiring.is_grid for wiring in self._wirings)

    @property
    def price_usd(self) -> float:
        """Price of links and ports of switches."""
        network = self._network
        links = sum(links for links, _ in self._paid_gb_per_s())
        ports = sum(ports for _, ports in self._paid_gb_per_s())
        return links * network.link_price_usd_per_gb_per_s + ports * network.switch_price_usd_per_gb_per_s

    @property
    def power_w(self) -> float:
        """Power of links and ports of switches."""
        watts = 0.0
        for dimension, (links, ports) in zip(self._dimensions, self._paid_gb_per_s(), strict=True):
            watts += links * dimension.link_power_w_per_gb_per_s
            watts += ports * self._network.switch_power_w_per_gb_per_s
        return watts

    def _paid_gb_per_s(self) -> list[tuple[float, float]]:
        """Return what all links, and all ports of switches, of each dimension carry."""
        everyone, flaws = math.prod(self.chips), self._compatibility
        is_fourth_free = flaws.fourth_dimension_free and len(self.chips) == len("wxyz")
        found = []
        for place, (dimension, wiring) in enumerate(zip(self._dimensions, self._wirings, strict=True)):
            links = ports = 0.0
            is_paid = not (is_fourth_free and place == len(self.chips) - 1)
            if everyone > 1 and is_paid:
                links = self._groups(place, self.chips) * wiring.paid_links(dimension.chips)
            if everyone > WIRED_ALONE and is_paid:
                groups = self._groups(place, self.chips[:3] if is_fourth_free else self.chips)
                ports = groups * wiring.switch_ports(dimension.chips, place > 0)
            copies_of_links = copies_of_ports = self._copies
            if not place and flaws.innermost_links_of_all_copies and self._network.kind in ("r_sw", "sw_sw"):
                copies_of_links *= self._copies
                copies_of_ports *= self._copies if self._network.kind == "sw_sw" else 1
            carried = dimension.link_bandwidth_gb_per_s
            found.append((copies_of_links * links * carried, copies_of_ports * ports * carried))
        return found

    def _groups(self, place: int, chips: Sequence[int]) -> int:
        """Return how many groups there are along a dimension."""
        return math.prod(chips) // chips[place] if self.is_grid else math.prod(chips[place + 1 :])

    @property
    def received_gb_per_s(self) -> float:
        """What a chip gets at most, along all dimensions together, in whichever collective is fastest."""
        total = 0.0
        for dimension, wiring in zip(self._dimensions, self._wirings, strict=True):
            if dimension.chips > 1:
                others, bandwidth = dimension.chips - 1, dimension.link_bandwidth_gb_per_s
                gathered = others / wiring.gathered_shares(dimension.chips)
                total += bandwidth * max(gathered, others / wiring.exchanged_messages(dimension.chips))
        return total

    def step_ns(self, kind: ExchangeKind, place: int, size_bytes: int) -> float:
        """Return the time in which all groups along a dimension exchange.

        Args:
            kind: what they do.
            place: of the dimension; in a hierarchy bytes pass the inner dimensions, too.
            size_bytes: that pass.
        """
        return self._exchange_ns(kind, place if self.is_grid else 0, place, size_bytes)

    def together_ns(self, kind: ExchangeKind, size_bytes: int) -> float:
        """Return the time in which all chips exchange a tensor of so many bytes."""
        return self._exchange_ns(kind, 0, len(self.chips) - 1, size_bytes)

    def _exchange_ns(self, kind: ExchangeKind, first: int, last: int, size_bytes: int) -> float:
        places = range(first, last + 1)
        rounds = 2 if kind is ExchangeKind.ALL_REDUCE else 1
        passed = rounds * sum(self._wirings[place].hops(self.chips[place]) for place in places)
        latency_ns = passed * self._network.link_latency_ns
        if kind is ExchangeKind.ALL_TO_ALL:
            return size_bytes * self._exchanged_ns_per_byte(places) + latency_ns
        # The time per byte of a tensor until all chips have it; on a grid each dimension gets a share.
        time_ns, left = 0.0, 1.0
        is_grid = all(self._wirings[place].is_grid for place in places)
        for place in places:
            chips, bandwidth = self.chips[place], self._dimensions[place].link_bandwidth_gb_per_s
            time_ns += left * self._wirings[place].gathered_shares(chips) / chips / bandwidth
            left /= chips if is_grid else 1
        return size_bytes * rounds * time_ns + latency_ns

    def _exchanged_ns_per_byte(self, places: range) -> float:
        """Return the time per byte of a tensor of which each chip sends each other an equal part.

        Over the narrowest cut, or out of a chip's own links, whatever takes longer.
        """
        chips = [self.chips[place] for place in places]
        everyone, is_grid = math.prod(chips), all(self._wirings[place].is_grid for place in places)
        slowest, inside = 0.0, 1
        for place in places:
            count, wiring = self.chips[place], self._wirings[place]
            bandwidth = self._dimensions[place].link_bandwidth_gb_per_s
            inside *= count
            parted = everyone if is_grid else inside
            crossing = wiring.cut(count) * (everyone // count if is_grid else 1)
            slowest = max(slowest, parted**2 / 4 / crossing / bandwidth / everyone**2)
            slowest = max(slowest, (count - 1) / count / wiring.ports(count) / bandwidth / everyone)
        return slowest
