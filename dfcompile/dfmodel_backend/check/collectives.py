"""Times of collectives from tables, and checks of what chips exchange; shares no formula with the evaluator [ko24].

Of kinds of dimensions that plug-ins add, and of other products of ours, nothing is known here but their links: what
crosses the narrowest cut takes at least so long, and that is what is found for them (`is_known` tells). Whatever way
messages take, what must cross a cut crosses its links; each carries as much in either direction at the same time.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations

from msgspec import Struct

from dfcompile.dfmodel_backend.check.machines import WIRINGS
from dfcompile.dfmodel_backend.compatibility import RIGHT, Compatibility
from dfcompile.dfmodel_backend.machine.network.topologies import topology as topology_of
from dfcompile.dfmodel_backend.machine.system import Link, System
from dfcompile.dfmodel_backend.workload.graph import DataflowGraph, Exchange, ExchangeKind
from dfcompile.errors import VerificationError

Wires = Sequence[tuple[int, int]]  # ends of each link: chips are 0 … N - 1, switches are N and above
Ends = list[list[int]]  # of each chip: the chips and switches at the other ends of its links

EVERY_CUT = 10  # chips of a group of which every cut is tried; of larger ones single chips and runs of first chips


class LeastLoads(Struct, frozen=True):
    """What the busiest link of a group carries in one direction, at least.

    Attributes:
        gathered_shares: of an all-gather, in shares of 1/N of the tensor.
        reduced_shares: of an all-reduce, a reduce-scatter and an all-gather, in the same shares [patarasuk09].
        exchanged_messages: of an all-to-all, in messages from one chip to another.
        hops: from chip to chip between two that are farthest apart; switches between two chips are one hop.
        links: of the group.
        ends: links of all chips, those between two chips twice.
        ports: links of the chip with the fewest.
        cut: links between two halves of the group, at most; all of an odd number of chips.
    """

    gathered_shares: float
    reduced_shares: float
    exchanged_messages: float
    hops: int
    links: int
    ends: int
    ports: int
    cut: int


def least_loads(wires: Wires, chips: int) -> LeastLoads:
    """Return bounds of a group of two chips or more.

    Raises:
        ValueError: a chip cannot be reached from another one.
    """
    ends = _ends(wires, chips)
    ports = [len(others) for others in ends]
    hops = _farthest(ends)
    gathered = exchanged = reduced = 0.0
    halves = len(wires)
    for count, crossed in _cuts(ends):
        gathered = max(gathered, max(count, chips - count) / crossed)
        reduced = max(reduced, chips / crossed)  # the sums of either side
        exchanged = max(exchanged, count * (chips - count) / crossed)
        if 2 * count == chips:
            halves = min(halves, crossed)
    sent = 2 * (chips - 1) * chips / sum(ports)  # each sends 2 (N - 1) / N of the tensor on average
    reduced = max(reduced, gathered, sent)
    return LeastLoads(gathered, reduced, exchanged, hops, len(wires), sum(ports), min(ports), halves)


def _ends(wires: Wires, chips: int) -> Ends:
    """Return what each chip is joined to; switches that are joined to each other are one, which parts no chips."""
    same: dict[int, int] = {}

    def switch(end: int) -> int:
        while end in same:
            end = same[end]
        return end

    for one, other in wires:
        if min(one, other) >= chips and switch(one) != switch(other):
            same[switch(one)] = switch(other)
    ends: Ends = [[] for _ in range(chips)]
    for wire in wires:
        for one, other in (wire, wire[::-1]):
            if one < chips:
                ends[one].append(switch(other))
    return ends


def _cuts(ends: Ends) -> Iterator[tuple[int, int]]:
    """Yield cuts: how many chips are on one side, and how many links cross."""
    chips = range(len(ends))
    if len(chips) <= EVERY_CUT:
        for count in range(1, len(chips) // 2 + 1):
            for inside in combinations(chips, count):
                *_, crossed = _growing(ends, inside)
                yield count, crossed
        return
    for others in ends:
        yield 1, len(others)
    yield from list(enumerate(_growing(ends, chips), 1))[:-1]


def _growing(ends: Ends, inside: Sequence[int]) -> Iterator[int]:
    """Yield how many links part the first one, two, … of some chips from all others.

    A switch stands on the side to which most of its links go.
    """
    chips = len(ends)
    to_switch = Counter(other for others in ends for other in others if other >= chips)
    of_inside = dict.fromkeys(to_switch, 0)
    taken: set[int] = set()
    direct = through = 0
    for chip in inside:
        taken.add(chip)
        for other in ends[chip]:
            if other < chips:
                direct += -1 if other in taken else 1
                continue
            through -= min(of_inside[other], to_switch[other] - of_inside[other])
            of_inside[other] += 1
            through += min(of_inside[other], to_switch[other] - of_inside[other])
        yield direct + through


def _farthest(ends: Ends) -> int:
    chips = len(ends)
    joined: dict[int, list[int]] = {}
    for chip, others in enumerate(ends):
        for other in others:
            if other >= chips:
                joined.setdefault(other, []).append(chip)
    neighbours = [sorted({chip for other in others for chip in joined.get(other, (other,))}) for others in ends]
    return max(_hops_from(start, neighbours) for start in range(chips))


def _hops_from(start: int, neighbours: Sequence[Sequence[int]]) -> int:
    reached, front, hops = {start}, {start}, 0
    while front := {other for chip in front for other in neighbours[chip]} - reached:
        reached |= front
        hops += 1
    for chip in range(len(neighbours)):
        if chip not in reached:
            raise ValueError(f"found no way from chip {start} to chip {chip} over its links")
    return hops


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
