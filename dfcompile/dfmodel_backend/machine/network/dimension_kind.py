"""Kinds of dimensions of a network, our own below: how chips are wired, and what that makes of collectives.

Everything that is known of a kind stands in its value. Times follow from what the busiest link carries: a link takes
``1 / B`` ns per byte in each direction, with ``B`` its bandwidth in GB/s.
"""

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from itertools import combinations
from typing import Literal

from msgspec import Struct

from dfcompile.errors import VerificationError
from dfcompile.plugins import faults_of

Wires = Sequence[tuple[int, int]]  # ends of each link: chips are 0 … N - 1, switches are N and above
Figure = Literal[
    "ports", "cut", "gathered_shares", "exchanged_messages", "hops",
    "paid_links", "switch_ports", "sent_once", "broadcast",
]  # fmt: skip


def one_load(_chips: int) -> float:
    """Return the load of what is handed on from link to link, one behind the other."""
    return 1.0


class DimensionKind(Struct, frozen=True):
    """A kind of dimension; a module-level value of this type in a plug-in is found.

    Attributes:
        name: as in the name of a topology: of letters and digits, such as ``r`` in ``r_sw``.
        description: a few words, such as ``ring``.
        source: key of docs/references.md, or of the plug-in's own.
        wires: of a group of N chips, each link once; two links between the same ends are two entries.
        forms_grid: whether every chip of a network of such dimensions alone has links along all of them, as in a
            torus; else one chip of each inner group, its gateway, is part of the next dimension.
        ports: links of a chip, of N chips; those of the chip with the fewest.
        cut: links between two halves of N chips, where they are fewest.
        gathered_shares: of an all-gather of N chips, each of which has 1/N of a tensor: how many of these shares the
            busiest link carries in one direction. N may be a fraction: of groups of different sizes.
        exchanged_messages: of an all-to-all of N chips: how many messages from one chip to another the busiest link
            carries in one direction.
        hops: links that a share of an all-gather passes, one after the other.
        paid_links: of a group of N chips.
        switch_ports: that are paid for in a group of N chips, and whether it joins gateways of inner groups.
        sent_once: what the busiest link carries of a message from one chip to another, in messages.
        broadcast: what it carries of a message from one chip to all others, in messages.
    """

    name: str
    description: str
    source: str
    wires: Callable[[int], Wires]
    forms_grid: bool
    ports: Callable[[int], int]
    cut: Callable[[int], float]
    gathered_shares: Callable[[float], float]
    exchanged_messages: Callable[[int], float]
    hops: Callable[[int], int]
    paid_links: Callable[[int], int]
    switch_ports: Callable[[int, bool], int]
    sent_once: Callable[[int], float] = one_load
    broadcast: Callable[[int], float] = one_load

    def __post_init__(self) -> None:
        if not (self.name.isascii() and self.name.isalnum() and self.name.islower()):
            raise ValueError(f"topology {self.name!r}: found this name against small letters and digits alone")

    def __str__(self) -> str:
        return self.name

    @property
    def module(self) -> str:
        """Import path of the module that declares it."""
        return self.wires.__module__

    def wires_of(self, chips: int) -> Wires:
        """Return the links of a group of two chips or more.

        Raises:
            PluginError: a plug-in's wires raise, or join what is no chip and no switch.
        """
        with self.faults():
            found = tuple(self.wires(chips))
            for one, other in found:
                if one == other or min(one, other) < 0:
                    raise VerificationError(f"wires of {chips} chips: found a link from {one} to {other}")
            return found

    def count(self, what: Figure, chips: float, *more: object) -> float:
        """Return a figure of a group of chips, the one that a field of this name gives.

        Raises:
            PluginError: the plug-in raises, or the figure is no finite number of at least 0.
        """
        with self.faults():
            found = getattr(self, what)(chips, *more)
            if not isinstance(found, int | float) or not 0 <= found < math.inf:
                raise VerificationError(f"{what} of {chips} chips: found {found!r} against a number of at least 0")
            return found

    def all_gather_ns_per_byte(self, chips: int, gb_per_s: float) -> float:
        """Return the time per byte of the whole tensor, of which each chip has an equal share: all get all."""
        return self.count("gathered_shares", chips) / (chips * gb_per_s)

    def all_to_all_ns_per_byte(self, chips: int, gb_per_s: float) -> float:
        """Return the time per byte that each chip sends to each other."""
        return self.count("exchanged_messages", chips) / gb_per_s

    def faults(self) -> AbstractContextManager[None]:
        """Return a context in which what goes wrong is the fault of whoever declares the kind."""
        return faults_of("topology", f"{self.module}.{self.name}")


# Each chip is joined to its two neighbours.
RING = DimensionKind(
    name="r",
    description="ring",
    source="ko24",
    wires=lambda chips: [(chip, (chip + 1) % chips) for chip in range(chips)] if chips > 1 else [],
    forms_grid=True,
    ports=lambda _: 2,
    cut=lambda _: 2,
    gathered_shares=lambda chips: chips - 1,
    exchanged_messages=lambda chips: chips**2 / 8,  # a quarter of all chips² messages, over the two links of the cut
    hops=lambda chips: chips - 1,
    paid_links=lambda chips: chips,
    switch_ports=lambda _, _is_outer: 2,  # which close the ring
)

# Each chip is joined to a switch.
SWITCH = DimensionKind(
    name="sw",
    description="switch",
    source="ko24",
    wires=lambda chips: [(chip, chips) for chip in range(chips)],
    forms_grid=False,
    ports=lambda _: 1,
    cut=lambda chips: chips,  # a port per chip, of both halves: as [ko24] counts
    gathered_shares=lambda chips: chips - 1,
    exchanged_messages=lambda chips: chips / 4,
    hops=lambda chips: chips - 1,
    paid_links=lambda chips: chips,
    switch_ports=lambda chips, _is_outer: chips,
)

# Each chip is joined to every other chip.
FULLY_CONNECTED = DimensionKind(
    name="fc",
    description="fully connected",
    source="ko24",
    wires=lambda chips: list(combinations(range(chips), 2)),
    forms_grid=False,
    ports=lambda chips: chips - 1,
    cut=lambda chips: chips**2 / 4,
    gathered_shares=lambda _: 1,
    exchanged_messages=lambda _: 1,
    hops=lambda _: 1,
    paid_links=lambda chips: chips * (chips - 1),  # each is paid at both ends
    switch_ports=lambda chips, is_outer: chips * chips if is_outer else 0,  # a router at each gateway
)
