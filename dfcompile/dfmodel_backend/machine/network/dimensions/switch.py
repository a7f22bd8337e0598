"""Switches: each chip is joined to a switch."""

from dfcompile.dfmodel_backend.machine.network.dimension_kind import DimensionKind

SWITCH = DimensionKind(
    name="sw",
    description="switch",
    source="ko24",
    wires=lambda chips: [(chip, chips) for chip in range(chips)],
    forms_grid=False,
    ports=lambda _: 1,
    cut=lambda chips: chips,  # a port per chip: [ko24] counts those of both halves
    gathered_shares=lambda chips: chips - 1,
    exchanged_messages=lambda chips: chips / 4,
    hops=lambda chips: chips - 1,
    paid_links=lambda chips: chips,
    switch_ports=lambda chips, _is_outer: chips,
)
