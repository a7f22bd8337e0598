"""Accepts or rejects mappings of lowerings, and what one of several chips runs; knows nothing of who chose them."""

import math
from collections import Counter
from fractions import Fraction

import numpy as np

from dfcompile.canonical_dag import CanonicalDag, Kernel, TensorRole
from dfcompile.canonical_dag.dag import Int64
from dfcompile.dfmodel_backend.attained.kernel_figures import KernelFigures
from dfcompile.dfmodel_backend.attained.mapping import TaskMapping
from dfcompile.dfmodel_backend.check.array_shares import elements_missing, iterations_left, layout_of, most_elements
from dfcompile.dfmodel_backend.check.machines import PER_S, dram_bytes_per_ns, power_w, price_usd
from dfcompile.dfmodel_backend.check.requirements import EXACT, combined_ns, require, require_at_most, require_close
from dfcompile.dfmodel_backend.check.task_times import NOBODY, TaskPlaces, TaskTimes, check_bytes
from dfcompile.dfmodel_backend.machine.system import System
from dfcompile.dfmodel_backend.options import Overlap, Timed
from dfcompile.dfmodel_backend.workload.graph import Exchange, Layout, Partial
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
    times = TaskTimes(dag, mapping, system.one_chip if mapping.chips == 1 else system, overlap, mapping.exchanges)
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
        require_times(where, one, (*parts_ns, combined_ns(times.overlap, *parts_ns)), SUMMED)
        if abs(one.dram_bytes - exact[number]) > rounded[number]:
            raise VerificationError(f"{where}: found {one.dram_bytes} bytes of DRAM against {float(exact[number]):g}")
        require_at_most(f"{where}: time", one.time_ns, times.times_ns[one.configuration], SUMMED)
        _check_bandwidths(where, one, mapping)
        received = sum(exchange.moved_bytes for exchange in exchanges)
        require(f"{where}: bytes from other chips", one.received_bytes, received)
        moved[one.configuration] += one.dram_bytes
    for number, (found, of_stores) in enumerate(zip(moved, times.dram_bytes, strict=True)):
        require(f"configuration {number}: DRAM of kernels", found, of_stores)
    received = mapping.runs * sum(one.received_bytes for one in mapping.kernels)
    require("bytes from other chips", received, mapping.moved_bytes)


