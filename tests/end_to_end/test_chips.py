"""A model from PyTorch on several chips: as many as are of use."""

from pathlib import Path

import pytest

from dfcompile.dfmodel_backend import Mapping
from dfcompile.driver import Exploration, explore
from dfcompile.errors import UserError
from dfcompile.options import Options, parse_chips

MODELS = Path(__file__).parents[1] / "models"
ENCODER = MODELS / "encoder_layer.py"
WEIGHTS_BYTES = 4 * (2 * 1024 * 4096 + 4096 + 1024)
NS_PER_BYTE = 1 / 300  # of one SN30's DRAM
CHIPS = (1, 2, 4, 8)


@pytest.fixture(scope="module")
def encoder() -> Exploration:
    return explore(Options(model=ENCODER, pes=(64,), chips=CHIPS, system="sn30"))


def test_more_chips_at_hand_are_never_slower(encoder: Exploration) -> None:
    times = [point.mapping.time_s for point in encoder.points]

    assert [point.chips for point in encoder.points] == list(CHIPS)
    assert times == sorted(times, reverse=True)
    assert times[-1] < times[0]


def test_chips_in_use_are_paid_and_exchange_bytes(encoder: Exploration) -> None:
    alone, most = encoder.points[0].mapping, encoder.points[-1].mapping

    assert (alone.chips, alone.network_bytes) == (1, 0)
    assert most.chips > 1
    assert most.network_bytes > 0
    assert most.cost_usd > most.chips * alone.cost_usd
    assert most.energy_j == pytest.approx(most.power_w * most.time_s)


def test_the_report_says_what_each_number_of_chips_would_take(encoder: Exploration) -> None:
    named = [found.name for found in encoder.points[-1].mapping.assumptions if found.source == "--chips"]

    assert len(named) == len(CHIPS)
    assert sum("the fastest" in name for name in named) == 1


def test_every_exchange_is_listed_by_name_and_axis(encoder: Exploration) -> None:
    for point in encoder.points[1:]:
        mapping = point.mapping
        kernels = {kernel.name for kernel in point.variant.graph.kernels}

        assert mapping.exchanges
        for exchange in mapping.exchanges:
            assert exchange.source in kernels
            assert set(exchange.readers) <= kernels
            assert "axis" in exchange.before or "partial over" in exchange.before
            assert "axis" in exchange.after or exchange.after == "whole"
        assert sum(exchange.message_bytes for exchange in mapping.exchanges) == mapping.network_bytes
        assert sum(exchange.moved_bytes for exchange in mapping.exchanges) == mapping.moved_bytes
        said = [found for found in mapping.assumptions if found.name.startswith("exchange of ")]
        assert len(said) == len(mapping.exchanges)


def on_eight_chips(name: str) -> Mapping:
    exploration = explore(Options(model=MODELS / name, pes=(64,), chips=(8,), system="sn30"))
    return exploration.points[0].mapping


def test_two_linear_layers_in_two_forms_take_the_same_time() -> None:
    """Each chip reads its part of the weights; what is summed over chips is exchanged meanwhile.

    The rows alone were split: 14.43 µs without exchange, though each chip needed all weights, 16.8 MB of each layer.
    """
    rows, batch = on_eight_chips("mlp_rows.py"), on_eight_chips("mlp_batch.py")

    assert rows.time_s == batch.time_s
    for mapping in (rows, batch):
        read_ns = WEIGHTS_BYTES / 8 * NS_PER_BYTE
        assert read_ns < mapping.time_s * 1e9 < 18_500
        assert mapping.moved_bytes > 0
        assert mapping.optimal
    assert rows.network_bytes == batch.network_bytes
    assert {one.tensor for one in rows.exchanges} == {"v0_product", "v2_product"}  # both are summed over chips
    assert all(one.before == "partial over k, to be combined by sum" for one in rows.exchanges)


def test_softmaxes_along_both_axes_exchange_their_statistics() -> None:
    """All of a softmax by columns needs an all-to-all of 4 MB; its sums and maxima are 2 KB, and cheaper."""
    mapping = on_eight_chips("two_softmaxes.py")

    assert mapping.chips == 8
    assert [(one.tensor, one.kind, one.before, one.message_bytes) for one in mapping.exchanges] == [
        ("softmax_largest", "all-reduce", "partial over i1, to be combined by max", 512 * 4),
        ("softmax_total", "all-reduce", "partial over i1, to be combined by sum", 512 * 4),
    ]


def test_kernels_keep_the_names_of_operators(encoder: Exploration) -> None:
    names = [name for config in encoder.points[-1].mapping.configs for name in config.kernels]

    assert any(name.startswith("self_attn") for name in names)


def test_a_machine_without_network_has_one_chip() -> None:
    with pytest.raises(UserError, match="system 'canonical': found 2 chips against 1: its file has no network"):
        explore(Options(model=ENCODER, pes=(64,), chips=(2,)))
    with pytest.raises(UserError, match="--chips: found '0' against a positive integer"):
        parse_chips("1,0")
