"""Rings: each chip is joined to the one before and the one behind."""

from dfcompile.dfmodel_backend.machine.network.dimension_kind import DimensionKind

RING = DimensionKind(
    name="r",
    description="ring",
    source="ko24",
    wires=lambda chips: [(chip, (chip + 1) % chips) for chip in range(chips)] if chips > 1 else [],
    forms_grid=True,
    ports=lambda _: 2,
    cut=lambda _: 2,
    gathered_shares=lambda chips: chips - 1,
    exchanged_messages=lambda chips: chips**2 / 8,  # a quarter of all messages over the two links of the cut
    hops=lambda chips: chips - 1,
    paid_links=lambda chips: chips,
    switch_ports=lambda _, _is_outer: 2,  # it is closed over two ports
)
