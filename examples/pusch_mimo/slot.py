"""A slot of the 5G NR PUSCH with its reference signals (DMRS), by Sionna: what users send, and what is learnt from it.

Every user has a layer of its own, and a port of the reference signals (3GPP TS 38.211, section 6.4.1.1). These are
sent twice in a slot of 14 OFDM symbols: two symbols in all for up to 4 layers, so that 12 hold data, else twice two
symbols one after the other, so that 10 do. Data is QPSK, coded as a transport block.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from sionna.phy.nr import PUSCHTransmitter

Complex = npt.NDArray[np.complex128]

SUBCARRIERS_PER_BLOCK = 12
MOST_BLOCKS = 275  # of a carrier
MOST_LAYERS = 12  # that reference signals of type 2, two symbols long, tell apart
_SCHEME = 9  # of table 5.1.3.1-1 of TS 38.214: QPSK, code rate 679/1024
_ANTENNAS_AT_ONCE = 8  # bounds the memory of an estimate


@dataclass(frozen=True, slots=True)
class References:
    """How the reference signals lie in a slot.

    Attributes:
        kind: configuration type 1 (each second subcarrier to a group of ports) or 2 (two of six).
        length: symbols one after the other.
        groups: of ports; their symbols hold no data.
    """

    kind: int
    length: int
    groups: int

    @classmethod
    def of(cls, layers: int) -> "References":
        """Return the fewest that tell so many layers apart.

        Raises:
            ValueError: there are none.

        >>> References.of(8)
        References(kind=1, length=2, groups=2)
        """
        for most, kind, length, groups in ((4, 1, 1, 2), (8, 1, 2, 2), (MOST_LAYERS, 2, 2, 3)):
            if layers <= most:
                return cls(kind, length, groups)
        raise ValueError(f"{layers} layers against at most {MOST_LAYERS} that reference signals tell apart")


@dataclass(frozen=True, slots=True, eq=False)
class Sent:
    """What users send in a slot.

    Attributes:
        grid: ``x[t, n, u]`` of symbol t, subcarrier n and user u; reference signals have twice or three times the power
            of data, which is 1, on the subcarriers that they use.
        data_symbols: those without reference signals, in their order.
        transmitter: that made it.
        references: how reference signals lie.
    """

    grid: Complex
    data_symbols: tuple[int, ...]
    transmitter: "PUSCHTransmitter"
    references: References

    def estimated(self, received: Complex) -> Complex:
        """Return the channel as the reference signals show it: least squares, interpolated over subcarriers.

        Values at the same subcarrier are averaged over the symbols: users do not move.

        Args:
            received: ``y[t, n, r]``.

        Returns:
            ``H[n, r, u]``.
        """
        import torch
        from sionna.phy.nr import PUSCHLSChannelEstimator

        estimator = PUSCHLSChannelEstimator(
            self.transmitter.resource_grid,
            self.references.length,
            1,
            self.references.groups,
            interpolation_type="lin_time_avg",
        )
        found = []
        for first in range(0, received.shape[2], _ANTENNAS_AT_ONCE):
            antennas = received[:, :, first : first + _ANTENNAS_AT_ONCE].transpose(2, 0, 1)[None, None]
            values, _ = estimator(torch.as_tensor(antennas, dtype=torch.complex64), torch.tensor(1.0))
            found.append(np.asarray(values.cpu())[0, 0, :, :, 0, 0, :].transpose(2, 0, 1))
        return np.concatenate(found, axis=1).astype(np.complex128)


def sent(subcarriers: int, cells: tuple[int, ...], references: References, generator: np.random.Generator) -> Sent:
    """Return a slot that users of cells send, on as many whole blocks of 12 subcarriers as are needed.

    Args:
        subcarriers: at least so many.
        cells: of each user; users of one cell have different ports.
        references: as all of these cells have them.
        generator: draws the transport blocks.

    Raises:
        ValueError: a carrier does not have so many subcarriers.
    """
    import torch
    from sionna.phy.nr import CarrierConfig, PUSCHConfig, PUSCHDMRSConfig, PUSCHTransmitter, TBConfig

    blocks = -(-subcarriers // SUBCARRIERS_PER_BLOCK)
    if blocks > MOST_BLOCKS:
        most = MOST_BLOCKS * SUBCARRIERS_PER_BLOCK
        raise ValueError(f"{subcarriers} subcarriers of a slot with reference signals against at most {most}")
    users = [
        PUSCHConfig(
            CarrierConfig(n_cell_id=cell, subcarrier_spacing=30, n_size_grid=blocks),
            PUSCHDMRSConfig(
                config_type=references.kind,
                length=references.length,
                additional_position=1,
                num_cdm_groups_without_data=references.groups,
                dmrs_port_set=[port],
            ),
            TBConfig(channel_type="PUSCH", mcs_table=1, mcs_index=_SCHEME),
            n_rnti=1 + port,
        )
        for port, cell in enumerate(cells)
    ]
    transmitter = PUSCHTransmitter(users, return_bits=False)
    payload = generator.integers(0, 2, (1, len(users), users[0].tb_size))
    grid = np.asarray(transmitter(torch.as_tensor(payload, dtype=torch.float32)).cpu())[0, :, 0]
    symbols = set(range(grid.shape[1])) - set(users[0].dmrs_symbol_indices)
    return Sent(grid.transpose(1, 2, 0).astype(np.complex128), tuple(sorted(symbols)), transmitter, references)
