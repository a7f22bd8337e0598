"""A kind of dimension that nobody ships: chips in a row, of which the last is not joined to the first."""

import pytest

from dfcompile.dfmodel_backend.machine.network import topologies
from dfcompile.dfmodel_backend.machine.network.dimension_kind import DimensionKind
from dfcompile.plugins import Collected, Plugin
from dfcompile.records import replace

LINE = DimensionKind(
    name="line",
    description="row of chips",
    source="own",
    wires=lambda chips: [(chip, chip + 1) for chip in range(chips - 1)],
    forms_grid=True,
    ports=lambda _: 1,
    cut=lambda _: 1,
    gathered_shares=lambda chips: chips - 1,
    exchanged_messages=lambda chips: chips**2 / 4,
    hops=lambda chips: chips - 1,
    paid_links=lambda chips: chips - 1,
    switch_ports=lambda _chips, _is_outer: 0,
)


def known_with(*kinds: DimensionKind) -> Collected[DimensionKind]:
    """All kinds of dimensions that are shipped, and some more."""
    shipped = topologies.DIMENSION_KINDS.collect()
    named = {kind.name: kind for kind in kinds}
    plugins = (*shipped.plugins, *(Plugin(kind, kind.module) for kind in kinds))
    return replace(shipped, plugins=plugins, by_name={**shipped.by_name, **named})


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> DimensionKind:
    """The kind, as if a package with it were installed."""
    install(monkeypatch, LINE)
    return LINE


def install(monkeypatch: pytest.MonkeyPatch, *kinds: DimensionKind) -> None:
    known = known_with(*kinds)
    monkeypatch.setattr("dfcompile.dfmodel_backend.machine.network.topologies.dimension_kinds", lambda: known)
    monkeypatch.setattr("dfcompile.dfmodel_backend.machine.network.collective_times.dimension_kinds", lambda: known)
