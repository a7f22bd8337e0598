"""Accepts or rejects mappings of lowerings: knows the rules, and nothing of how configurations were chosen."""

import numpy as np

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.dag import Int64
from dfcompile.dfmodel_backend.attained.mapping import TaskMapping
from dfcompile.dfmodel_backend.check.held_bytes import check_bytes
from dfcompile.dfmodel_backend.check.kernel_figures import check_kernel_figures
from dfcompile.dfmodel_backend.check.requirements import EXACT, joined, require, require_close
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


def check_task_mapping(dag: CanonicalDag, system: System, overlap: Overlap, mapping: TaskMapping) -> None:
    """Check a mapping of a lowering on one chip of a system, or of one chip's share on several.

    Of shares `check_task_share` checks what they are and what chips exchange.

    * Its schedule is one of all tasks on the chip's cores, and a replay of it takes as long as it says.
    * Configurations follow one another, and no kernel is in two.
    * The bytes of every configuration are those of the edges that do not stream, and SRAM holds what it is said to hold
      in every cycle.
    * Times are cycles x period and bytes / bandwidth, joined by the overlap rule; all figures are sums of these.
    * What it says of kernels is what `check_kernel_figures` recounts.

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
    check_kernel_figures(dag, system, overlap, mapping)


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
        require_close(f"configuration {place}: time", found.time_ns, joined(found, overlap))
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
