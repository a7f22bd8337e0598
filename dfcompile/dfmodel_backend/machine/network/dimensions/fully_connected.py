"""Fully connected groups: each chip is joined to each other one."""

from itertools import combinations

from dfcompile.dfmodel_backend.machine.network.dimension_kind import DimensionKind

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
