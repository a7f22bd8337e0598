"""The built-in kinds of network dimensions: ring, switch, fully connected group."""

from itertools import combinations

from dfcompile.dfmodel_backend.machine.network.dimension_kind import DimensionKind

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
