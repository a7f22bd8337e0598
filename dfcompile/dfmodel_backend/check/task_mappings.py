"""Accepts or rejects mappings of lowerings: knows the rules, and nothing of how configurations were chosen."""

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.dfmodel_backend.attained.mapping import TaskMapping
from dfcompile.dfmodel_backend.check.held_bytes import check_bytes
from dfcompile.dfmodel_backend.check.machines import PER_S, power_w, price_usd
from dfcompile.dfmodel_backend.check.requirements import EXACT, require, require_close
from dfcompile.dfmodel_backend.check.task_kernels import check_kernels, require_times
from dfcompile.dfmodel_backend.check.task_times import TaskTimes
from dfcompile.dfmodel_backend.machine.system import System
from dfcompile.dfmodel_backend.options import Overlap
from dfcompile.errors import VerificationError
from dfcompile.scheduler import check
from dfcompile.scheduler.simulation import simulate
from dfcompile.scheduler.simulation.simulator import replay_of


def check_task_mapping(dag: CanonicalDag, system: System, overlap: Overlap, mapping: TaskMapping) -> None:
    """Check a mapping of a lowering on one chip of a system, or of one chip's share on several.

    Of shares `check_task_share` checks what they are and what chips exchange.

    * Its schedule is one of all tasks on the chip's cores, and a replay of it takes as long as it says.
    * Configurations follow one another, and no kernel is in two.
    * The bytes of every configuration are those of the edges that do not stream, and SRAM holds what it is said to hold
      in every cycle.
    * Times are cycles x period and bytes / bandwidth, joined by the overlap rule; all figures are sums of these.
    * What it says of kernels is what `check_kernels` recounts.

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
    used = system.one_chip if mapping.chips == 1 else system
    times = TaskTimes(dag, mapping, used, overlap, mapping.exchanges)
    _check_order(times)
    check_bytes(dag, times.touches, mapping, system)
    _check_times(times)
    check_kernels(times)


def _replayed_cycles(mapping: TaskMapping) -> int:
    """Return the cycles of a replay; where blocks overlap, configurations still do not, and are replayed one by one."""
    if mapping.schedule.barrier:
        return simulate(mapping.machine_dag, replay_of(mapping.schedule), details=False).makespan_cycles
    return sum(
        simulate(found.part.dag, replay_of(found.schedule), details=False).makespan_cycles
        for found in mapping.configurations
    )


def _check_order(times: TaskTimes) -> None:
    """Check that configurations follow one another."""
    schedule, configuration = times.attained.schedule, times.configuration
    now = 0
    for place, found in enumerate(times.attained.configurations):
        own = configuration == place
        begin, end = int(schedule.start[own].min()), int(schedule.last_out[own].max())
        if begin < now or end != now + found.cycles:
            raise VerificationError(
                f"configuration {place}: found cycles {begin} to {end} against {now} to {now + found.cycles}"
            )
        now = end
    require("cycles of all configurations", schedule.makespan_cycles, now)


def _check_times(times: TaskTimes) -> None:
    mapping, system = times.attained, times.system
    require("chips", mapping.chips, system.chips)
    for place, (found, parts) in enumerate(zip(mapping.configurations, times.parts_ns, strict=True)):
        require_times(f"configuration {place}", found, (*parts, times.times_ns[place]), EXACT)
    require_close("time", mapping.time_s, times.time_ns / PER_S)
    require("bytes of DRAM", mapping.dram_bytes, sum(times.dram_bytes) * system.chips)
    most = max((found.sram_bytes for found in mapping.configurations), default=0)
    require("bytes of SRAM", mapping.sram_bytes, most)
    require_close("cost", mapping.cost_usd, price_usd(system))
    require_close("power", mapping.power_w, power_w(system))
    require_close("energy", mapping.energy_j, power_w(system) * times.time_ns / PER_S)
    parts = mapping.parts
    together = parts.work_ns + parts.idle_elements_ns + parts.waiting_ns + parts.throttled_ns + parts.whole_blocks_ns
    require_close("parts of the time", together + parts.memory_ns + parts.network_ns, times.time_ns, 1e-9)
    if mapping.bound_time_s > mapping.time_s * (1 + EXACT):
        raise VerificationError(f"bound: found {mapping.bound_time_s} s against at most the time {mapping.time_s} s")
