"""Times of collectives from tables, and checks of what chips exchange; shares no formula with the evaluator [ko24].

Of kinds of dimensions that plug-ins add, and of other products of ours, nothing is known here but their links: what
crosses the narrowest cut takes at least so long, and that is what is found for them (`is_known` tells).
"""

import math
from collections.abc import Sequence

from dfcompile.dfmodel_backend.check.machines import WIRINGS
from dfcompile.dfmodel_backend.check.wiring import LeastLoads, least_loads
from dfcompile.dfmodel_backend.compatibility import RIGHT, Compatibility
from dfcompile.dfmodel_backend.machine.network.topologies import topology as topology_of
from dfcompile.dfmodel_backend.machine.system import Link, System
from dfcompile.dfmodel_backend.workload.exchange import Exchange, ExchangeKind
from dfcompile.dfmodel_backend.workload.graph import DataflowGraph
from dfcompile.errors import VerificationError

_RELATIVE = 1e-9
_KNOWN = frozenset(
    {"r", "sw", "fc", "r_r", "r_fc", "r_sw", "sw_sw", "fc_fc", "r_r_r", "r_sw_sw", "sw_sw_sw", "r_r_r_r"}
)


def _least(link: Link, chips: int) -> LeastLoads:
    """Return bounds of a group of another shape than those known here.

    Raises:
        VerificationError: its chips are not all joined.
    """
    (kind,) = topology_of(link.shape).kinds
    try:
        return least_loads(kind.wires_of(chips), chips)
    except ValueError as error:
        raise VerificationError(f"topology {link.shape!r} of {chips} chips: {error}") from error


def is_known(topology: str, links: Sequence[Link]) -> bool:
    """Return whether times of collectives of a network are those of tables; else they are bounded from below."""
    return topology in _KNOWN and all(link.shape in WIRINGS for link in links)


