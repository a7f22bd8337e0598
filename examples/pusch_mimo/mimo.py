"""PUSCH MIMO detection: what a base station does with the signals of all antennas, for every subcarrier.

LMMSE with an interference covariance, in NumPy. N subcarriers, R antennas of the base station, L layers that users
send at the same time. A line per formula; README.md explains both sides.
"""

import dace
import numpy as np

N, R, L = (dace.symbol(name) for name in "NRL")


@dace.program
def mimo(
    H: dace.complex64[N, R, L],
    K: dace.complex64[N, R, R],
    y: dace.complex64[N, R],
    s: dace.complex64[N, L],
):
    """Estimate what was sent: ``s = (H* K^-1 H + I)^-1 H* K^-1 y``.

    Args:
        H: channel of each subcarrier, estimated from reference signals.
        K: covariance of interference and noise between the antennas; Hermitian, positive definite.
        y: received.
        s: sent, unit power per layer: the result.
    """
    for n in dace.map[0:N]:
        W = np.conj(np.transpose(H[n])) @ np.linalg.inv(K[n])
        G = W @ H[n] + np.eye(L, dtype=np.complex64)
        s[n] = np.linalg.inv(G) @ (W @ y[n])


def example_inputs(N: int, R: int, L: int) -> dict[str, np.ndarray]:
    """Return a received grid as `data.py` makes it: TDL-A with 100 ns, 15 dB, two interferers."""
    from data import received

    grid = received(subcarriers=N, antennas=R, layers=L, seed=1)
    return {"H": grid.channel, "K": grid.covariance, "y": grid.signal}
