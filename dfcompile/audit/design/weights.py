"""In how many tiles the weights of a kernel come, so that it fits SRAM alone [ko24]."""

import math
from collections.abc import Mapping, Sequence

from dfcompile.dfmodel_backend import Decision
from dfcompile.dfmodel_backend.check.designs import sram_of
from dfcompile.dfmodel_backend.check.shares import extents_of
from dfcompile.dfmodel_backend.compatibility import Compatibility
from dfcompile.dfmodel_backend.workload.design import Design, DesignKernel, WorkloadKind


def fewest_weight_tiles(
    design: Design,
    decision: Decision,
    inside: Sequence[DesignKernel],
    compatibility: Compatibility,
    levels: Mapping[int, int],
) -> int:
    """Return the fewest tiles of the weights of a kernel alone with which it fits SRAM; if none do they come whole.

    Args:
        design: of chips whose SRAM is one.
        decision: what was decided of it.
        inside: kernels of a configuration.
        compatibility: flaws to repeat.
        levels: of kernels by id, see `levels_of`.
    """
    capacity = design.machine.sram_bytes
    if len(inside) != 1 or not capacity or design.execution.batch.kind is not WorkloadKind.LLM:
        return 1
    whole, halves = (sram_of(design, decision, inside, tiles, compatibility, levels) for tiles in (1, 2))
    shared = 2 * (whole - halves)
    rows, _, _ = extents_of(design, decision, inside[0])
    if whole <= capacity or whole - shared >= capacity or not inside[0].has_weight:
        return 1
    tiles = math.ceil(shared / (capacity - (whole - shared)))
    return tiles if tiles <= rows else 1
