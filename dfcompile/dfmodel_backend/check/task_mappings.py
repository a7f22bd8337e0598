"""Accepts or rejects mappings of lowerings: knows the rules, and nothing of how configurations were chosen."""

import math

import numpy as np

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.dag import Int64
from dfcompile.dfmodel_backend.attained.mapping import TaskMapping
from dfcompile.dfmodel_backend.attained.stores import Place, StoreUse
from dfcompile.dfmodel_backend.check.kernel_figures import check_kernel_figures
from dfcompile.dfmodel_backend.check.requirements import EXACT, joined, require, require_close
from dfcompile.dfmodel_backend.check.task_memory import Key, Recount
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
      in every spatial block.
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
    block = _check_order(mapping, configuration)
    _Bytes(dag, mapping, configuration, block).check(system)
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


def _check_order(mapping: TaskMapping, configuration: Int64) -> Int64:
    """Check that configurations follow one another; return the block of each task within its own, shape [nodes]."""
    schedule = mapping.schedule
    block = np.zeros(len(configuration), dtype=np.int64)
    now = 0
    for place, found in enumerate(mapping.configurations):
        own = configuration == place
        begin, end = int(schedule.start[own].min()), int(schedule.last_out[own].max())
        if begin < now or end != now + found.cycles:
            raise VerificationError(
                f"configuration {place}: found cycles {begin} to {end} against {now} to {now + found.cycles}"
            )
        now = end
        if found.schedule.barrier:
            block[own] = schedule.block[own] - schedule.block[own].min()
    require("cycles of all configurations", schedule.makespan_cycles, now)
    return block


class _Bytes:
    """Compares what configurations say of memory with a recount."""

    def __init__(self, dag: CanonicalDag, mapping: TaskMapping, configuration: Int64, block: Int64) -> None:
        self._dag = dag
        self._mapping = mapping
        self._recount = Recount(dag, configuration, block, mapping.schedule.streamed)
        self._load: dict[Key, int] = {}  # by configuration and block
        self._put_fifos(configuration, block)

    def check(self, system: System) -> None:
        found = {
            (place, store.name): store
            for place, configuration in enumerate(self._mapping.configurations)
            for store in configuration.stores
        }
        for key in self._recount.pairs():
            named = key[0], self._recount.name(key[1])
            if named not in found:
                raise VerificationError(f"configuration {named[0]}: nothing is said of {named[1]!r}")
            self._check_store(key, found.pop(named))
        for place, name in found:
            raise VerificationError(f"configuration {place}: does not touch {name!r}")
        capacity = system.accelerator.sram_bytes or math.inf
        for place, configuration in enumerate(self._mapping.configurations):
            peak = max((load for (number, _), load in self._load.items() if number == place), default=0)
            require(f"configuration {place}: bytes of SRAM", configuration.sram_bytes, peak)
            if peak > capacity:
                raise VerificationError(f"configuration {place}: found {peak} bytes of SRAM against {capacity:.0f}")

    def _put_fifos(self, configuration: Int64, block: Int64) -> None:
        dag, schedule = self._dag, self._mapping.schedule
        for edge in np.flatnonzero(schedule.streamed).tolist():
            source = int(dag.edge_source[edge])
            width = -(-int(dag.edge_volume[edge]) // int(self._mapping.machine_dag.edge_volume[edge]))
            size = int(schedule.fifo_capacity[edge]) * width * int(dag.edge_element_bytes[edge])
            self._put((int(configuration[source]), int(block[source])), size)

    def _put(self, key: Key, size: int) -> None:
        self._load[key] = self._load.get(key, 0) + size

    def _check_store(self, key: Key, store: StoreUse) -> None:
        recount = self._recount
        where = f"configuration {key[0]}, {store.name!r}"
        born, written, read = recount.born_elsewhere(key), recount.written.get(key, 0), recount.read.get(key, 0)
        fetched, leaves = min(born, read), recount.leaves(key)
        expected = written, read, fetched, leaves
        require(
            f"{where}: bytes written, read, fetched; leaves",
            (store.written, store.read, store.fetched, store.leaves),
            expected,
        )
        dram_read = self._hold(key, store, written + fetched, born)
        dram_write = written if leaves or store.place is not Place.CHIP else 0
        require(f"{where}: bytes of DRAM", (store.dram_read_bytes, store.dram_write_bytes), (dram_read, dram_write))

    def _hold(self, key: Key, store: StoreUse, size: int, born: int) -> int:
        """Put what SRAM holds into the load of each block; return the bytes that are read from DRAM."""
        recount = self._recount
        shared = 0
        for block in store.shared_blocks:
            saved, window = recount.shared_stream(key, block, self._mapping.schedule, self._mapping.machine_dag)
            self._put((key[0], block), window)
            shared += 0 if block in store.held_blocks else saved
        if store.place is Place.CHIP:
            first, last = recount.blocks[key]
            for block in range(first, last + 1):
                self._put((key[0], block), size)
            return min(born, recount.read.get(key, 0))
        left = recount.read.get(key, 0) - shared
        for block in store.held_blocks:
            part = min(recount.distinct_in_block[*key, block], store.written + born)
            self._put((key[0], block), part)
            left += part - recount.read_in_block[*key, block]
        return left


def _check_times(system: System, overlap: Overlap, mapping: TaskMapping) -> None:
    system = system.one_chip if mapping.chips == 1 else system
    require("chips", mapping.chips, system.chips)
    total_ns = 0.0
    for place, found in enumerate(mapping.configurations):
        require_close(f"configuration {place}: compute", found.compute_ns, _period_ns(system) * found.cycles)
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


def _period_ns(system: System) -> float:
    return 1 / system.accelerator.frequency_ghz
