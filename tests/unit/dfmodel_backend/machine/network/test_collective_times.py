"""Times of collectives, computed by hand."""

import dataclasses

import pytest

from dfcompile.dfmodel_backend.compatibility import CORRECTIONS, ORIGINAL, RIGHT, Compatibility
from dfcompile.dfmodel_backend.machine.network.collective_times import (
    all_reduce_latency_ns,
    all_to_all_ns_per_byte,
    bandwidth_factors,
    crossing_messages,
    domain_ns_per_byte,
    everywhere_ns_per_byte,
    ns_per_byte,
)
from dfcompile.dfmodel_backend.machine.network.topologies import topology
from dfcompile.dfmodel_backend.machine.system import Collective, Link
from dfcompile.errors import UserError
from dfcompile.records import replace

C = Collective


def link(shape: str, chips: int, gb_per_s: float = 50.0) -> Link:
    return Link(shape, chips, gb_per_s, "TP", 0.0)


@pytest.mark.parametrize(
    ("shape", "collective", "expected"),
    [
        ("r", C.ALL_REDUCE, 7 / 400),
        ("sw", C.ALL_REDUCE, 7 / 400),
        ("fc", C.ALL_REDUCE, 1 / 400),
        ("r", C.ALL_REDUCE_PERIODIC, 7 / 400),
        ("fc", C.ALL_REDUCE_PERIODIC, 1 / 400),
        ("sw", C.ALL_GATHER, 7 / 400),
        ("fc", C.ALL_GATHER, 1 / 400),
        ("r", C.ALL_TO_ALL, 64 / 400),
        ("sw", C.ALL_TO_ALL, 8 / 200),
        ("fc", C.ALL_TO_ALL, 1 / 50),
        ("r", C.POINT_TO_POINT, 1 / 50),
        ("fc", C.BROADCAST, 1 / 50),
        ("sw", C.NONE, 0.0),
    ],
)
def test_eight_chips_with_links_of_50_gb_per_s(shape: str, collective: Collective, expected: float) -> None:
    assert ns_per_byte(collective, link(shape, 8)) == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize("shape", ["r", "sw", "fc"])
def test_two_phases_double_reductions_only(shape: str) -> None:
    group = link(shape, 8)
    for collective in (C.ALL_REDUCE, C.ALL_REDUCE_PERIODIC):
        assert ns_per_byte(collective, group, separate_phases=True) == 2 * ns_per_byte(collective, group)
    for collective in (C.ALL_GATHER, C.ALL_TO_ALL, C.POINT_TO_POINT):
        assert ns_per_byte(collective, group, separate_phases=True) == ns_per_byte(collective, group)


def test_older_code_fixed_the_number_of_phases() -> None:
    older = Compatibility(all_reduce_factor=2, periodic_factor=2)
    oldest = Compatibility(all_reduce_factor=1)

    assert ns_per_byte(C.ALL_REDUCE, link("r", 8), compat=older) == 14 / 400
    assert ns_per_byte(C.ALL_REDUCE_PERIODIC, link("r", 8), compat=older) == 14 / 400
    assert ns_per_byte(C.ALL_REDUCE, link("r", 8), separate_phases=True, compat=oldest) == 7 / 400
    assert ns_per_byte(C.ALL_REDUCE_PERIODIC, link("r", 8), separate_phases=True, compat=oldest) == 14 / 400


@pytest.mark.parametrize("shape", ["r", "sw", "fc"])
def test_a_lone_chip_exchanges_nothing(shape: str) -> None:
    for collective in Collective:
        assert ns_per_byte(collective, link(shape, 1)) == 0.0
    assert all_reduce_latency_ns(link(shape, 1), 150.0) == 0.0


def test_flaws_of_groups_are_repeated_on_request() -> None:
    full = link("fc", 8)

    assert ns_per_byte(C.ALL_REDUCE_PERIODIC, full, separate_phases=True, compat=ORIGINAL) == 1 / 400
    assert ns_per_byte(C.ALL_REDUCE, full, separate_phases=True, compat=ORIGINAL) == 2 / 400
    assert ns_per_byte(C.ALL_REDUCE, link("fc", 1), compat=ORIGINAL) == 1 / 50
    assert everywhere_ns_per_byte((full,), compat=ORIGINAL) == 1.0
    assert everywhere_ns_per_byte((full,), compat=replace(ORIGINAL, periodic_factor=2)) == 2.0


