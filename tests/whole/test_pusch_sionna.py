"""Channels that Sionna makes for the example of PUSCH detection are those of the profile that was asked for.

Sionna is an extra (``pip install sionna-no-rt``); without it these tests say so and skip.
"""

import importlib
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

pytest.importorskip("sionna", reason="Sionna is not installed (pip install sionna-no-rt)")

FOLDER = Path(__file__).parents[2] / "examples" / "pusch_mimo"
USERS = 1500


@pytest.fixture
def data(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("data")


@pytest.mark.parametrize("model", ["TDL", "CDL"])
@pytest.mark.parametrize("profile", ["A", "B", "C"])
def test_delay_spread_and_correlation_match_the_profile(model: str, profile: str, data: ModuleType) -> None:
    setting = data.Setting(model=model, profile=profile, delay_spread_s=200e-9, antenna_correlation=0.5)

    gains, delays = data.sionna_paths(4, USERS, 1, setting)
    powers = np.mean(np.abs(gains) ** 2, axis=(1, 2))
    mean = powers @ delays / powers.sum()
    spread = np.sqrt(powers @ (delays - mean) ** 2 / powers.sum())
    drawn = data.sionna_channels(101, 4, USERS, 1, setting)

    assert powers.sum() == pytest.approx(1, abs=0.04)
    assert spread == pytest.approx(200e-9, rel=0.05)
    for distance in (10, 50, 100):
        found = np.mean(drawn[distance] * np.conj(drawn[0]))
        assert found == pytest.approx(data.frequency_correlation(setting, distance), abs=0.05)


def test_antennas_of_tdl_are_correlated_as_asked_for(data: ModuleType) -> None:
    gains, _ = data.sionna_paths(4, USERS, 2, data.Setting(model="TDL", antenna_correlation=0.5))
    between = np.einsum("pru,pqu->rq", gains, np.conj(gains)) / USERS

    np.testing.assert_allclose(between, data.correlation(4, 0.5), atol=0.08)


def test_antennas_of_a_panel_see_directions(data: ModuleType) -> None:
    """The power of each user is 1 per antenna; 64 antennas tell users apart who stand in different directions."""
    gains, _ = data.sionna_paths(64, 64, 3, data.Setting(model="CDL"))
    channel = np.einsum("pru->ru", gains)
    alike = np.abs(np.einsum("ru,rv->uv", np.conj(channel), channel)) / 64

    assert np.mean(np.diagonal(alike)) == pytest.approx(1, abs=0.15)
    assert np.mean(alike) < 0.5


def test_the_same_seed_gives_the_same_grid(data: ModuleType) -> None:
    one, other, third = (data.received(8, 4, 2, seed=seed) for seed in (5, 5, 6))

    assert np.array_equal(one.channel, other.channel)
    assert not np.array_equal(one.channel, third.channel)
