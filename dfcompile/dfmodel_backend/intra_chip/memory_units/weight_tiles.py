"""Weights in tiles on a chip of memory units (PMUs): fewer PMUs hold them, so that more are left to feed cores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from dfcompile.dfmodel_backend.columns import Column, Members
from dfcompile.dfmodel_backend.intra_chip.set_model import SetModel

if TYPE_CHECKING:
    from dfcompile.dfmodel_backend.intra_chip.memory_units.cycles import PmuModel

ROUNDING = 1e-12


def fewest_pmus(model: SetModel, members: Members) -> Column:
    """Return the PMUs without which sets of kernels, ``[set, kernel]``, are impossible at any speed.

    A kernel has one core; one that is alone loads its weights in as many parts as it has rows.
    """
    assert model.pmu is not None
    needed = model.pmu.least_pmus(members)
    for number in np.flatnonzero(members.sum(axis=1) == 1).tolist():
        kernel = int(np.argmax(members[number]))
        needed[number] = model.pmu.least_pmus_alone(kernel, model.most_weight_tiles[kernel])
    return needed


def weight_tile_choices(model: SetModel, kernel: int) -> Iterator[tuple[int, int]]:
    """Yield parts in which a kernel alone may load its weights, ascending, and its cycles: only where they are fewer.

    Nothing is yielded if it does not fit in any number of parts.
    """
    pmu = model.pmu
    assert pmu is not None
    most = model.most_weight_tiles[kernel]
    if pmu.least_pmus_alone(kernel, most) > pmu.pmus:
        return
    fastest = pmu.least_cycles((kernel,), most)
    parts = _fewest(pmu, kernel, most, pmu.tables[kernel].cycles[-1], 0)
    while True:
        cycles = pmu.least_cycles((kernel,), parts)
        assert cycles is not None
        assert fastest is not None
        yield parts, cycles
        if cycles <= fastest:
            return
        parts = _fewest(pmu, kernel, most, cycles - 1, parts)


def _fewest(pmu: PmuModel, kernel: int, most: int, cycles: int, too_few: int) -> int:
    """Return the fewest parts, more than some, with which a kernel alone meets a number of cycles; ``most`` does."""
    low, high = too_few, most
    while high - low > 1:
        middle = (low + high) // 2
        if pmu.is_possible((kernel,), middle, cycles):
            high = middle
        else:
            low = middle
    return high


def fastest_weight_tiles(model: SetModel, kernel: int) -> int | None:
    """Return the parts with which a kernel alone is fastest, the fewest of them; None if it does not fit in any.

    Parts cost traffic and save PMUs.
    """
    row = np.arange(len(model.works))[None, :] == kernel
    is_counted = "M" in model.rules.counted
    best: tuple[float, int] | None = None
    for parts, _ in weight_tile_choices(model, kernel):
        step = model.steps(row, np.array([parts], np.int64))
        time_ns = float(step.time_ns[0])
        if best is None or time_ns < best[0] * (1 - ROUNDING):
            best = time_ns, parts
        elif is_counted and step.memory_ns[0] * max(1, int(model.inputs[kernel])) >= best[0]:
            break
    return None if best is None else best[1]
