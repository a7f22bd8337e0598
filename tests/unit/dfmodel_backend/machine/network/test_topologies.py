"""Links and switches of networks, against hand counts and the published machines."""

import json

import pytest

from dfcompile.dfmodel_backend.compatibility import ORIGINAL
from dfcompile.dfmodel_backend.design_file.reading import read_design
from dfcompile.dfmodel_backend.machine.network.dimension_kind import FULLY_CONNECTED, RING
from dfcompile.dfmodel_backend.machine.network.topologies import (
    network_cost_usd,
    network_power_w,
    network_units,
    topology,
)
from dfcompile.dfmodel_backend.machine.system import ONE_CHIP, Dimension, Network
from dfcompile.errors import UserError
from dfcompile.records import replace
from tests.locations import DESIGNS
from tests.unit.dfmodel_backend.machine.network.named_topologies import NAMED

FIGURES: dict[str, dict[str, float]] = json.loads((DESIGNS / "cases.json").read_text())

# With x, y, z = 2, 3, 5 chips and links of 1, 10, 100 GB/s: bandwidth of links, of switch ports.
COUNTED_BY_HAND = {
    "r": ((5,), (7,), (5 * 7,), (2 * 7,)),
    "sw": ((5,), (7,), (5 * 7,), (5 * 7,)),
    "fc": ((5,), (7,), (5 * 4 * 7,), (0,)),
    "r_r": ((2, 3), (1, 10), (6, 60), (2 * 3, 2 * 2 * 10)),
    "r_fc": ((2, 3), (1, 10), (6, 3 * 2 * 10), (2 * 3, 9 * 10)),
    "r_sw": ((2, 3), (1, 10), (6, 30), (2 * 3, 30)),
    "sw_sw": ((2, 3), (1, 10), (6, 30), (6, 30)),
    "fc_fc": ((2, 3), (1, 10), (2 * 1 * 3, 3 * 2 * 10), (0, 9 * 10)),
    "r_r_r": ((2, 3, 5), (1, 10, 100), (30, 300, 3000), (2 * 15, 2 * 10 * 10, 2 * 6 * 100)),
    "r_sw_sw": ((2, 3, 5), (1, 10, 100), (30, 15 * 10, 5 * 100), (2 * 15, 15 * 10, 5 * 100)),
    "sw_sw_sw": ((2, 3, 5), (1, 10, 100), (30, 15 * 10, 5 * 100), (30, 15 * 10, 5 * 100)),
    "r_r_r_r": (
        (2, 3, 5, 7),
        (1, 10, 100, 1000),
        (210, 2100, 21000, 210000),
        (2 * 105, 2 * 70 * 10, 2 * 42 * 100, 2 * 30 * 1000),
    ),
}


def machine_network(chips: tuple[int, ...], *, kind: str = "r_sw") -> Network:
    dimensions = tuple(Dimension(extent, 10.0, 0.5 + place) for place, extent in enumerate(chips))
    return Network(kind, dimensions, 2.0, 24.0, 0.25, 0.0)


@pytest.mark.parametrize("name", NAMED)
def test_units_are_those_counted_by_hand(name: str) -> None:
    chips, gb_per_s, links, switches = COUNTED_BY_HAND[name]

    units = network_units(topology(name), chips, gb_per_s)

    assert units.link_gb_per_s == links
    assert units.switch_gb_per_s == switches


@pytest.mark.parametrize("name", FIGURES)
def test_cost_and_power_of_published_machines(name: str) -> None:
    machine = read_design(DESIGNS / f"{name}.txt").machine
    prices = machine.prices
    network = Network(
        machine.topology,
        tuple(Dimension(link.chips, link.gb_per_s, link.power_w_per_gb_per_s) for link in machine.links),
        prices.link_usd_per_gb_per_s,
        prices.switch_usd_per_gb_per_s,
        prices.switch_w_per_gb_per_s,
        machine.link_latency_ns,
    )

    chips_usd = prices.accelerator_usd + machine.dram_gb_per_s * prices.dram_usd_per_gb_per_s
    chips_w = prices.accelerator_w + machine.dram_gb_per_s * prices.dram_w_per_gb_per_s
    cost_usd = machine.chips * chips_usd + network_cost_usd(network)
    assert cost_usd == pytest.approx(FIGURES[name]["cost_usd"], rel=1e-12)
    assert machine.chips * chips_w + network_power_w(network) == pytest.approx(FIGURES[name]["power_w"], rel=1e-12)


