"""Realistic input data: what the antennas of a 5G base station receive in the uplink, subcarrier by subcarrier.

Every user's signal arrives over many paths. Their delays and powers are the tables of 3GPP TR 38.901 (section 7.7.2:
TDL-A, TDL-B, TDL-C); each path fades (Rayleigh), and what neighbouring antennas see is alike (exponential
correlation). A channel that differs from subcarrier to subcarrier is the Fourier transform of these paths. Other
cells' users interfere over channels of the same kind.

With Sionna (``pip install sionna-no-rt``) the paths are those of 3GPP's CDL models (section 7.7.1): they have
directions, antennas stand in a panel, so that what neighbouring antennas see follows from geometry. Without, they are
drawn here from the TDL tables. With Sionna there may also be reference signals, from which the channel is estimated
(slot.py); else it is known exactly. Either way the same numbers come for the same seed.
"""

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
import slot

Complex = npt.NDArray[np.complex128]
Real = npt.NDArray[np.float64]

SPACING_HZ = 30e3  # between subcarriers: numerology 1, as most cells have it at 3.5 GHz
CARRIER_HZ = 3.5e9
MODELS = ("TDL", "CDL", "best")
OWN_CELL = 1  # those of interferers have the next numbers
SECTOR_DEGREES = 120.0  # that an antenna panel serves

