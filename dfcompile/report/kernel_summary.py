"""Sums up what the kernels of a mapping do."""

from collections.abc import Iterable

from dfcompile import dfmodel_backend as backend
from dfcompile.report.kernel_figures import KernelGroupSummary, RoofsSummary

_NS_PER_S = 1e9


def roofs_summary(roofs: backend.Roofs) -> RoofsSummary:
    """Return the roofs of one chip."""
    return RoofsSummary(roofs.flop_per_s, roofs.dram_bytes_per_s, roofs.network_bytes_per_s)


def kernel_groups(kernels: Iterable[backend.KernelFigures], chips: int) -> tuple[KernelGroupSummary, ...]:
    """Return the kernels of a mapping, equal ones together, in the order of the first of them.

    Args:
        kernels: in order of execution.
        chips: that share them.
    """
    groups: dict[tuple[object, ...], list[backend.KernelFigures]] = {}
    for one in kernels:
        times = (one.compute_ns, one.memory_ns, one.network_ns, one.time_ns)
        key = (one.op, one.flop, one.dram_bytes, one.chip_bytes, one.received_bytes, *times)
        groups.setdefault(key, []).append(one)
    return tuple(_group(found, chips) for found in groups.values())


def _group(kernels: list[backend.KernelFigures], chips: int) -> KernelGroupSummary:
    one = kernels[0]
    return KernelGroupSummary(
        kernels=tuple(each.name for each in kernels),
        count=len(kernels),
        op=one.op,
        flop=one.flop,
        dram_bytes=one.dram_bytes,
        chip_bytes=one.chip_bytes,
        network_bytes=one.received_bytes / chips,
        time_s=one.time_ns / _NS_PER_S,
        compute_s=one.compute_ns / _NS_PER_S,
        memory_s=one.memory_ns / _NS_PER_S,
        network_s=one.network_ns / _NS_PER_S,
        bound_by=one.bound_by,
    )
