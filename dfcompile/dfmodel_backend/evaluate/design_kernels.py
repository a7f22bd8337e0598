"""What each kernel of a design does in its configuration, on one chip: operations, DRAM bytes, time."""

import numpy as np
from msgspec import Struct

from dfcompile.dfmodel_backend.evaluate.designs import Decision, StepFigures
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel


class DesignKernelFigures(Struct, frozen=True):
    """A kernel, per micro-batch and layer.

    Attributes:
        flop: of all its tiles.
        dram_bytes: read from DRAM for it and written to DRAM; those of the kernels of a configuration add up to its.
        time_ns: of its configuration: its kernels run together, from the first tile to the last.
        bound_by: what bounds the configuration.
    """

    flop: float
    dram_bytes: float
    time_ns: float
    bound_by: str


def design_kernel_figures(
    model: DesignModel, decision: Decision, steps: tuple[StepFigures, ...]
) -> tuple[DesignKernelFigures, ...]:
    """Return the figures of all kernels, in the order of the model.

    Args:
        model: of the design under the decision.
        decision: what was decided.
        steps: figures of the configurations, by their numbers.
    """
    place = np.array([decision.configs[share.kernel.id] for share in model.shares])
    members = place[None, :] == np.arange(len(steps))[:, None]
    tiles, runs = model.tiles_of(members)
    reads, writes = model.repeats(members, np.array([step.weight_tiles for step in steps]))
    streamed = np.zeros(len(model.shares))
    for edge in model.edges:
        if place[edge.source] != place[edge.target]:
            streamed[edge.source] += writes[place[edge.source]] * edge.size_bytes
            streamed[edge.target] += reads[place[edge.target]] * edge.size_bytes
    moved = tiles[place] * streamed + model.held.moved
    return tuple(
        DesignKernelFigures(
            flop=float(runs[number] * tiles[number] * share.work.flop),
            dram_bytes=float(runs[number] * moved[kernel]),
            time_ns=steps[number].time_ns,
            bound_by=steps[number].bound_by,
        )
        for kernel, (share, number) in enumerate(zip(model.shares, place.tolist(), strict=True))
    )
