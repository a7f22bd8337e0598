"""Lower bounds on the time of every mapping, and what makes an impossible one possible."""

import math

from dfcompile.dfmodel_backend.intra_chip.configuration import FINEST, ConfigurationModel
from dfcompile.dfmodel_backend.workload.chip_workload import NO_SOURCE
from dfcompile.errors import InfeasibleError


def lower_bound_ns(model: ConfigurationModel) -> float:
    """Return a time that no mapping beats: all compute with no core idle, all unavoidable DRAM bytes.

    Unavoidable are the model's inputs and outputs and each weight once.
    """
    chip = model.system.accelerator
    if model.options.compute_utilization > 0:
        flop = sum(kernel.flop for kernel in model.workload.kernels)
        compute_ns = flop / (model.options.compute_utilization * chip.peak_gflops)
    else:
        area = -(-sum(table.least_area for table in model.tables) // chip.cores)
        slowest = max((table.cycles[0] for table in model.tables), default=0)
        compute_ns = max(area, slowest) / chip.frequency_ghz
    memory_ns = sum(unavoidable_bytes(model)) / model.system.dram_gb_per_s
    network_ns = sum(kernel.network_ns for kernel in model.workload.kernels)
    return model.options.overlap.time_ns(compute_ns, memory_ns, network_ns)


def unavoidable_bytes(model: ConfigurationModel) -> list[int]:
    """Return, per kernel, DRAM bytes that its configuration moves in any mapping; no byte is counted twice."""
    found = [0] * len(model.workload.kernels)
    for weight in model.workload.weights:
        if weight.kernels:
            found[weight.kernels[0]] += weight.size_bytes
    for flow in model.workload.flows:
        if flow.leaves and flow.source != NO_SOURCE:
            found[flow.source] += flow.size_bytes
        elif flow.source == NO_SOURCE and flow.readings:
            found[flow.readings[0].kernel] += flow.size_bytes
    return found


def require_kernels_fit(model: ConfigurationModel) -> None:
    """Check that each kernel fits the chip alone: then kernel by kernel is a mapping, if DRAM holds it.

    Raises:
        InfeasibleError: naming the kernel, its SRAM and what the chip would need.
    """
    capacity = model.system.accelerator.sram_bytes
    if not capacity:
        return
    for number, kernel in enumerate(model.workload.kernels):
        members = (number,)
        if model.fitting_weight_tiles(1 << number, members) is not None:
            continue
        weight_tiles = model.most_weight_tiles(members)
        needed = model.sram_bytes(1 << number, members, FINEST, weight_tiles)
        raise InfeasibleError(
            f"kernel {kernel.name!r}: needs {needed} bytes of SRAM, alone and in the finest tiles, "
            f"against {_number(capacity)} of the chip ({_remedy(model, needed)})"
        )


def no_chain_error(model: ConfigurationModel) -> InfeasibleError:
    """Return the error for kernels that fit one by one but not in sequence: DRAM or the count of configurations."""
    capacity = model.system.dram_capacity_bytes
    before = 0
    worst, worst_name = 0, ""
    for number, kernel in enumerate(model.workload.kernels):
        live = model.live_bytes(before, 1 << number)
        if live > worst:
            worst, worst_name = live, kernel.name
        before |= 1 << number
    if capacity and worst > capacity:
        return InfeasibleError(
            f"kernel {worst_name!r}: found {worst} bytes alive in DRAM, kernel by kernel, against {_number(capacity)} "
            f"of the chip (give dram.capacity_bytes at least {worst}, or more chips)"
        )
    return InfeasibleError(
        f"graph: no mapping in at most {model.options.max_configurations} configurations fits SRAM and cores "
        f"(expected up to {len(model.workload.kernels)} configurations)"
    )


def _remedy(model: ConfigurationModel, needed: int) -> str:
    sram = model.system.accelerator.sram
    if sram.per_core and sram.value > 0:
        return f"at least {math.ceil(needed / sram.value)} cores, or accelerator.sram_bytes_per_core of more"
    return f"accelerator.sram_bytes of at least {needed}"


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:.1f}"
