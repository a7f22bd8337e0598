"""An assignment of a design's kernels to configurations, as solvers find it."""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from dfcompile.dfmodel_backend.intra_chip.set_times import arc_times
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel
from dfcompile.dfmodel_backend.kernel_sets.arcs import Arcs


class Fused(Struct, frozen=True):
    """An assignment of kernels, by id, to configurations, and its time."""

    configs: dict[int, int]
    time_ns: float
    stages: tuple[int, ...] = ()  # pipeline stage of each configuration; empty if each stage runs the whole graph


def configs_of(model: DesignModel, chain: Sequence[int]) -> dict[int, int]:
    """Return the configuration of each kernel, by id."""
    return {
        model.shares[position].kernel.id: slot
        for slot, added in enumerate(chain)
        for position in range(added.bit_length())
        if added >> position & 1
    }


def kernel_by_kernel(model: DesignModel, arcs: Arcs) -> Fused | None:
    """Return the assignment of each kernel to the configuration of its position, or None if one does not fit.

    ``arcs`` are those of `arcs_kernel_by_kernel`.
    """
    times = arc_times(model, arcs)
    if not np.isfinite(times).all():
        return None
    return Fused({share.kernel.id: position for position, share in enumerate(model.shares)}, float(times.sum()))
