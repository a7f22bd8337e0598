"""A model from PyTorch on several chips: as many as are of use."""

from functools import cache
from math import prod
from pathlib import Path

import pytest

from dfcompile.dfmodel_backend import Mapping
from dfcompile.driver import Exploration, explore
from dfcompile.errors import UserError
from dfcompile.options.numbers import counts
from dfcompile.report.summary import summarize
from dfcompile.study import Point
from tests.asked_options import asked

MODELS = Path(__file__).parents[1] / "models"
ENCODER = MODELS / "encoder_layer.py"
PRODUCT = Path(__file__).parents[2] / "examples" / "product" / "model.py"
WEIGHTS_BYTES = 4 * (2 * 1024 * 4096 + 4096 + 1024)
NS_PER_BYTE = 1 / 300  # of one SN30's DRAM
CHIPS = (1, 2, 4)


@pytest.fixture(scope="module")
def encoder() -> Exploration:
    return explore(asked(ENCODER, (64,), chips=CHIPS, system="sn30"))


def test_more_chips_at_hand_are_never_slower(encoder: Exploration) -> None:
    times = [point.mapping.figures.time_s for point in encoder.points]

    assert [point.chips for point in encoder.points] == list(CHIPS)
    assert times == sorted(times, reverse=True)
    assert times[-1] < times[0]


def test_attained_times_are_between_bound_and_fewer_chips(encoder: Exploration) -> None:
    found = [point.attained for point in encoder.points]
    times = [attained.time_s for attained in found]

    assert times == sorted(times, reverse=True)
    assert times[-1] < times[0] / 2
    for attained in found:
        assert attained.bound_time_s <= attained.time_s
        assert sum(one.time_ns for one in attained.configurations) == pytest.approx(attained.time_s * 1e9)
        assert attained.energy_j == pytest.approx(attained.power_w * attained.time_s)


def test_what_is_exchanged_is_read_in_a_later_configuration(encoder: Exploration) -> None:
    for point in encoder.points[1:]:
        attained = point.attained
        place = {name: number for number, one in enumerate(attained.configurations) for name in one.kernels}

        assert attained.chips > 1
        assert attained.exchanges
        for exchange in attained.exchanges:
            assert all(place[exchange.source] < place[reader] for reader in exchange.readers)
        network_ns = sum(one.network_ns for one in attained.configurations)
        assert network_ns == pytest.approx(sum(one.time_ns for one in attained.exchanges))
        assert attained.network_bytes == sum(one.message_bytes for one in attained.exchanges)


def test_layouts_are_those_between_which_chips_exchange(encoder: Exploration) -> None:
    """Along a single dimension what is exchanged goes from the layout of its source to that of its readers."""
    checked = 0
    for result in summarize(encoder).results:
        mapping = result.mapping
        assert mapping is not None
        assert bool(mapping.sharding) == bool(mapping.network_chips) == (mapping.chips > 1)
        assert prod(mapping.network_chips) == mapping.chips
        held = {(one.kernel, one.tensor, one.access): one.held for one in mapping.sharding}
        for exchange in mapping.exchanges if len(mapping.network_chips) == 1 else ():
            assert held[exchange.source, exchange.tensor, "written"] == (exchange.before,)
            assert {held[reader, exchange.tensor, "read"] for reader in exchange.readers} == {(exchange.after,)}
            checked += 1
        for one in mapping.sharding:
            assert one.kernel in mapping.configurations[one.configuration].kernels
            parts = [chips for chips, each in zip(mapping.network_chips, one.held, strict=True) if "split" in each]
            assert one.elements <= one.chip_elements * prod(parts)
            assert (one.chip_elements < one.elements) == bool(parts)
    assert checked


def test_the_schedule_of_several_chips_is_one_chips(encoder: Exploration) -> None:
    alone, most = encoder.points[0], encoder.points[-1]
    dag, schedule = most.shown_schedule

    assert schedule.makespan_cycles < alone.shown_schedule[1].makespan_cycles
    assert len(dag.kernels) == len(most.variant.dag.kernels)
    assert schedule.makespan_cycles == sum(one.cycles for one in most.attained.configurations)


