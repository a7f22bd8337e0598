"""Accepts or rejects mappings of lowerings: knows the rules, and nothing of how configurations were chosen."""

import math
from collections import Counter
from fractions import Fraction

import numpy as np

from dfcompile.canonical_dag import CanonicalDag, Kernel
from dfcompile.canonical_dag.dag import Int64
from dfcompile.dfmodel_backend.attained.kernel_figures import KernelFigures
from dfcompile.dfmodel_backend.attained.mapping import TaskMapping
from dfcompile.dfmodel_backend.check.machines import PER_S, dram_bytes_per_ns, power_w, price_usd
from dfcompile.dfmodel_backend.check.requirements import EXACT, joined, require, require_at_most, require_close
from dfcompile.dfmodel_backend.check.task_times import NOBODY, TaskTimes, check_bytes
from dfcompile.dfmodel_backend.machine.system import System
from dfcompile.dfmodel_backend.options import Overlap, Timed
from dfcompile.errors import VerificationError
from dfcompile.scheduler import check
from dfcompile.scheduler.simulation import simulate
from dfcompile.scheduler.simulation.simulator import replay_of

SUMMED = 1e-9  # relative: of sums over many tasks, in another order


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
    for place, (found, own) in enumerate(zip(mapping.configurations, times.parts_ns, strict=True)):
        require_times(f"configuration {place}", found, (*own, times.times_ns[place]), EXACT)
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


def check_kernels(times: TaskTimes) -> None:
    """Check the figures of the kernels of a mapping.

    * Every kernel with tasks is there once, in the configuration of its tasks, with its operations.
    * It lasts from the first start to the last end of its tasks; times are joined by the overlap rule, and none is
      longer than its configuration's.
    * DRAM bytes of the kernels of a configuration are those of the configuration, each store's in proportion to what
      kernels read and write.
    * What exchanges bring is all theirs.
    * No bandwidth is exceeded. Operations per second may be above the peak: a task that joins streams takes an
      element of each in a cycle, and adds them all.

    Raises:
        VerificationError: naming the kernel, found against expected.
    """
    mapping, kernel, numbers = times.attained, times.kernel, {name: at for at, name in enumerate(times.names)}
    tasks = np.flatnonzero(kernel != NOBODY)
    start, end, chip_bytes = np.full((3, len(numbers)), [[mapping.schedule.makespan_cycles], [0], [0]], dtype=np.int64)
    np.minimum.at(start, kernel[tasks], mapping.schedule.start[tasks])
    np.maximum.at(end, kernel[tasks], mapping.schedule.last_out[tasks])
    np.add.at(chip_bytes, kernel[tasks], _moved(times.dag)[tasks])
    exact, rounded = _dram_shares(times)
    known = {one.name: one for one in times.dag.kernels}
    require("names of kernels", sorted(one.name for one in mapping.kernels), sorted(numbers))
    moved = [0] * len(mapping.configurations)
    for one in mapping.kernels:
        number, where = numbers[one.name], f"kernel {one.name!r}"
        op, flop = (known[one.name].op, flop_of(known[one.name])) if one.name in known else ("", 0)
        exchanges = [exchange for exchange in times.exchanges if exchange.source == one.name]
        require(f"{where}: configurations", {one.configuration}, {times.place[one.name]})
        require(f"{where}: operator", one.op, op)
        require(f"{where}: operations", one.flop, flop)
        require(f"{where}: bytes on the chip", one.chip_bytes, int(chip_bytes[number]))
        compute_ns = int(end[number] - start[number]) * times.period_ns
        memory_ns = one.dram_bytes / dram_bytes_per_ns(times.system)
        parts_ns = compute_ns, memory_ns, sum((exchange.time_ns for exchange in exchanges), 0.0)
        require_times(where, one, (*parts_ns, joined(times.overlap, *parts_ns)), SUMMED)
        if abs(one.dram_bytes - exact[number]) > rounded[number]:
            raise VerificationError(f"{where}: found {one.dram_bytes} bytes of DRAM against {float(exact[number]):g}")
        require_at_most(f"{where}: time", one.time_ns, times.times_ns[one.configuration], SUMMED)
        _check_bandwidths(where, one, mapping)
        received = sum(exchange.moved_bytes for exchange in exchanges)
        require(f"{where}: bytes from other chips", one.received_bytes, received)
        moved[one.configuration] += one.dram_bytes
    for number, (found, of_stores) in enumerate(zip(moved, times.dram_bytes, strict=True)):
        require(f"configuration {number}: DRAM of kernels", found, of_stores)
    require("bytes from other chips", sum(one.received_bytes for one in mapping.kernels), mapping.moved_bytes)


