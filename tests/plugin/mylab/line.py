"""A topology: chips in a row, each joined to the next one."""

from dfcompile.dfmodel_backend.machine.network.dimension_kind import DimensionKind, Wires


def wires(chips: int) -> Wires:
    """Return a link from each chip to the next one."""
    return [(chip, chip + 1) for chip in range(chips - 1)]


def exchanged_messages(chips: int) -> float:
    """Return the load of the link in the middle: half of the chips send to the other half, and the other way round."""
    return chips**2 / 4


LINE = DimensionKind(
    name="line",
    description="row of chips",
    source="mylab24",
    wires=wires,
    forms_grid=True,  # line_line is a mesh
    ports=lambda _: 1,  # of the chips at both ends
    cut=lambda _: 1,
    gathered_shares=lambda chips: chips - 1,  # the first link brings the first chip all shares but its own
    exchanged_messages=exchanged_messages,
    hops=lambda chips: chips - 1,
    paid_links=lambda chips: chips - 1,
    switch_ports=lambda _chips, _is_outer: 0,
)