def test_latency_counts_hops() -> None:
    assert all_reduce_latency_ns(link("r", 12), 2000.0, separate_phases=True) == 2 * 11 * 2000
    assert all_reduce_latency_ns(link("sw", 12), 2000.0) == 11 * 2000
    assert all_reduce_latency_ns(link("fc", 12), 2000.0, separate_phases=True) == 2 * 2000


def test_group_within_its_domain_reduces_there() -> None:
    time = domain_ns_per_byte(C.ALL_REDUCE, link("r", 8, 50.0), link("r", 8, 900.0), 16)

    assert time == pytest.approx(7 / (8 * 900), rel=1e-15)


def test_group_larger_than_its_domain_reduces_in_two_steps() -> None:
    outer, inner = link("r", 1024, 50.0), link("r", 8, 900.0)

    time = domain_ns_per_byte(C.ALL_REDUCE_PERIODIC, outer, inner, 8)
    assert time == pytest.approx(7 / (8 * 900) + 127 / (1024 * 50), rel=1e-15)
    assert domain_ns_per_byte(C.ALL_REDUCE_PERIODIC, outer, inner, 8, separate_phases=True) == pytest.approx(2 * time)
    original = domain_ns_per_byte(C.ALL_REDUCE_PERIODIC, outer, inner, 8, separate_phases=True, compat=ORIGINAL)
    assert original == pytest.approx(time, rel=1e-15)


def test_shapes_hold_in_and_between_domains() -> None:
    outer, inner = link("fc", 32, 50.0), link("fc", 8, 900.0)

    right = domain_ns_per_byte(C.ALL_REDUCE, outer, inner, 8)
    original = domain_ns_per_byte(C.ALL_REDUCE, outer, inner, 8, compat=ORIGINAL)
    assert right == pytest.approx(1 / (8 * 900) + 1 / (32 * 50), rel=1e-15)
    assert original == pytest.approx(7 / (8 * 900) + 3 / (32 * 50), rel=1e-15)
    rings_between = domain_ns_per_byte(C.ALL_REDUCE, link("r", 32, 50.0), inner, 8)
    assert rings_between == pytest.approx(1 / (8 * 900) + 3 / (32 * 50), rel=1e-15)


def test_domain_of_one_chip_is_no_domain() -> None:
    outer = link("r", 8, 50.0)

    time = domain_ns_per_byte(C.ALL_REDUCE, outer, link("r", 8, 900.0), 1)
    assert time == pytest.approx(ns_per_byte(C.ALL_REDUCE, outer), rel=1e-15)


def test_gradients_are_reduced_dimension_by_dimension() -> None:
    groups = (link("r", 8, 600.0), link("fc", 16, 25.0))

    assert everywhere_ns_per_byte(groups) == pytest.approx(7 / (8 * 600) + 1 / 8 * 1 / (16 * 25), rel=1e-15)


def test_bad_groups_are_named() -> None:
    with pytest.raises(UserError, match="group of chips: found 0 chips against at least 1"):
        ns_per_byte(C.ALL_REDUCE, link("r", 0))
    with pytest.raises(UserError, match=r"group of chips: found links of 0.0 GB/s against more than 0"):
        ns_per_byte(C.ALL_REDUCE, link("r", 2, 0.0))
    with pytest.raises(UserError, match="group of chips: found shape 'mesh' against fc, r, sw"):
        ns_per_byte(C.ALL_REDUCE, link("mesh", 2))
    with pytest.raises(UserError, match="high-bandwidth domain: found 0 chips against at least 1"):
        domain_ns_per_byte(C.ALL_REDUCE, link("r", 8), link("r", 8), 0)


