"""Sums up what the kernels of a mapping do."""

from collections.abc import Iterable

from dfcompile import dfmodel_backend as backend
from dfcompile.report.filled import filled
from dfcompile.report.kernel_figures import KernelGroupSummary


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
    names = tuple(each.name for each in kernels)
    return filled(KernelGroupSummary, one, kernels=names, count=len(kernels), network_bytes=one.received_bytes / chips)
