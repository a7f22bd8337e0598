"""What sets of kernels need as configurations; degrees of pipelines and batches do not matter."""

import numpy as np
import numpy.typing as npt

from dfcompile.dfmodel_backend.columns import Members
from dfcompile.dfmodel_backend.intra_chip.memory_units.weight_tiles import fewest_pmus
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel
from dfcompile.dfmodel_backend.intra_chip.weight_tiling import exceeds, fewest_weight_tiles
from dfcompile.dfmodel_backend.kernel_sets.arcs import SetLimits

CHUNK = 8192  # rows that are worked on at a time, to bound memory


def set_limits(model: DesignModel, members: Members) -> SetLimits:
    """Return which sets of kernels, ``[set, kernel]``, break no limit of cores or SRAM."""
    parts = [_chunk(model, members[start : start + CHUNK], start) for start in range(0, len(members), CHUNK)]
    if not parts:
        return SetLimits(np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0), np.zeros(0))
    return SetLimits(
        fitting=np.concatenate([part.fitting for part in parts]),
        weight_tiles=np.concatenate([part.weight_tiles for part in parts]),
        crossing=np.concatenate([part.crossing for part in parts]),
        compute_ns=np.concatenate([part.compute_ns for part in parts]),
    )


def least_limits(model: DesignModel, members: Members) -> SetLimits:
    """Return the same where memory units are counted, as if cores were the only limit of speed.

    No set that is possible is left out, and none is slower: compute is that of cores, weights are whole.
    """
    assert model.pmu is not None
    fits = _fits_cores(model, members) & (fewest_pmus(model, members) <= model.pmu.pmus)
    rows = np.flatnonzero(fits)
    return SetLimits(
        fitting=rows.astype(np.int32),
        weight_tiles=np.ones(len(rows), np.int32),
        crossing=model.crossing_bytes(members[rows]),
        compute_ns=model.core_compute_ns(members[rows]),
    )


def _fits_cores(model: DesignModel, members: Members) -> npt.NDArray[np.bool_]:
    """Return which sets have a core for each kernel, and do not mix kernels that run once per input with others."""
    fits: npt.NDArray[np.bool_] = members.sum(axis=1) <= model.design.machine.cores
    inputs = np.array([max(0, share.kernel.num_input) > 0 for share in model.shares])
    if inputs.any():
        fits &= ~((members & inputs).any(axis=1) & (members & ~inputs).any(axis=1))
    return fits


def _chunk(model: DesignModel, members: Members, first: int) -> SetLimits:
    tiles = np.ones(len(members), np.int32)
    kernels = members.sum(axis=1)
    fits = _fits_cores(model, members)
    if model.sram_capacity or model.pmu is not None:
        too_much = exceeds(model, members)
        for row in np.flatnonzero((too_much | (model.pmu is not None)) & (kernels == 1)):
            found = fewest_weight_tiles(model, members[row])
            too_much[row] = found is None
            tiles[row] = found or 1
        fits &= ~too_much
    rows = np.flatnonzero(fits)
    return SetLimits(
        fitting=(rows + first).astype(np.int32),
        weight_tiles=tiles[rows],
        crossing=model.crossing_bytes(members[rows]),
        compute_ns=model.tile_compute_ns(members[rows], tiles[rows]),
    )