# Links over the cut through each dimension of 2 x 3 x 5 chips.
@pytest.mark.parametrize(
    ("name", "chips", "factors", "messages"),
    [
        ("r", (6,), (2,), (9,)),
        ("sw", (6,), (6,), (9,)),
        ("fc", (6,), (9,), (9,)),
        ("r_r", (2, 3), (2 * 3, 2 * 2), (9, 9)),
        ("r_fc", (2, 3), (2, 9 / 4), (1, 9)),
        ("r_sw", (2, 3), (2, 3), (1, 9)),
        ("sw_sw", (2, 3), (2, 3), (1, 9)),
        ("fc_fc", (2, 3), (1, 9 / 4), (1, 9)),
        ("r_r_r", (2, 3, 5), (2 * 15, 2 * 10, 2 * 6), (225, 225, 225)),
        ("r_sw_sw", (2, 3, 5), (2, 3, 5), (1, 9, 225)),
        ("sw_sw_sw", (2, 3, 5), (2, 3, 5), (1, 9, 225)),
        ("r_r_r_r", (2, 3, 5, 7), (210, 140, 84, 60), (11025,) * 4),
    ],
)
def test_cuts_of_all_to_alls(
    name: str, chips: tuple[int, ...], factors: tuple[float, ...], messages: tuple[float, ...]
) -> None:
    shape, gb_per_s = topology(name), (50.0,) * len(chips)

    assert bandwidth_factors(shape, chips) == factors
    assert crossing_messages(shape, chips) == messages
    expected = max(count / (50.0 * factor) for count, factor in zip(messages, factors, strict=True))
    assert all_to_all_ns_per_byte(shape, chips, gb_per_s) == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize(
    ("name", "chips", "switch", "expected"),
    [
        ("r_r", (2, 3), "torus_bisection_of_other_dimension", (2 * 2, 2 * 3)),
        ("r_r_r", (2, 3, 5), "torus_bisection_of_other_dimension", (2 * 6, 2 * 10, 2 * 15)),
        ("r_r", (2, 3), "torus_bisection_halved", (3, 2)),
        ("r", (6,), "torus_bisection_halved", (2,)),
        ("fc", (6,), "fully_connected_bisection_of_all_links", (15,)),
        ("sw_sw", (8, 128), "outermost_bandwidth_quartered", (8, 32)),
        ("r_fc", (8, 16), "outermost_bandwidth_quartered", (2, 64)),
    ],
)
def test_factors_of_other_ages(name: str, chips: tuple[int, ...], switch: str, expected: tuple[float, ...]) -> None:
    assert bandwidth_factors(topology(name), chips, compat=Compatibility(**{switch: True})) == expected


def test_messages_of_other_ages() -> None:
    compat = Compatibility(messages_of_all_pairs=True)

    assert crossing_messages(topology("r_sw"), (2, 3), compat=compat) == (1, 15)


# Bytes per pair and time of the exchange in two published logs, 2**40 and 1.07e12 points over 1024 chips.
def test_published_exchanges() -> None:
    square = (450.0, 450.0)
    oldest = Compatibility(outermost_bandwidth_quartered=True)

    assert all_to_all_ns_per_byte(topology("r_sw"), (8, 128), square) * 2097152 == pytest.approx(
        9544371.768888889, rel=1e-15
    )
    assert all_to_all_ns_per_byte(topology("sw_sw"), (8, 128), (300.0, 25.0), compat=oldest) * 4095991 == (
        pytest.approx(1342174330.88, rel=1e-15)
    )


def test_all_to_all_of_one_chip_and_of_too_many_dimensions() -> None:
    assert all_to_all_ns_per_byte(topology("r_sw"), (1, 1), (1.0, 1.0)) == 0.0
    with pytest.raises(UserError, match="topology 'r': found 2 extents and 1 bandwidths against 1 dimensions"):
        all_to_all_ns_per_byte(topology("r"), (2, 2), (1.0,))


def test_every_correction_is_a_switch_that_is_off() -> None:
    switches = {field.name for field in dataclasses.fields(Compatibility) if field.type in (bool, "bool")}

    assert set(CORRECTIONS) == switches
    assert not any(getattr(RIGHT, name) for name in switches)