def require_times(
    where: str,
    found: Timed,
    expected_ns: tuple[float, float, float, float],
    relative: float,
) -> None:
    """Require compute, memory, network and all of them to take so long.

    Raises:
        VerificationError: they do not.
    """
    found_ns = (found.compute_ns, found.memory_ns, found.network_ns, found.time_ns)
    for kind, own, expected in zip(("compute", "memory", "network", "time"), found_ns, expected_ns, strict=True):
        require_close(f"{where}: {kind}", own, expected, relative)


def _check_bandwidths(where: str, one: KernelFigures, mapping: TaskMapping) -> None:
    roofs, time_s = mapping.roofs, one.time_ns / PER_S
    limits = (
        ("bytes of DRAM", one.dram_bytes, roofs.dram_bytes_per_s),
        ("bytes from other chips", one.received_bytes / mapping.chips, roofs.network_bytes_per_s),
    )
    for what, amount, rate in limits:
        if rate is not None and amount > time_s * rate * (1 + SUMMED):
            raise VerificationError(f"{where}: found {amount} {what} in {time_s} s against at most {rate} per second")


def flop_of(kernel: Kernel) -> int:
    """Return the operations of a kernel: two per term of each sum of a contraction, else one per element."""
    elements = math.prod((kernel.outer, kernel.m, kernel.n))
    return 2 * kernel.k * elements if kernel.variant.is_gemm else elements


def _moved(dag: CanonicalDag) -> Int64:
    """Return the bytes on the edges of each node, from and to tasks and buffers, shape [nodes]."""
    real = dag.is_computational | dag.is_buffer
    size = np.where(real[dag.edge_source] & real[dag.edge_target], dag.edge_volume * dag.edge_element_bytes, 0)
    moved = np.zeros(dag.nodes_count, dtype=np.int64)
    np.add.at(moved, dag.edge_source, size)
    np.add.at(moved, dag.edge_target, size)
    return moved


def _dram_shares(times: TaskTimes) -> tuple[dict[int, Fraction], Counter[int]]:
    """Return the bytes of DRAM of each kernel, and how often they were rounded."""
    stores = [{store.name: store for store in one.stores} for one in times.attained.configurations]
    exact = dict.fromkeys(range(len(times.names)), Fraction(0))
    rounded = Counter[int]()
    for (place, name, is_read), parts in _through_memory(times).items():
        use = stores[place][name]
        total = use.dram_read_bytes if is_read else use.dram_write_bytes
        everything = sum(parts.values())
        for kernel, part in parts.items():
            exact[kernel] += Fraction(total * part, everything)
            rounded[kernel] += len(parts) > 1
    return exact, rounded


def _through_memory(times: TaskTimes) -> dict[tuple[int, str, bool], Counter[int]]:
    """Return the bytes of each kernel by configuration, store, and whether it reads or writes them."""
    dag, sizes = times.dag, times.dag.edge_volume * times.dag.edge_element_bytes
    found: dict[tuple[int, str, bool], Counter[int]] = {}
    for touch in times.touches:
        for is_read, edges, ends in ((True, touch.reads, dag.edge_target), (False, touch.writes, dag.edge_source)):
            if len(edges):
                sums = found.setdefault((touch.configuration, touch.name, is_read), Counter())
                for kernel, size in zip(times.kernel[ends[edges]].tolist(), sizes[edges].tolist(), strict=True):
                    sums[kernel] += size
    return found
