"""What the busiest link of a group of chips carries at least, from its links alone: bytes over the narrowest cut.

Knows no formula of a topology. Whatever way messages take, what must cross a cut crosses its links; each carries as
much in either direction at the same time.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations

from msgspec import Struct

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
