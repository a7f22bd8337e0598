"""Weights that do not fit SRAM whole: a kernel alone on the chip loads them in tiles [ko24, section 4]."""

import math

import numpy as np
import numpy.typing as npt

from dfcompile.dfmodel_backend.columns import Members
from dfcompile.dfmodel_backend.intra_chip.memory_units.weight_tiles import fastest_weight_tiles
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel


def fewest_weight_tiles(model: DesignModel, row: npt.NDArray[np.bool_]) -> int | None:
    """Return the fewest tiles with which a set of kernels, ``[kernel]``, fits SRAM, or None if none does.

    More than one is possible for one kernel with weights only; fewer are never slower, but where memory units are
    counted: there it is the tiles with which the kernel is fastest.
    """
    capacity = model.sram_capacity
    members = row[None, :]
    if model.pmu is not None:
        if int(row.sum()) == 1:
            return fastest_weight_tiles(model, int(np.argmax(row)))
        return None if exceeds(model, members)[0] else 1
    if not capacity or _sram_bytes(model, members, 1) <= capacity:
        return 1
    inside = np.flatnonzero(row)
    share = model.shares[inside[0]] if len(inside) == 1 else None
    if share is None or not share.weight_bytes or _sram_bytes(model, members, share.rows) > capacity:
        return None
    # What is there in parts is p / tiles, the rest r does not change: p / tiles + r <= capacity.
    rows = int(share.rows)
    whole, finest = _sram_bytes(model, members, 1), _sram_bytes(model, members, rows)
    parted = (whole - finest) * rows / (rows - 1)
    room = capacity - (whole - parted)
    tiles = min(max(2, math.ceil(parted / room)), rows) if room > 0 else rows
    # Rounding may be one off.
    while tiles > 2 and _sram_bytes(model, members, tiles - 1) <= capacity:
        tiles -= 1
    while _sram_bytes(model, members, tiles) > capacity:
        tiles += 1
    return tiles


def exceeds(model: DesignModel, members: Members) -> npt.NDArray[np.bool_]:
    """Return whether sets of kernels, ``[set, kernel]``, with whole weights are too large for SRAM or memory units."""
    if model.pmu is not None:
        return np.asarray(model.pmu.least_pmus(members) > model.pmu.pmus)
    return np.asarray(model.sram_bytes(members) > model.sram_capacity)


def _sram_bytes(model: DesignModel, members: npt.NDArray[np.bool_], parts: int) -> float:
    return float(model.sram_bytes(members, np.array([parts], np.int64))[0])