# 3GPP TR 38.901, tables 7.7.2-1 to 7.7.2-3: delay of each path in delay spreads, power in dB.
PROFILES: Mapping[str, tuple[tuple[float, ...], tuple[float, ...]]] = MappingProxyType(
    {
        "A": (
            (
                0, 0.3819, 0.4025, 0.5868, 0.4610, 0.5375, 0.6708, 0.5750, 0.7618, 1.5375, 1.8978, 2.2242, 2.1718,
                2.4942, 2.5119, 3.0582, 4.0810, 4.4579, 4.5695, 4.7966, 5.0066, 5.3043, 9.6586,
            ),
            (
                -13.4, 0, -2.2, -4, -6, -8.2, -9.9, -10.5, -7.5, -15.9, -6.6, -16.7, -12.4, -15.2, -10.8, -11.3, -12.7,
                -16.2, -18.3, -18.9, -16.6, -19.9, -29.7,
            ),
        ),
        "B": (
            (
                0, 0.1072, 0.2155, 0.2095, 0.2870, 0.2986, 0.3752, 0.5055, 0.3681, 0.3697, 0.5700, 0.5283, 1.1021,
                1.2756, 1.5474, 1.7842, 2.0169, 2.8294, 3.0219, 3.6187, 4.1067, 4.2790, 4.7834,
            ),
            (
                0, -2.2, -4, -3.2, -9.8, -1.2, -3.4, -5.2, -7.6, -3, -8.9, -9, -4.8, -5.7, -7.5, -1.9, -7.6, -12.2,
                -9.8, -11.4, -14.9, -9.2, -11.3,
            ),
        ),
        "C": (
            (
                0, 0.2099, 0.2219, 0.2329, 0.2176, 0.6366, 0.6448, 0.6560, 0.6584, 0.7935, 0.8213, 0.9336, 1.2285,
                1.3083, 2.1704, 2.7105, 4.2589, 4.6003, 5.4902, 5.6077, 6.3065, 6.6374, 7.0427, 8.6523,
            ),
            (
                -4.4, -1.2, -3.5, -5.2, -2.5, 0, -2.2, -3.9, -7.4, -7.1, -10.7, -11.1, -5.1, -6.8, -8.7, -13.2, -13.9,
                -13.9, -15.8, -17.1, -16, -15.7, -21.6, -22.8,
            ),
        ),
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """What the air is like.

    Attributes:
        model: ``TDL`` (delays and powers alone), ``CDL`` (directions as well; needs Sionna), or ``best``: CDL where
            Sionna is installed, else TDL.
        profile: ``A``, ``B`` or ``C`` of the tables above, which both models share.
        delay_spread_s: root mean square of the delays: 100 ns in a street, 300 ns and more among hills.
        antenna_correlation: of neighbouring antennas, from 0 to below 1; of CDL it follows from geometry instead.
        snr_db: power of one layer at one antenna against thermal noise.
        interferers: users of other cells on the same subcarriers.
        interference_db: power of each of them at one antenna against thermal noise.
        reference_signals: whether users send a whole slot of the 5G NR PUSCH with its reference signals (DMRS), and the
            channel is what the base station estimates from these; needs Sionna.
    """

    model: str = "best"
    profile: str = "A"
    delay_spread_s: float = 100e-9
    antenna_correlation: float = 0.3
    snr_db: float = 15.0
    interferers: int = 2
    interference_db: float = 10.0
    reference_signals: bool = False

    def __post_init__(self) -> None:
        if self.model not in MODELS:
            raise ValueError(f"model {self.model!r} against one of {', '.join(MODELS)}")
        if self.model == "CDL" and not has_sionna():
            raise ValueError("model 'CDL' without Sionna against TDL or best (try 'pip install sionna-no-rt')")
        if self.reference_signals and not has_sionna():
            raise ValueError("reference signals without Sionna against none (try 'pip install sionna-no-rt')")
        if self.profile not in PROFILES:
            raise ValueError(f"profile {self.profile!r} against one of {', '.join(PROFILES)}")
        if not 0 <= self.antenna_correlation < 1:
            raise ValueError(f"antenna correlation {self.antenna_correlation} against 0 to below 1")
        if self.delay_spread_s <= 0 or self.interferers < 0:
            raise ValueError(f"delay spread {self.delay_spread_s} s, {self.interferers} interferers against positive")


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """OFDM symbols of a PUSCH at the base station, thermal noise of power 1 at every antenna.

    The first dimension n goes over subcarriers, of one symbol after the other.

    Attributes:
        channel: ``H[n, r, l]``, from layer l to antenna r, as the base station knows it.
        covariance: ``K[n, r, r]`` of interference and noise.
        signal: ``y[n, r]``, received.
        symbols: ``s[n, l]``, sent: QPSK of power 1.
        bits: ``[n, l, 2]``, that the symbols stand for.
        true_channel: as `channel`, without the errors of an estimate.
    """

    channel: npt.NDArray[np.complex64]
    covariance: npt.NDArray[np.complex64]
    signal: npt.NDArray[np.complex64]
    symbols: npt.NDArray[np.complex64]
    bits: npt.NDArray[np.int8]
    true_channel: npt.NDArray[np.complex64]


_USUAL = Setting()


def received(
    subcarriers: int, antennas: int, layers: int, seed: int, setting: Setting = _USUAL, symbols: int = 1
) -> Grid:
    """Return a received grid of so many OFDM symbols with data; the channel is the same in all of them.

    Raises:
        ValueError: there are more subcarriers, layers or symbols than a slot with reference signals has.
    """
    generator = np.random.default_rng(seed)
    by_sionna = setting.model == "CDL" or (setting.model == "best" and has_sionna())
    make = sionna_channels if by_sionna else channels
    every = make(subcarriers, antennas, layers + setting.interferers, seed, setting)
    own = 10 ** (setting.snr_db / 20) * every[..., :layers]
    other = 10 ** (setting.interference_db / 20) * every[..., layers:]
    if setting.reference_signals:
        known, signal, sent = _slot(own, other, generator, symbols)
        bits = bits_of(sent)
    else:
        bits = generator.integers(0, 2, (symbols * subcarriers, layers, 2), dtype=np.int8)
        known, sent = own, qpsk(bits)
        noise = complex_normal(generator, (symbols * subcarriers, antennas))
        elsewhere = qpsk(generator.integers(0, 2, (symbols * subcarriers, setting.interferers, 2), dtype=np.int8))
        signal = _applied(_again(own, symbols), sent) + _applied(_again(other, symbols), elsewhere) + noise
    covariance = other @ np.conj(np.swapaxes(other, 1, 2))
    covariance[:, range(antennas), range(antennas)] += 1  # thermal noise
    known, covariance, own, signal, sent = (
        each.astype(np.complex64) for each in (known, covariance, own, signal, sent)
    )
    return Grid(_again(known, symbols), _again(covariance, symbols), signal, sent, bits, _again(own, symbols))


def _slot(
    own: Complex, other: Complex, generator: np.random.Generator, symbols: int
) -> tuple[Complex, Complex, Complex]:
    """Return the channel as reference signals show it, what was received and sent in so many symbols with data."""
    subcarriers, antennas, layers = own.shape
    interferers = other.shape[2]
    references = slot.References.of(max(layers, interferers))
    ours = slot.sent(subcarriers, (OWN_CELL,) * layers, references, generator)
    if symbols > len(ours.data_symbols):
        raise ValueError(f"{symbols} symbols against {len(ours.data_symbols)} of a slot that hold data")
    whole = [
        np.pad(each, ((0, ours.grid.shape[1] - subcarriers), (0, 0), (0, 0)), mode="edge") for each in (own, other)
    ]
    received = np.einsum("nrl,tnl->tnr", whole[0], ours.grid)
    if interferers:
        cells = tuple(OWN_CELL + 1 + number for number in range(interferers))
        theirs = slot.sent(subcarriers, cells, references, generator)
        received += np.einsum("nrl,tnl->tnr", whole[1], theirs.grid)
    received += complex_normal(generator, received.shape)
    taken = list(ours.data_symbols[:symbols])
    return (
        ours.estimated(received)[:subcarriers],
        received[taken, :subcarriers].reshape(-1, antennas),
        ours.grid[taken, :subcarriers].reshape(-1, layers),
    )


def channels(subcarriers: int, antennas: int, users: int, seed: int, setting: Setting = _USUAL) -> Complex:
    """Return ``H[n, r, u]`` of mean power 1: paths of the profile that fade on their own, correlated antennas."""
    generator = np.random.default_rng([seed, users])
    delays, powers = paths(setting)
    gains = complex_normal(generator, (len(delays), antennas, users)) * np.sqrt(powers)[:, None, None]
    correlated = np.einsum("rq,pqu->pru", square_root(correlation(antennas, setting.antenna_correlation)), gains)
    return np.einsum("np,pru->nru", _rotations(subcarriers, delays), correlated)


def sionna_channels(subcarriers: int, antennas: int, users: int, seed: int, setting: Setting = _USUAL) -> Complex:
    """Return the same by Sionna; see `sionna_paths`."""
    gains, delays = sionna_paths(antennas, users, seed, setting)
    return np.einsum("np,pru->nru", _rotations(subcarriers, delays), gains)


def sionna_paths(antennas: int, users: int, seed: int, setting: Setting = _USUAL) -> tuple[Complex, Real]:
    """Return the gain of each path ``[p, r, u]`` and its delay in seconds, as Sionna draws them.

    TDL has correlated antennas; CDL a panel of antennas half a wave apart, as square as their number allows, and every
    user in another direction of the sector. Antennas are vertical and alike in all directions, so that the mean power
    is 1 and the powers of paths are those of the profile.
    """
    import torch
    from sionna.phy import config
    from sionna.phy.channel.tr38901 import CDL, TDL, PanelArray

    config.seed = seed
    if setting.model == "TDL":
        matrix = torch.as_tensor(correlation(antennas, setting.antenna_correlation), dtype=torch.complex64)
        model = TDL(
            setting.profile, setting.delay_spread_s, CARRIER_HZ, num_rx_ant=antennas, num_tx_ant=1, rx_corr_mat=matrix
        )
    else:
        rows = max(count for count in range(1, antennas + 1) if antennas % count == 0 and count * count <= antennas)
        panel, single = (
            PanelArray(
                num_rows_per_panel=many,
                num_cols_per_panel=beside,
                polarization="single",
                polarization_type="V",
                antenna_pattern="omni",
                carrier_frequency=CARRIER_HZ,
            )
            for many, beside in ((rows, antennas // rows), (1, 1))
        )
        turned = np.zeros((users, 3))
        turned[:, 0] = np.radians(np.random.default_rng([seed, users]).uniform(-0.5, 0.5, users) * SECTOR_DEGREES)
        model = CDL(
            setting.profile,
            setting.delay_spread_s,
            CARRIER_HZ,
            ut_array=single,
            bs_array=panel,
            direction="uplink",
            bs_orientation=torch.as_tensor(turned, dtype=torch.float32),
        )
    gains, delays = model(batch_size=users, num_time_steps=1, sampling_frequency=SPACING_HZ)
    by_path = np.asarray(gains.cpu())[:, 0, :, 0, 0, :, 0].transpose(2, 1, 0)
    return by_path.astype(np.complex128), np.asarray(delays.cpu())[0, 0, 0].astype(np.float64)


def has_sionna() -> bool:
    """Return whether Sionna is installed."""
    return importlib.util.find_spec("sionna") is not None


def paths(setting: Setting) -> tuple[Real, Real]:
    """Return the delay of each path in seconds, and its power; these add up to 1."""
    delays, decibels = PROFILES[setting.profile]
    powers = 10 ** (np.array(decibels) / 10)
    return np.array(delays) * setting.delay_spread_s, powers / powers.sum()


def delay_spread(setting: Setting) -> float:
    """Return the root mean square of the delays of a profile, in seconds: what was asked for."""
    delays, powers = paths(setting)
    return float(np.sqrt(powers @ delays**2 - (powers @ delays) ** 2))


def frequency_correlation(setting: Setting, distance: int) -> complex:
    """Return how alike the channel is on subcarriers so far apart: the Fourier transform of the powers."""
    delays, powers = paths(setting)
    return complex(powers @ np.exp(-2j * np.pi * delays * SPACING_HZ * distance))


def correlation(antennas: int, between_neighbours: float) -> Real:
    """Return the correlation of antennas in a row: it falls with the power of their distance."""
    places = np.arange(antennas)
    return between_neighbours ** np.abs(places[:, None] - places[None, :]).astype(np.float64)


def square_root(matrix: Real) -> Real:
    """Return the factor that gives uncorrelated numbers a correlation."""
    return np.linalg.cholesky(matrix)


def qpsk(bits: npt.NDArray[np.int8]) -> Complex:
    """Return symbols of power 1, one per pair of bits (3GPP TS 38.211, section 5.1.3)."""
    return ((1 - 2 * bits[..., 0]) + 1j * (1 - 2 * bits[..., 1])) / np.sqrt(2)


def bits_of(symbols: npt.NDArray[np.complexfloating]) -> npt.NDArray[np.int8]:
    """Return the bits that are most likely behind estimates of symbols."""
    return np.stack([symbols.real < 0, symbols.imag < 0], axis=-1).astype(np.int8)


def complex_normal(generator: np.random.Generator, shape: tuple[int, ...]) -> Complex:
    """Return complex numbers of mean power 1, each part normal."""
    return (generator.standard_normal(shape) + 1j * generator.standard_normal(shape)) / np.sqrt(2)


def _rotations(subcarriers: int, delays: Real) -> Complex:
    return np.exp(-2j * np.pi * SPACING_HZ * np.arange(subcarriers)[:, None] * delays[None, :])


def _again(values: npt.NDArray[np.complexfloating], times: int) -> npt.NDArray[np.complexfloating]:
    return values if times == 1 else np.concatenate([values] * times)


def _applied(matrices: Complex, vectors: Complex) -> Complex:
    return (matrices @ vectors[..., None])[..., 0]
