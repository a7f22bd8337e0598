"""What sets of kernels need as configurations; degrees of pipelines and batches do not matter."""

import numpy as np

from dfcompile.dfmodel_backend.columns import Members
from dfcompile.dfmodel_backend.design_model import DesignModel
from dfcompile.dfmodel_backend.fusion_arcs import SetLimits
from dfcompile.dfmodel_backend.weight_tiling import exceeds, fewest_weight_tiles

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


def _chunk(model: DesignModel, members: Members, first: int) -> SetLimits:
    tiles = np.ones(len(members), np.int32)
    kernels = members.sum(axis=1)
    fits = kernels <= model.design.machine.cores
    inputs = np.array([max(0, share.kernel.num_input) > 0 for share in model.shares])
    if inputs.any():
        fits &= ~((members & inputs).any(axis=1) & (members & ~inputs).any(axis=1))
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
