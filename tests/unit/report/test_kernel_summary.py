"""Kernels that are equal in all figures stand together."""

from dfcompile.dfmodel_backend import KernelFigures
from dfcompile.records import replace
from dfcompile.report.summary import kernel_groups

KERNEL = KernelFigures(
    name="q", op="MatMul", configuration=0, flop=2000, dram_bytes=48, chip_bytes=96, received_bytes=60,
    compute_ns=12.0, memory_ns=0.5, network_ns=0.25, time_ns=12.0,
)  # fmt: skip


def test_equal_kernels_of_other_configurations_are_one_group() -> None:
    kernels = (KERNEL, replace(KERNEL, name="exp", flop=1), replace(KERNEL, name="k", configuration=3))

    first, second = kernel_groups(kernels, 4)

    assert (first.kernels, first.count) == (("q", "k"), 2)
    assert (first.flop, first.dram_bytes, first.chip_bytes, first.network_bytes) == (2000, 48, 96, 15.0)
    assert (first.time_s, first.compute_s, first.memory_s, first.network_s) == (12e-9, 12e-9, 0.5e-9, 0.25e-9)
    assert (second.kernels, second.count, second.bound_by) == (("exp",), 1, "compute")


def test_each_figure_keeps_kernels_apart() -> None:
    changes = ({"op": "Reduce"}, {"flop": 1}, {"dram_bytes": 1}, {"chip_bytes": 1}, {"received_bytes": 1},
               {"compute_ns": 1.0}, {"memory_ns": 1.0}, {"network_ns": 1.0}, {"time_ns": 13.0})  # fmt: skip
    kernels = [KERNEL, *(replace(KERNEL, **change) for change in changes)]

    assert len(kernel_groups(kernels, 1)) == len(kernels)