def test_a_product_on_two_chips_takes_what_a_reader_computes() -> None:
    """docs/mapping.md has each figure from its formula.

    The mapping with perfect streams splits what is summed over. A core multiplies 192 pairs at a time, so that 48 take
    as long as 96: attained is less by columns.
    """
    options = asked(PRODUCT, (8,), "MatMul=ip", chips=(1, 2), system="sn30")
    alone, both = (point.attained for point in explore(options).points)
    (configuration,) = both.configurations

    assert alone.time_s * 1e9 == pytest.approx((2048 / 8 + 11) * 0.8)
    assert configuration.compute_ns == pytest.approx((1024 / 8 + 6) * 0.8)
    assert configuration.dram_bytes == (32 * 96 + 96 * 32 + 32 * 32) * 4
    assert configuration.memory_ns == pytest.approx(configuration.dram_bytes / 300)
    assert both.time_s * 1e9 == pytest.approx(107.2)
    assert both.bound_time_s * 1e9 == pytest.approx(-(-(2048 + 11) // 16) * 0.8)
    assert (both.chips, both.dram_bytes, both.network_bytes) == (2, 2 * configuration.dram_bytes, 0)


def test_chips_in_use_are_paid_and_exchange_bytes(encoder: Exploration) -> None:
    alone, most = encoder.points[0].mapping, encoder.points[-1].mapping

    assert (alone.chips, alone.figures.network_bytes) == (1, 0)
    assert most.chips > 1
    assert most.figures.network_bytes > 0
    assert most.figures.cost_usd > most.chips * alone.figures.cost_usd
    assert most.figures.energy_j == pytest.approx(most.figures.power_w * most.figures.time_s)


def test_the_report_says_what_each_number_of_chips_would_take(encoder: Exploration) -> None:
    named = [found.name for found in encoder.points[-1].mapping.assumptions if found.source == "--chips"]

    assert len(named) == len(CHIPS)
    assert sum("the fastest" in name for name in named) == 1


def test_every_exchange_is_listed_by_name_and_axis(encoder: Exploration) -> None:
    for point in encoder.points[1:]:
        mapping = point.mapping
        kernels = {kernel.name for kernel in point.variant.graph.kernels}

        assert mapping.figures.exchanges
        for exchange in mapping.figures.exchanges:
            assert exchange.source in kernels
            assert set(exchange.readers) <= kernels
            assert "axis" in exchange.before or "partial over" in exchange.before
            assert "axis" in exchange.after or exchange.after == "whole"
        assert sum(exchange.message_bytes for exchange in mapping.figures.exchanges) == mapping.figures.network_bytes
        assert sum(exchange.moved_bytes for exchange in mapping.figures.exchanges) == mapping.figures.moved_bytes
        said = [found for found in mapping.assumptions if found.name.startswith("exchange of ")]
        assert len(said) == len(mapping.figures.exchanges)


@cache
def point_on_eight_chips(name: str) -> Point:
    return explore(asked(MODELS / name, (64,), chips=(8,), system="sn30")).points[0]


def on_eight_chips(name: str) -> Mapping:
    return point_on_eight_chips(name).mapping


def test_attained_time_of_two_linear_layers_is_explained() -> None:
    """Both products wait for their sums: three configurations, of which compute, network or memory is the longest."""
    point = point_on_eight_chips("mlp_rows.py")
    attained = point.attained
    parts = attained.parts

    assert attained.bound_time_s < point.mapping.figures.time_s < attained.time_s < 3 * point.mapping.figures.time_s
    assert {one.tensor for one in attained.exchanges} == {"v0_product", "v2_product"}
    assert sum(one.dram_bytes for one in attained.configurations) * 8 == attained.dram_bytes
    assert WEIGHTS_BYTES < attained.dram_bytes < 2 * WEIGHTS_BYTES
    together = parts.work_ns + parts.idle_elements_ns + parts.waiting_ns + parts.throttled_ns + parts.whole_blocks_ns
    assert together + parts.memory_ns + parts.network_ns == pytest.approx(attained.time_s * 1e9)


def test_attained_statistics_of_softmaxes_are_exchanged() -> None:
    point = point_on_eight_chips("two_softmaxes.py")

    assert [(one.tensor, one.kind) for one in point.attained.exchanges] == [
        ("softmax_largest", "all-reduce"),
        ("softmax_total", "all-reduce"),
    ]
    assert point.attained.bound_time_s <= point.attained.time_s


def test_two_linear_layers_in_two_forms_take_the_same_time() -> None:
    """Each chip reads its part of the weights; what is summed over chips is exchanged meanwhile.

    The rows alone were split: 14.43 µs without exchange, though each chip needed all weights, 16.8 MB of each layer.
    """
    rows, batch = on_eight_chips("mlp_rows.py"), on_eight_chips("mlp_batch.py")

    assert rows.figures.time_s == batch.figures.time_s
    for mapping in (rows, batch):
        read_ns = WEIGHTS_BYTES / 8 * NS_PER_BYTE
        assert read_ns < mapping.figures.time_s * 1e9 < 18_500
        assert mapping.figures.moved_bytes > 0
        assert mapping.optimal
    assert rows.figures.network_bytes == batch.figures.network_bytes
    assert {one.tensor for one in rows.figures.exchanges} == {"v0_product", "v2_product"}  # both are summed over chips
    assert all(one.before == "partial over k, to be combined by sum" for one in rows.figures.exchanges)


def test_softmaxes_along_both_axes_exchange_their_statistics() -> None:
    """All of a softmax by columns needs an all-to-all of 4 MB; its sums and maxima are 2 KB, and cheaper."""
    mapping = on_eight_chips("two_softmaxes.py")

    assert mapping.chips == 8
    assert [(one.tensor, one.kind, one.before, one.message_bytes) for one in mapping.figures.exchanges] == [
        ("softmax_largest", "all-reduce", "partial over i1, to be combined by max", 512 * 4),
        ("softmax_total", "all-reduce", "partial over i1, to be combined by sum", 512 * 4),
    ]


def test_kernels_keep_the_names_of_operators(encoder: Exploration) -> None:
    names = [name for config in encoder.points[-1].mapping.figures.configs for name in config.kernels]

    assert any(name.startswith("self_attn") for name in names)


def test_a_machine_without_network_has_one_chip() -> None:
    with pytest.raises(UserError, match="system 'canonical': found 2 chips against 1: its file has no network"):
        explore(asked(ENCODER, (64,), chips=2))
    with pytest.raises(UserError, match="--chips: found '0' against a positive integer"):
        counts("--chips", "1,0")
