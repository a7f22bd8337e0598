"""A model from PyTorch on several chips: as many as are of use."""

from pathlib import Path

import pytest

from dfcompile.driver import Exploration, explore
from dfcompile.errors import UserError
from dfcompile.options import Options, parse_chips

ENCODER = Path(__file__).parents[1] / "models" / "encoder_layer.py"
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


def test_kernels_keep_the_names_of_operators(encoder: Exploration) -> None:
    names = [name for config in encoder.points[-1].mapping.configs for name in config.kernels]

    assert any(name.startswith("self_attn") for name in names)


def test_a_machine_without_network_has_one_chip() -> None:
    with pytest.raises(UserError, match="system 'canonical': found 2 chips against 1: its file has no network"):
        explore(Options(model=ENCODER, pes=(64,), chips=(2,)))
    with pytest.raises(UserError, match="--chips: found '0' against a positive integer"):
        parse_chips("1,0")
