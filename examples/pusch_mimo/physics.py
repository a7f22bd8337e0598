"""The physics: signal to interference and noise after detection, and bit errors, against theory."""

from dataclasses import dataclass
from math import comb, erfc, sqrt

import numpy as np
from data import Complex, Real, bits_of, complex_normal, qpsk


@dataclass(frozen=True, slots=True)
class Measured:
    """What detection of many symbols gave.

    Attributes:
        snr_db: of one layer at one antenna.
        error: mean square of the estimates' error.
        error_expected: what theory says of the very channels that were drawn.
        bit_errors: as a part of all bits.
        bit_errors_expected: the same.
        bits: that were sent.
    """

    snr_db: float
    error: float
    error_expected: float
    bit_errors: float
    bit_errors_expected: float
    bits: int

    @property
    def deviations(self) -> tuple[float, float]:
        """How many standard deviations of the draw the errors and the bit errors are off."""
        spread = sqrt(max(self.bit_errors_expected * (1 - self.bit_errors_expected), 1 / self.bits) / self.bits)
        by_draw = self.error_expected * sqrt(2 / self.bits)
        return (
            abs(self.error - self.error_expected) / by_draw,
            abs(self.bit_errors - self.bit_errors_expected) / spread,
        )


def detect(channel: Complex, covariance: Complex, signal: Complex) -> Complex:
    """Return the estimates of what was sent: the formula of mimo.py in double precision."""
    weights = np.conj(np.swapaxes(channel, 1, 2)) @ np.linalg.inv(covariance)
    gram = weights @ channel + np.eye(channel.shape[-1])
    return (np.linalg.inv(gram) @ (weights @ signal[..., None]))[..., 0]


def sinr(channel: Complex, covariance: Complex) -> Real:
    """Return the ratio of each layer's power to what is left of the others and noise: ``1 / [G^-1]_ll - 1``."""
    weights = np.conj(np.swapaxes(channel, 1, 2)) @ np.linalg.inv(covariance)
    left = np.linalg.inv(weights @ channel + np.eye(channel.shape[-1]))
    return 1 / np.real(np.diagonal(left, axis1=1, axis2=2)) - 1


def measured(snr_db: float, antennas: int, layers: int, count: int, seed: int) -> Measured:
    """Detect symbols over independent Rayleigh channels in white noise."""
    generator = np.random.default_rng(seed)
    channel = 10 ** (snr_db / 20) * complex_normal(generator, (count, antennas, layers))
    bits = generator.integers(0, 2, (count, layers, 2), dtype=np.int8)
    sent = qpsk(bits)
    signal = (channel @ sent[..., None])[..., 0] + complex_normal(generator, (count, antennas))
    white = np.broadcast_to(np.eye(antennas), (count, antennas, antennas))
    found = detect(channel, white.astype(np.complex128), signal)
    ratio = sinr(channel, white.astype(np.complex128))
    return Measured(
        snr_db,
        float(np.mean(np.abs(found - sent) ** 2)),
        float(np.mean(1 / (1 + ratio))),
        float(np.mean(bits_of(found) != bits)),
        combining_errors(snr_db, antennas) if layers == 1 else float(np.mean(tail(np.sqrt(ratio)))),
        bits.size,
    )


def tail(values: Real) -> Real:
    """Return the probability that a normal number is larger."""
    return np.vectorize(lambda value: 0.5 * erfc(value / sqrt(2)))(values)


def combining_errors(snr_db: float, antennas: int) -> float:
    """Return the bit error rate of QPSK of one layer over Rayleigh channels: maximum ratio combining.

    A closed form (Proakis, Digital Communications, section on diversity): ``p^R * sum_k C(R-1+k, k) (1-p)^k`` with
    ``p = (1 - sqrt(g / (1 + g))) / 2`` and g the power per bit.
    """
    per_bit = 10 ** (snr_db / 10) / 2
    p = (1 - sqrt(per_bit / (1 + per_bit))) / 2
    return float(p**antennas * sum(comb(antennas - 1 + k, k) * (1 - p) ** k for k in range(antennas)))


def main() -> int:
    """Print both against theory; 1 if one is off by more than five standard deviations."""
    worst = 0.0
    print("antennas layers  SNR dB   error   theory   bit errors   theory   deviations")
    for antennas, layers, first in ((2, 1, -5), (4, 1, -5), (8, 4, -5), (16, 16, 0), (64, 8, -15)):
        for number, snr_db in enumerate((first, first + 5, first + 10)):
            one = measured(snr_db, antennas, layers, 200_000 // (antennas * layers), seed=number)
            off = one.deviations
            worst = max(worst, *off)
            print(
                f"{antennas:8} {layers:6} {snr_db:7.0f} {one.error:7.4f} {one.error_expected:8.4f} "
                f"{one.bit_errors:12.5f} {one.bit_errors_expected:8.5f}   {off[0]:.1f} {off[1]:.1f}"
            )
    return int(worst > 5)


if __name__ == "__main__":
    raise SystemExit(main())