def test_cost_and_power_take_prices_and_the_power_of_each_dimension() -> None:
    network = machine_network((4, 3))  # links 120 and 30 GB/s, ports 2 * 3 * 10 and 30 GB/s

    assert network_cost_usd(network) == 150 * 2.0 + 90 * 24.0
    assert network_power_w(network) == 120 * 0.5 + 30 * 1.5 + 90 * 0.25


def test_one_chip_has_no_links_and_four_need_no_switch() -> None:
    assert network_units(topology("r"), (1,), (50.0,)).link_gb_per_s == (0.0,)
    assert network_cost_usd(ONE_CHIP) == 0.0
    assert network_power_w(ONE_CHIP) == 0.0
    assert network_units(topology("sw_sw"), (2, 2), (10.0, 10.0)).switch_gb_per_s == (0.0, 0.0)
    assert network_units(topology("sw"), (5,), (10.0,)).switch_gb_per_s == (50.0,)


def test_each_copy_has_a_network_of_its_own() -> None:
    units = network_units(topology("sw_sw"), (4, 3), (10.0, 1.0), copies=2)

    assert units.link_gb_per_s == (2 * 120, 2 * 3)
    assert units.switch_gb_per_s == (2 * 120, 2 * 3)


def test_flaws_of_costs_are_repeated_on_request() -> None:
    fourth_free = network_units(topology("r_r_r_r"), (2, 3, 5, 7), (1, 10, 100, 1000), compat=ORIGINAL)
    switched_twice = network_units(topology("sw_sw"), (4, 3), (10.0, 1.0), copies=2, compat=ORIGINAL)
    rings_twice = network_units(topology("r_sw"), (4, 3), (10.0, 1.0), copies=2, compat=ORIGINAL)

    assert fourth_free.link_gb_per_s == (210, 2100, 21000, 0)
    assert fourth_free.switch_gb_per_s == (2 * 15, 2 * 10 * 10, 2 * 6 * 100, 0)
    assert switched_twice.link_gb_per_s == (4 * 120, 2 * 3)
    assert switched_twice.switch_gb_per_s == (4 * 120, 2 * 3)
    assert rings_twice.link_gb_per_s == (4 * 120, 2 * 3)
    assert rings_twice.switch_gb_per_s == (2 * 2 * 3 * 10, 2 * 3)


def test_names_say_the_kinds_of_the_dimensions() -> None:
    assert topology("r_fc").kinds == (RING, FULLY_CONNECTED)
    assert topology("r_r_r_r").is_grid
    assert not topology("r_sw").is_grid
    assert topology("sw_r").name == "sw_r"
    assert len(NAMED) == 12


def test_bad_networks_are_named() -> None:
    network = machine_network((4, 3))
    cases = [
        (replace(network, kind="s"), r"topology 's': unknown \(did you mean 'sw'\?\)"),
        (
            replace(network, kind="sw_mesh"),
            r"topology 'sw_mesh': has a dimension 'mesh', which is unknown \(known: fc, r",
        ),
        (replace(network, kind="r_r_r_r_r"), "topology 'r_r_r_r_r': found 5 dimensions against at most 4"),
        (replace(network, kind="r_r_r"), "topology 'r_r_r': found 2 extents against 3 dimensions"),
        (machine_network((4, 0)), "topology 'r_sw': found 0 chips against more than 0"),
    ]
    for bad, message in cases:
        with pytest.raises(UserError, match=message):
            network_cost_usd(bad)
    with pytest.raises(UserError, match="topology 'r': found 0 copies against more than 0"):
        network_units(topology("r"), (4,), (1.0,), copies=0)
    with pytest.raises(UserError, match="topology 'r': found 2 link bandwidths against 1 dimensions"):
        network_units(topology("r"), (4,), (1.0, 2.0))