def require_times(where: str, found: Timed, expected_ns: tuple[float, float, float, float], relative: float) -> None:
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
    dag, sizes = times.dag, times.dag.edge_volume * times.dag.edge_element_bytes
    # The bytes of each kernel by configuration, store, and whether it reads or writes them.
    groups: dict[tuple[int, str, bool], int] = {}
    moved: list[tuple[int, Int64]] = []
    for touch in times.touches:
        for is_read, own in ((True, touch.reads), (False, touch.writes)):
            if len(own):
                group = groups.setdefault((touch.configuration, touch.name, is_read), len(groups))
                moved.append((group, own))
    through_memory: list[dict[int, int]] = [{} for _ in groups]
    if moved:
        edges = np.concatenate([own for _, own in moved])
        group_of = np.repeat([group for group, _ in moved], [len(own) for _, own in moved])
        is_read_of = np.array([is_read for _, _, is_read in groups])[group_of]
        kernels = times.kernel[np.where(is_read_of, dag.edge_target[edges], dag.edge_source[edges])]
        each = len(times.names) - NOBODY  # one number for a group and a kernel, or nobody: sorted a tenth as long
        pairs, place = np.unique(group_of * each + kernels - NOBODY, return_inverse=True)
        sums = np.zeros(len(pairs), dtype=np.int64)
        np.add.at(sums, place, sizes[edges])
        for pair, size in zip(pairs.tolist(), sums.tolist(), strict=True):
            through_memory[pair // each][pair % each + NOBODY] = size
    stores = [{store.name: store for store in one.stores} for one in times.attained.configurations]
    exact = dict.fromkeys(range(len(times.names)), Fraction(0))
    rounded = Counter[int]()
    for (configuration, name, is_read), parts in zip(groups, through_memory, strict=True):
        use = stores[configuration][name]
        total = use.dram_read_bytes if is_read else use.dram_write_bytes
        everything = sum(parts.values())
        for kernel, part in parts.items():
            exact[kernel] += Fraction(total * part, everything)
            rounded[kernel] += len(parts) > 1
    return exact, rounded


def check_task_share(whole: CanonicalDag, share: CanonicalDag, system: System, mapping: TaskMapping) -> None:
    """Check the lowering of one of several chips, and what they exchange.

    * Every kernel is there, and runs its first iterations of each loop that is split: a part rounded up.
    * Every array has as many elements as the chip that has most of it makes, or needs.
    * A kernel reads what another one makes only where every chip needs what it has. Else it reads an array that nobody
      on the chip makes, in a later configuration; what a chip does not have is exchanged.
    * A configuration exchanges what its kernels make, for as long as all these exchanges take.

    Args:
        whole: the lowering of all chips together.
        share: that of the chip with most of it.
        system: with the chips in use.
        mapping: of the share.

    Raises:
        VerificationError: naming the kernel or the array, found against expected.
    """
    _Shares(whole, share, system, mapping).check()


class _Shares:
    def __init__(self, whole: CanonicalDag, share: CanonicalDag, system: System, mapping: TaskMapping) -> None:
        self._whole = whole
        self._share = {kernel.name: kernel for kernel in share.kernels}
        self._sizes = {tensor.name: tensor.elements for tensor in share.tensors}
        self._mapping = mapping
        self._chips = tuple(dimension.chips for dimension in system.network.dimensions)
        self._choices = dict(mapping.sharding)
        self._arrays = {tensor.name: tensor for tensor in whole.tensors}
        self._made = {name for kernel in share.kernels for name in kernel.outputs}
        self._place = TaskPlaces(share, mapping).place

    def check(self) -> None:
        mapping, exchanges = self._mapping, self._mapping.exchanges
        require("chips", mapping.chips, math.prod(self._chips))
        require("kernels", sorted(self._share), sorted(kernel.name for kernel in self._whole.kernels))
        for kernel in self._whole.kernels:
            self._check_kernel(kernel)
        makers = {name: kernel for kernel in self._whole.kernels for name in kernel.outputs}
        for array, maker in makers.items():
            self._check_array(array, maker)
        for place, configuration in enumerate(mapping.configurations):
            expected = sum(one.time_ns for one in exchanges if self._place[one.source] == place)
            require_close(f"configuration {place}: network", configuration.network_ns, expected)
        require("bytes of messages", mapping.network_bytes, sum(one.message_bytes for one in exchanges))
        require("bytes moved", mapping.moved_bytes, sum(one.moved_bytes for one in exchanges))

    def _layout(self, kernel: Kernel, place: int, *, is_result: bool) -> Layout:
        return layout_of(kernel, place, self._choices[kernel.name], self._chips, is_result=is_result)

    def _check_kernel(self, kernel: Kernel) -> None:
        share, where = self._share[kernel.name], f"kernel {kernel.name!r}"
        require(f"{where}: expansion", share.expansion, kernel.expansion)
        kept = {loop.name: loop.extent for loop in kernel.loops}
        for number, left in iterations_left(kernel, self._choices[kernel.name], self._chips):
            kept[kernel.loops[number].name] = left
        found = {loop.name: loop.extent for loop in share.loops if loop.name in kept}
        require(f"{where}: iterations", found, {name: left for name, left in kept.items() if left > 1 or name in found})
        for arrays, parts, is_result in ((kernel.inputs, share.inputs, False), (kernel.outputs, share.outputs, True)):
            for place, (array, part) in enumerate(zip(arrays, parts, strict=True)):
                most = most_elements(self._layout(kernel, place, is_result=is_result), self._arrays[array].elements)
                require(f"{where}: elements of {array!r} on the chip with most of it", self._sizes[part], most)

    def _check_array(self, array: str, maker: Kernel) -> None:
        tensor, given = self._arrays[array], self._layout(maker, maker.outputs.index(array), is_result=True)
        partial = [count for held, count in zip(given, self._chips, strict=True) if isinstance(held, Partial)]
        combined = (math.prod(partial) - 1) * tensor.elements  # values that move at least until they are one
        moved = combined if tensor.role is TensorRole.OUTPUT else 0
        for reader in self._whole.kernels:
            for at in (at for at, name in enumerate(reader.inputs) if name == array):
                needed = self._layout(reader, at, is_result=False)
                missing = combined if partial else self._missing(array, given, needed)
                is_same = not partial and not missing and not self._missing(array, needed, given)
                self._check_read(array, maker, reader, at, is_same=is_same)
                is_listed = any(reader.name in one.readers for one in self._exchanges(array))
                if missing and not is_listed and not self._is_left_whole(array, given, needed):
                    raise VerificationError(
                        f"kernel {reader.name!r}: {array!r} is not exchanged, and {missing} elements miss"
                    )
                moved = max(moved, missing)
        found, least = sum(one.moved_bytes for one in self._exchanges(array)), moved * tensor.element_bytes
        if found < least:
            raise VerificationError(f"array {array!r}: {found} bytes are exchanged against at least {least}")

    def _exchanges(self, array: str) -> list[Exchange]:
        return [one for one in self._mapping.exchanges if one.tensor.partition("@")[0] == array]

    def _missing(self, array: str, given: Layout, needed: Layout) -> int:
        return elements_missing(given, needed, self._arrays[array].elements, self._chips)

    def _check_read(self, array: str, maker: Kernel, reader: Kernel, at: int, *, is_same: bool) -> None:
        part = self._share[reader.name].inputs[at]
        where = f"kernel {reader.name!r}: reads {array!r}"
        if is_same and part in self._made:
            return
        if is_same:
            raise VerificationError(f"{where} from an exchange against as {maker.name!r} leaves it")
        if part in self._made:
            raise VerificationError(f"{where} as {maker.name!r} leaves it, which is not what every chip needs")
        before, after = self._place[maker.name], self._place[reader.name]
        if before >= after:
            raise VerificationError(
                f"{where}, which is exchanged, in configuration {after} against one after {before} of {maker.name!r}"
            )

    def _is_left_whole(self, array: str, given: Layout, needed: Layout) -> bool:
        """Return whether an exchange for other readers leaves every chip with what is needed, among what others had."""
        for one in self._exchanges(array):
            left = tuple(
                None if isinstance(held, Partial) or (before and after is None) else held
                for held, before, after in zip(given, *one.layouts, strict=True)
            )
            if not self._missing(array, left, needed):
                return True
        return False
