"""Why kernels of a graph have no mapping, and what would be enough."""

import math

import numpy as np

from dfcompile.dfmodel_backend.intra_chip.graph_model import GraphModel
from dfcompile.dfmodel_backend.intra_chip.set_times import tiles_alone
from dfcompile.dfmodel_backend.machine.system import Amount
from dfcompile.errors import InfeasibleError


def require_kernels_fit(model: GraphModel, sram: Amount) -> None:
    """Check that each kernel fits the chip alone: then kernel by kernel is a mapping, if DRAM holds it.

    Args:
        model: of the chip.
        sram: as the system file gives it.

    Raises:
        InfeasibleError: naming the kernel, its SRAM and what the chip would need.
    """
    if not model.sram_capacity:
        return
    for number, work in enumerate(model.works):
        if tiles_alone(model, number) is None:
            needed = int(model.sram_alone(number, model.most_weight_tiles[number]))
            raise InfeasibleError(
                f"kernel {work.name!r}: needs {needed} bytes of SRAM, alone and in the finest tiles, "
                f"against {_number(model.sram_capacity)} of the chip ({_remedy(sram, needed)})"
            )


def no_chain_error(model: GraphModel) -> InfeasibleError:
    """Return the error for kernels that fit one by one but not in sequence: DRAM or the count of configurations."""
    count, capacity = len(model.works), model.machine.dram_bytes
    live = model.waiting_bytes(np.tri(count, k=-1, dtype=bool), np.eye(count, dtype=bool)) + model.always_bytes
    worst = int(live.max(initial=0))
    if capacity and worst > capacity:
        name = model.works[int(np.argmax(live))].name
        return InfeasibleError(
            f"kernel {name!r}: found {worst} bytes alive in DRAM, kernel by kernel, against {_number(capacity)} "
            f"of the chip (give dram.capacity_bytes at least {worst}, or more chips)"
        )
    return InfeasibleError(
        f"graph: no mapping in at most {model.options.max_configurations} configurations fits SRAM and cores "
        f"(expected up to {count} configurations)"
    )


def _remedy(sram: Amount, needed: int) -> str:
    if sram.per_core and sram.value > 0:
        return f"at least {math.ceil(needed / sram.value)} cores, or accelerator.sram_bytes_per_core of more"
    return f"accelerator.sram_bytes of at least {needed}"


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:.1f}"
