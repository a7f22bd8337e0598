"""Accepts or rejects mappings of lowerings: knows the rules, and nothing of how configurations were chosen."""

import numpy as np

from dfcompile.canonical_dag import NO_KERNEL, CanonicalDag
from dfcompile.canonical_dag.dag import Int64
from dfcompile.dfmodel_backend.attained.kernel_figures import KernelFigures
from dfcompile.dfmodel_backend.attained.mapping import TaskMapping
from dfcompile.dfmodel_backend.check.held_bytes import check_bytes
from dfcompile.dfmodel_backend.check.requirements import EXACT, joined, require, require_at_most, require_close
from dfcompile.dfmodel_backend.check.task_memory import Recount
from dfcompile.dfmodel_backend.machine.cost import cost_usd, power_w
from dfcompile.dfmodel_backend.machine.system import System
from dfcompile.dfmodel_backend.options import Overlap
from dfcompile.distinct import distinct
from dfcompile.errors import VerificationError
from dfcompile.scheduler import check
from dfcompile.scheduler.simulation import simulate
from dfcompile.scheduler.simulation.simulator import replay_of

NS_PER_S = 1e9
NO_CONFIGURATION = -1
SUMMED = 1e-9  # relative: of sums over many tasks, in another order


def check_task_mapping(dag: CanonicalDag, system: System, overlap: Overlap, mapping: TaskMapping) -> None:
    """Check a mapping of a lowering on one chip of a system, or of one chip's share on several.

    Of shares `check_task_share` checks what they are and what chips exchange.

    * Its schedule is one of all tasks on the chip's cores, and a replay of it takes as long as it says.
    * Configurations follow one another, and no kernel is in two.
    * The bytes of every configuration are those of the edges that do not stream, and SRAM holds what it is said to hold
      in every cycle.
    * Times are cycles x period and bytes / bandwidth, joined by the overlap rule; all figures are sums of these.
    * What it says of kernels is what `_check_kernels` recounts.

    Args:
        dag: the lowering, or the share of one chip, volumes in elements.
        system: of which one chip is used; of several with the chips in use.
        overlap: of compute, memory and network.
        mapping: to check.

    Raises:
        VerificationError: naming the rule, found against expected.
    """
    check(mapping.machine_dag, mapping.schedule)
    require("cycles of the schedule", mapping.schedule.makespan_cycles, _replayed_cycles(mapping))
    require("processing elements", mapping.schedule.pes, system.accelerator.cores)
    configuration = _configuration_of_nodes(dag, mapping)
    _check_order(mapping, configuration)
    check_bytes(Recount(dag, configuration, mapping.schedule.streamed), mapping, system)
    _check_times(system, overlap, mapping)
    _check_kernels(dag, system, overlap, mapping, configuration)


def _replayed_cycles(mapping: TaskMapping) -> int:
    """Return the cycles of a replay; where blocks overlap, configurations still do not, and are replayed one by one."""
    if mapping.schedule.barrier:
        return simulate(mapping.machine_dag, replay_of(mapping.schedule), details=False).makespan_cycles
    return sum(
        simulate(found.part.dag, replay_of(found.schedule), details=False).makespan_cycles
        for found in mapping.configurations
    )


def _configuration_of_nodes(dag: CanonicalDag, mapping: TaskMapping) -> Int64:
    """Return the configuration of each task by the tasks of its part, shape [nodes]."""
    number = np.full(dag.nodes_count, NO_CONFIGURATION, dtype=np.int64)
    kernels: dict[int, int] = {}
    for place, found in enumerate(mapping.configurations):
        nodes = found.part.node[found.part.dag.is_computational]
        if (number[nodes] != NO_CONFIGURATION).any():
            raise VerificationError(f"configuration {place}: found a task for the second time")
        number[nodes] = place
        for kernel in {dag.scopes[scope].kernel for scope in distinct(dag.node_scope[nodes]).tolist()}:
            if kernel >= 0 and kernels.setdefault(kernel, place) != place:
                name = dag.kernels[kernel].name
                raise VerificationError(f"kernel {name!r}: found in configurations {kernels[kernel]} and {place}")
    lost = dag.is_computational & (number == NO_CONFIGURATION)
    if lost.any():
        raise VerificationError(f"node {dag.node_name(int(np.argmax(lost)))!r}: in no configuration")
    return number


