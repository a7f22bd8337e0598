"""Cores and memory units (PMUs) of the configurations of an assignment: the fewest with which no time is lost."""

import math
from typing import assert_never

import numpy as np
import numpy.typing as npt

from dfcompile.dfmodel_backend.columns import Members
from dfcompile.dfmodel_backend.intra_chip.memory_units.cycles import Allocation
from dfcompile.dfmodel_backend.intra_chip.set_model import StepColumns
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel
from dfcompile.dfmodel_backend.options import Overlap

ROUNDING = 1e-12


def allocations(
    model: DesignModel, members: Members, weight_tiles: npt.NDArray[np.int64], steps: StepColumns
) -> tuple[Allocation | None, ...]:
    """Return what each configuration, ``[set, kernel]``, takes; None where memory units are not counted.

    Cores wait where traffic or exchange, at the same time, takes longer: then fewer of them do, as in the original's
    second objective, cores and PMUs [ko24].
    """
    return tuple(
        _allocation(model, members[number], int(weight_tiles[number]), steps, number) for number in range(len(members))
    )


def _allocation(
    model: DesignModel, row: npt.NDArray[np.bool_], parts: int, steps: StepColumns, number: int
) -> Allocation | None:
    inside = np.flatnonzero(row).tolist()
    if model.pmu is None or not inside:
        return None
    least = model.pmu.least_cycles(inside, parts)
    assert least is not None
    hidden_ns = _hidden_ns(model, steps, number)
    slowest = max(model.pmu.tables[kernel].cycles[-1] for kernel in inside)
    if math.isfinite(hidden_ns):
        tiles = 1 if any(model.shares[kernel].kernel.num_input for kernel in inside) else model.tiles
        hidden = hidden_ns * model.design.machine.frequency_ghz / tiles * (1 + ROUNDING)
        slowest = max(least, math.floor(min(hidden, slowest)))
    return model.pmu.allocation(inside, parts, slowest)


def _hidden_ns(model: DesignModel, steps: StepColumns, number: int) -> float:
    """Return how long a configuration may compute without being slower than it is anyway."""
    execution = model.design.execution
    if "C" not in execution.counted:
        return math.inf
    memory = float(steps.memory_ns[number]) if "M" in execution.counted else 0.0
    network = float(steps.network_ns[number]) if "N" in execution.counted else 0.0
    match execution.overlap:
        case Overlap.PERFECT_OVERLAP:
            return max(memory, network)
        case Overlap.OVERLAP_COMPUTE_MEMORY:
            return memory
        case Overlap.NO_OVERLAP:
            return 0.0
    assert_never(execution.overlap)
