"""Channels and slots that Sionna makes for the example of PUSCH detection are what was asked for.

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


@pytest.fixture
def slot(data: ModuleType) -> ModuleType:
    assert data
    return importlib.import_module("slot")


@pytest.fixture
def physics(data: ModuleType) -> ModuleType:
    assert data
    return importlib.import_module("physics")


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


def scrambling(first: int, length: int) -> np.ndarray:
    """Return the pseudo-random sequence of TS 38.211, section 5.2.1."""
    one, other = ([1] + 30 * [0]), [first >> place & 1 for place in range(31)]
    for place in range(1600 + length):
        one.append(one[place + 3] ^ one[place])
        other.append(other[place + 3] ^ other[place + 2] ^ other[place + 1] ^ other[place])
    return np.bitwise_xor(one[1600 : 1600 + length], other[1600 : 1600 + length])


def test_reference_signals_are_those_of_the_standard(slot: ModuleType) -> None:
    """Port 5 of TS 38.211, section 6.4.1.1: each second subcarrier, signs alternate over subcarriers and symbols."""
    sent = slot.sent(30, (1,) * 8, slot.References.of(8), np.random.default_rng(1))

    assert sent.grid.shape == (14, 36, 8)
    assert sent.data_symbols == (0, 1, 4, 5, 6, 7, 8, 9, 12, 13)
    np.testing.assert_allclose(np.abs(sent.grid[list(sent.data_symbols)]) ** 2, 1, rtol=1e-5)
    for symbol in (2, 3, 10, 11):
        bits = scrambling((2**17 * (symbol + 1) * (2 * 1 + 1) + 2 * 1) % 2**31, 36)
        drawn = (1 - 2 * bits[::2]) + 1j * (1 - 2 * bits[1::2])  # of power 2: no data beside it
        signs = np.array([1, -1] * 9) * (1 if symbol in {2, 10} else -1)
        np.testing.assert_allclose(sent.grid[symbol, ::2, 5], drawn * signs, rtol=1e-5)
        assert not sent.grid[symbol, 1::2, 5].any()


@pytest.mark.parametrize(("layers", "data_symbols"), [(1, 12), (4, 12), (5, 10), (8, 10), (9, 10), (12, 10)])
def test_ports_are_told_apart(layers: int, data_symbols: int, slot: ModuleType) -> None:
    """Without noise, over a channel that is the same everywhere, each layer's channel is found."""
    generator = np.random.default_rng(layers)
    sent = slot.sent(24, (1,) * layers, slot.References.of(layers), generator)
    channel = generator.standard_normal((3, layers)) + 1j * generator.standard_normal((3, layers))

    found = sent.estimated(np.einsum("rl,tnl->tnr", channel, sent.grid))

    assert len(sent.data_symbols) == data_symbols
    np.testing.assert_allclose(found, np.broadcast_to(channel, (24, 3, layers)), atol=1e-5)


def test_errors_of_the_estimate_are_as_theory_has_them(data: ModuleType) -> None:
    """Flat channels. Noise 1, references of power 2, 4 of them despread, 2 averaged: 1/16, half of it between pairs.

    So 7/128 in the mean of four subcarriers. Two interferers of power 10 whose references lie on each second
    subcarrier: 20 times the noise of data, 40 of that of references, for half of the layers.
    """
    flat = {"model": "TDL", "delay_spread_s": 1e-12, "antenna_correlation": 0.0, "reference_signals": True}
    quiet, loud = (
        data.received(240, 64, 8, seed=4, setting=data.Setting(interferers=number, **flat)) for number in (0, 2)
    )
    errors = [np.abs(each.channel - each.true_channel) ** 2 for each in (quiet, loud)]

    assert np.mean(errors[0]) == pytest.approx(7 / 128, rel=0.04)
    assert np.mean(errors[1][..., 2::4]) == pytest.approx(7 / 128, rel=0.04)
    assert np.mean(errors[1][..., ::4]) == pytest.approx(41 * 7 / 128, rel=0.3)


def test_detection_with_estimated_channels(data: ModuleType, physics: ModuleType) -> None:
    """The true channel gives the error of theory; the estimate a larger one, from which most bits are still told."""
    setting = data.Setting(reference_signals=True, snr_db=-2.0, interference_db=0.0)
    grid = data.received(60, 16, 4, seed=6, setting=setting, symbols=12)
    values = [value.astype(np.complex128) for value in (grid.true_channel, grid.channel, grid.covariance, grid.signal)]
    true, known, covariance, signal = values
    found = [physics.detect(channel, covariance, signal) for channel in (true, known)]
    errors = [float(np.mean(np.abs(each - grid.symbols) ** 2)) for each in found]
    wrong = [float(np.mean(data.bits_of(each) != grid.bits)) for each in found]

    assert grid.channel.shape == (720, 16, 4)
    np.testing.assert_array_equal(data.bits_of(grid.symbols), grid.bits)
    assert errors[0] == pytest.approx(float(np.mean(1 / (1 + physics.sinr(true, covariance)))), rel=0.05)
    assert 1.05 * errors[0] < errors[1] < 3 * errors[0]
    assert wrong[0] < wrong[1] < 0.1


def test_the_same_seed_gives_the_same_slot(data: ModuleType) -> None:
    setting = data.Setting(reference_signals=True)
    one, other, third = (data.received(13, 4, 2, seed=seed, setting=setting, symbols=2) for seed in (5, 5, 6))

    assert one.signal.shape == (26, 4)
    for name in ("channel", "covariance", "signal", "symbols", "bits", "true_channel"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    assert not np.array_equal(one.bits, third.bits)
    assert not np.array_equal(one.channel, third.channel)


def test_slots_that_are_none(data: ModuleType) -> None:
    setting = data.Setting(reference_signals=True, model="TDL")
    with pytest.raises(ValueError, match=r"^13 layers against at most 12 that reference signals tell apart$"):
        data.received(12, 2, 13, seed=1, setting=setting)
    with pytest.raises(ValueError, match=r"^11 symbols against 10 of a slot that hold data$"):
        data.received(12, 2, 8, seed=1, setting=setting, symbols=11)
    with pytest.raises(ValueError, match=r"^3301 subcarriers of a slot with reference signals against at most 3300$"):
        data.received(3301, 1, 1, seed=1, setting=setting)