def _check_order(mapping: TaskMapping, configuration: Int64) -> None:
    """Check that configurations follow one another."""
    schedule = mapping.schedule
    now = 0
    for place, found in enumerate(mapping.configurations):
        own = configuration == place
        begin, end = int(schedule.start[own].min()), int(schedule.last_out[own].max())
        if begin < now or end != now + found.cycles:
            raise VerificationError(
                f"configuration {place}: found cycles {begin} to {end} against {now} to {now + found.cycles}"
            )
        now = end
    require("cycles of all configurations", schedule.makespan_cycles, now)


def _check_times(system: System, overlap: Overlap, mapping: TaskMapping) -> None:
    system = system.one_chip if mapping.chips == 1 else system
    require("chips", mapping.chips, system.chips)
    total_ns = 0.0
    for place, found in enumerate(mapping.configurations):
        period_ns = 1 / system.accelerator.frequency_ghz
        require_close(f"configuration {place}: compute", found.compute_ns, period_ns * found.cycles)
        moved = sum(store.dram_read_bytes + store.dram_write_bytes for store in found.stores)
        require_close(f"configuration {place}: memory", found.memory_ns, moved / system.dram_gb_per_s)
        if mapping.chips == 1:
            require_close(f"configuration {place}: network", found.network_ns, 0.0)
        require_close(
            f"configuration {place}: time",
            found.time_ns,
            joined(overlap, found.compute_ns, found.memory_ns, found.network_ns),
        )
        total_ns += found.time_ns
    require_close("time", mapping.time_s, total_ns / NS_PER_S)
    moved = sum(found.dram_read_bytes + found.dram_write_bytes for found in mapping.configurations)
    require("bytes of DRAM", mapping.dram_bytes, moved * system.chips)
    most = max((found.sram_bytes for found in mapping.configurations), default=0)
    require("bytes of SRAM", mapping.sram_bytes, most)
    require_close("cost", mapping.cost_usd, cost_usd(system))
    require_close("power", mapping.power_w, power_w(system))
    require_close("energy", mapping.energy_j, power_w(system) * total_ns / NS_PER_S)
    parts = mapping.parts
    together = parts.work_ns + parts.idle_elements_ns + parts.waiting_ns + parts.throttled_ns + parts.whole_blocks_ns
    require_close("parts of the time", together + parts.memory_ns + parts.network_ns, total_ns, 1e-9)
    if mapping.bound_time_s > mapping.time_s * (1 + EXACT):
        raise VerificationError(f"bound: found {mapping.bound_time_s} s against at most the time {mapping.time_s} s")


def _check_kernels(
    dag: CanonicalDag, system: System, overlap: Overlap, mapping: TaskMapping, configuration: Int64
) -> None:
    """Check the figures of the kernels of a mapping.

    * Every kernel with tasks is there once, in the configuration of its tasks, with its operations.
    * It lasts from the first start to the last end of its tasks; times are joined by the overlap rule, and none is
      longer than its configuration's.
    * DRAM bytes of the kernels of a configuration are those of the configuration; none has more than its tasks read and
      write.
    * What exchanges bring is all theirs.
    * No bandwidth is exceeded. Operations per second may be above the peak: a task that joins streams takes an
      element of each in a cycle, and adds them all.
    """
    names = [scope.name if scope.kernel == NO_KERNEL else dag.kernels[scope.kernel].name for scope in dag.scopes]
    flop = {kernel.name: kernel.flop for kernel in dag.kernels}
    tasks: dict[str, list[int]] = {}
    computational = np.flatnonzero(dag.is_computational)
    for node, scope in zip(computational.tolist(), dag.node_scope[computational].tolist(), strict=True):
        tasks.setdefault(names[scope], []).append(node)
    require("names of kernels", sorted(one.name for one in mapping.kernels), sorted(tasks))
    moved = _moved(dag)
    for one in mapping.kernels:
        own, where = tasks[one.name], f"kernel {one.name!r}"
        require(f"{where}: configurations", {one.configuration}, set(configuration[own].tolist()))
        require(f"{where}: operations", one.flop, flop.get(one.name, 0))
        require(f"{where}: bytes on the chip", one.chip_bytes, int(moved[own].sum()))
        cycles = int(mapping.schedule.last_out[own].max()) - int(mapping.schedule.start[own].min())
        require_close(f"{where}: compute", one.compute_ns, cycles / system.accelerator.frequency_ghz, SUMMED)
        require_close(f"{where}: memory", one.memory_ns, one.dram_bytes / system.dram_gb_per_s, SUMMED)
        require_close(
            f"{where}: time", one.time_ns, joined(overlap, one.compute_ns, one.memory_ns, one.network_ns), SUMMED
        )
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
