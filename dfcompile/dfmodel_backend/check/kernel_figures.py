"""Accepts or rejects what a mapping says of its kernels: recounted task by task."""

import numpy as np

from dfcompile.canonical_dag import NO_KERNEL, CanonicalDag
from dfcompile.dfmodel_backend.attained.kernel_figures import KernelFigures
from dfcompile.dfmodel_backend.attained.mapping import TaskMapping
from dfcompile.dfmodel_backend.check.requirements import joined, require, require_at_most, require_close
from dfcompile.dfmodel_backend.machine.system import System
from dfcompile.dfmodel_backend.options import Overlap
from dfcompile.errors import VerificationError

SUMMED = 1e-9  # relative: of sums over many tasks, in another order


def check_kernel_figures(dag: CanonicalDag, system: System, overlap: Overlap, mapping: TaskMapping) -> None:
    """Check the figures of the kernels of a mapping.

    * Every kernel with tasks is there once, in the configuration of its tasks, with its operations.
    * It lasts from the first start to the last end of its tasks; times are joined by the overlap rule, and none is
      longer than its configuration's.
    * DRAM bytes of the kernels of a configuration are those of the configuration; none has more than its tasks read and
      write.
    * What exchanges bring is all theirs.
    * No bandwidth is exceeded. Operations per second may be above the peak: a task that joins streams takes an
      element of each in a cycle, and adds them all.

    Args:
        dag: the lowering, or the share of one chip, volumes in elements.
        system: with the chips in use.
        overlap: of compute, memory and network.
        mapping: to check.

    Raises:
        VerificationError: naming the rule, found against expected.
    """
    nodes: dict[int, list[int]] = {}  # by scope
    computational = np.flatnonzero(dag.is_computational)
    for node, number in zip(computational.tolist(), dag.node_scope[computational].tolist(), strict=True):
        nodes.setdefault(number, []).append(node)
    tasks: dict[str, list[int]] = {}
    flop: dict[str, int] = {}
    for number, own in nodes.items():
        scope = dag.scopes[number]
        kernel = None if scope.kernel == NO_KERNEL else dag.kernels[scope.kernel]
        name = scope.name if kernel is None else kernel.name
        tasks.setdefault(name, []).extend(own)
        flop[name] = 0 if kernel is None else kernel.flop
    require("names of kernels", sorted(one.name for one in mapping.kernels), sorted(tasks))
    configuration = np.full(dag.nodes_count, -1, dtype=np.int64)
    for number, found in enumerate(mapping.configurations):
        configuration[found.part.node[found.part.dag.is_computational]] = number
    moved = _moved(dag)
    for one in mapping.kernels:
        own, where = tasks[one.name], f"kernel {one.name!r}"
        require(f"{where}: configurations", {one.configuration}, set(configuration[own].tolist()))
        require(f"{where}: operations", one.flop, flop[one.name])
        require(f"{where}: bytes on the chip", one.chip_bytes, int(moved[own].sum()))
        cycles = int(mapping.schedule.last_out[own].max()) - int(mapping.schedule.start[own].min())
        require_close(f"{where}: compute", one.compute_ns, cycles / system.accelerator.frequency_ghz, SUMMED)
        require_close(f"{where}: memory", one.memory_ns, one.dram_bytes / system.dram_gb_per_s, SUMMED)
        require_close(f"{where}: time", one.time_ns, joined(one, overlap), SUMMED)
        require_at_most(f"{where}: bytes of DRAM", one.dram_bytes, one.chip_bytes, SUMMED)
        require_at_most(f"{where}: time", one.time_ns, mapping.configurations[one.configuration].time_ns, SUMMED)
        _check_bandwidths(where, one, mapping)
    for number, found in enumerate(mapping.configurations):
        own_kernels = [one for one in mapping.kernels if one.configuration == number]
        of_stores = sum(store.dram_read_bytes + store.dram_write_bytes for store in found.stores)
        require(f"configuration {number}: DRAM of kernels", sum(one.dram_bytes for one in own_kernels), of_stores)
        network_ns = sum(one.network_ns for one in own_kernels)
        require_close(f"configuration {number}: network of kernels", network_ns, found.network_ns, SUMMED)
    require("bytes from other chips", sum(one.received_bytes for one in mapping.kernels), mapping.moved_bytes)


def _moved(dag: CanonicalDag) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the bytes on the edges of each task, from and to tasks and buffers."""
    real = dag.is_computational | dag.is_buffer
    size = np.where(real[dag.edge_source] & real[dag.edge_target], dag.edge_volume * dag.edge_element_bytes, 0)
    moved = np.zeros(dag.nodes_count, dtype=np.int64)
    np.add.at(moved, dag.edge_source, size)
    np.add.at(moved, dag.edge_target, size)
    return moved


def _check_bandwidths(where: str, one: KernelFigures, mapping: TaskMapping) -> None:
    roofs, time_s = mapping.roofs, one.time_ns / 1e9
    limits = (
        ("bytes of DRAM", one.dram_bytes, roofs.dram_bytes_per_s),
        ("bytes from other chips", one.received_bytes / mapping.chips, roofs.network_bytes_per_s),
    )
    for what, amount, rate in limits:
        if rate is not None and amount > time_s * rate * (1 + SUMMED):
            raise VerificationError(f"{where}: found {amount} {what} in {time_s} s against at most {rate} per second")