def exchange_ns_per_byte(topology: str, links: Sequence[Link], compatibility: Compatibility) -> float:
    """Return the time in which each chip of a network sends a byte to each other, by its narrowest cut."""
    chips = [link.chips for link in links]
    everyone = math.prod(chips)
    if everyone == 1 and not compatibility.lone_chip_communicates:
        return 0.0
    if topology not in _KNOWN:
        return _least_exchange_ns_per_byte(topology, links, compatibility)
    shapes = topology.split("_")
    is_torus = set(shapes) == {"r"}
    side_by_side = [everyone // count if is_torus else 1 for count in chips]  # groups along each dimension
    cuts = (WIRINGS[shape].cut(count) for shape, count in zip(shapes, chips, strict=True))
    crossing = [groups * cut for groups, cut in zip(side_by_side, cuts, strict=True)]
    if is_torus and compatibility.torus_bisection_of_other_dimension:
        crossing.reverse()
    if is_torus and len(chips) > 1 and compatibility.torus_bisection_halved:
        crossing = [links_cut / 2 for links_cut in crossing]
    if compatibility.fully_connected_bisection_of_all_links:
        pairs = [count * (count - 1) / 2 for count in chips]
        crossing = [pairs[d] if shapes[d] == "fc" else cut for d, cut in enumerate(crossing)]
    if shapes[-1] == "sw" and compatibility.outermost_bandwidth_quartered:
        crossing[-1] /= 4
    slowest = 0.0
    parted = 1
    for dimension, link in enumerate(links):
        parted *= link.chips
        if not crossing[dimension] or (link.chips == 1 and not compatibility.lone_chip_communicates):
            continue
        count = everyone if is_torus else parted
        messages = count * (count - 1) / 2 if compatibility.messages_of_all_pairs else count * count / 4
        slowest = max(slowest, messages / crossing[dimension] / link.gb_per_s)
    return slowest


def _least_exchange_ns_per_byte(topology: str, links: Sequence[Link], compatibility: Compatibility) -> float:
    """Return a time in which no chips of a network send each other a byte: by the cuts along each dimension."""
    shape = topology_of(topology)
    everyone = math.prod(link.chips for link in links)
    slowest, inner = 0.0, 1
    for kind, link in zip(shape.kinds, links, strict=True):
        messages = everyone // link.chips if shape.is_grid else inner**2  # for each one of a group alone
        inner *= link.chips
        if link.chips == 1 or (kind.name in WIRINGS and compatibility != RIGHT):
            continue  # flaws of networks that are not written down
        slowest = max(slowest, messages * _all_to_all_in_group(link) / link.gb_per_s)
    return slowest


def _all_to_all_in_group(link: Link) -> float:
    """Return how many messages the busiest link of a group carries, each chip sending one to each other."""
    if link.shape in WIRINGS:
        return WIRINGS[link.shape].exchanged_messages(link.chips)
    return _least(link, link.chips).exchanged_messages


def exchange_in_group(link: Link, *, by_share: bool) -> float:
    """Return the time per byte of an all-to-all, of a chip's share or of a whole tensor.

    Of a whole tensor a quarter crosses the middle of a ring, over two links; through a switch each chip sends all of
    its share but its own part; fully connected, each pair has a link for its part.
    """
    messages = link.chips - 1 if link.shape == "sw" and not by_share else _all_to_all_in_group(link)
    return messages / (1 if by_share else link.chips**2) / link.gb_per_s


def once_around(link: Link, chips: int) -> float:
    """Return the part of a tensor that a chip sends while it goes around once."""
    if link.shape in WIRINGS:
        return WIRINGS[link.shape].gathered_shares(chips) / chips
    return _least(link, chips).gathered_shares / chips if chips > 1 else 0.0


def hops(link: Link) -> float:
    """Return the links that a share of an all-gather passes, one after the other."""
    return WIRINGS[link.shape].hops(link.chips) if link.shape in WIRINGS else _least(link, link.chips).hops


def between_domains(far: Link, chips: int, domain: int) -> float:
    """Return the part of a tensor that a chip sends to other domains; of an unknown shape at least."""
    if far.shape in WIRINGS:
        return (1 if far.shape == "fc" else chips / domain - 1) / chips
    return once_around(far, chips // domain) * (chips // domain) / chips if chips % domain == 0 else 0.0


def check_exchanges(share: DataflowGraph, system: System) -> None:
    """Check the exchanges of a graph on several chips.

    Each takes as long as it must, moves no more than all chips could need, and is charged to the kernel that makes its
    tensor.

    Args:
        share: of the graph, what one chip has.
        system: with the chips in use.

    Raises:
        VerificationError: naming the kernel, found against expected.
        PluginError: the same, if the network has a dimension of a plug-in's kind.
    """
    shape = topology_of(system.network.kind)
    links = system.machine.links
    sources = {tensor.name: tensor.source for tensor in share.tensors}
    kernels = {kernel.name for kernel in share.kernels}
    with shape.faults():
        for exchange in share.exchanges:
            if sources.get(exchange.tensor) != exchange.source or exchange.source not in kernels:
                raise VerificationError(f"exchange of {exchange.tensor!r}: found source {exchange.source!r}")
            _check(exchange, [links[dimension] for dimension in exchange.dimensions], system)


def _check(exchange: Exchange, links: list[Link], system: System) -> None:
    # Of an all-gather each chip gets the shares of all others, of an exchange a part of each; a reduction is no faster
    # than an all-gather. Along each dimension of a grid many groups work side by side.
    name, group = "_".join(link.shape for link in links), math.prod(link.chips for link in links)
    is_grid = topology_of(name).is_grid
    around = (once_around(link, link.chips) / link.gb_per_s / (group // link.chips if is_grid else 1) for link in links)
    least = min(max(around), _least_exchange_ns_per_byte(name, links, RIGHT) / group**2)
    rounds = 2 if exchange.kind is ExchangeKind.ALL_REDUCE else 1
    hops = rounds * sum(link.chips > 1 for link in links)  # a link of each dimension, at least
    at_least_ns = exchange.message_bytes * least + hops * system.network.link_latency_ns
    where = f"kernel {exchange.source!r}: {exchange.kind} of {exchange.tensor!r}"
    if exchange.time_ns < at_least_ns * (1 - _RELATIVE):
        raise VerificationError(
            f"{where}: exchanges {exchange.message_bytes} bytes in {exchange.time_ns:g} ns "
            f"against at least {at_least_ns:g} over the narrowest cut"
        )
    most = exchange.message_bytes * rounds * (group - 1) * (system.chips // group)
    if not 0 < exchange.moved_bytes <= most:
        raise VerificationError(f"{where}: moves {exchange.moved_bytes} bytes against at most {most}")
