"""Figures of one configuration: every one depends on its set of kernels alone."""

from dataclasses import dataclass
from functools import cached_property

from dfcompile.dfmodel_backend.intra_chip.cores import CoreSplit, CoreTable, core_table, least_cycles
from dfcompile.dfmodel_backend.machine.system import System
from dfcompile.dfmodel_backend.options import MappingOptions
from dfcompile.dfmodel_backend.workload.chip_workload import NO_SOURCE, Flow, Workload

FINEST = 1 << 62  # a tile count above every tensor's own limit


@dataclass(frozen=True, slots=True)
class Traffic:
    """DRAM bytes of one execution of a configuration."""

    streams_in_bytes: int
    streams_out_bytes: int
    weights_bytes: int

    def total_bytes(self, weight_tiles: int) -> int:
        """Return all bytes; with weights in several tiles, what streams in is read once per tile."""
        return self.streams_in_bytes * weight_tiles + self.streams_out_bytes + self.weights_bytes


@dataclass(frozen=True, slots=True)
class Configuration:
    """One configuration of a mapping and its figures."""

    kernels: tuple[str, ...]
    core_splits: tuple[CoreSplit, ...]  # one per kernel; empty if a compute utilization is assumed instead
    compute_ns: float
    memory_ns: float
    network_ns: float
    time_ns: float
    bound_by: str  # compute, memory or network: the longest
    dram_read_bytes: int
    dram_write_bytes: int
    dram_live_bytes: int  # weights, and tensors that wait in DRAM while the configuration runs
    sram_bytes: int
    tiles: int  # parts in which streaming tensors pass through SRAM
    weight_tiles: int  # parts in which weights are loaded; above 1 only for a kernel alone


@dataclass(frozen=True)
class ConfigurationModel:
    """The cost of sets of kernels on one chip of a system."""

    workload: Workload
    system: System
    options: MappingOptions

    @cached_property
    def tables(self) -> tuple[CoreTable, ...]:
        """Pareto table of each kernel; kernels of one shape share one."""
        known: dict[tuple[bool, int, int, int], CoreTable] = {}
        tables = []
        for kernel in self.workload.kernels:
            shape = (kernel.systolic, kernel.rows, kernel.k, kernel.n)
            if shape not in known:
                known[shape] = core_table(kernel, self.system.accelerator)
            tables.append(known[shape])
        return tuple(tables)

    def compute_ns(self, members: tuple[int, ...]) -> float | None:
        """Return the compute time of a set, or None if the chip has fewer cores than the set has kernels."""
        if len(members) > self.system.accelerator.cores:
            return None
        if self.options.compute_utilization > 0:
            flop = sum(self.workload.kernels[member].flop for member in members)
            return flop / (self.options.compute_utilization * self.system.accelerator.peak_gflops)
        cycles = self._least_cycles(members)
        return None if cycles is None else cycles / self.system.accelerator.frequency_ghz

    def core_splits(self, members: tuple[int, ...]) -> tuple[CoreSplit, ...]:
        """Return the cores of each kernel of a set: the fewest with which none is slower than the slowest must be."""
        cycles = self._least_cycles(members) if self.options.compute_utilization <= 0 else None
        if cycles is None:
            return ()
        return tuple(self.tables[member].splits[self.tables[member].fewest(cycles)] for member in members)

    def _least_cycles(self, members: tuple[int, ...]) -> int | None:
        counts: dict[int, int] = {}
        for member in members:
            number = self.table_numbers[member]
            counts[number] = counts.get(number, 0) + 1
        wanted = [(self.tables[number], count) for number, count in counts.items()]
        return least_cycles(wanted, self.system.accelerator.cores)

    @cached_property
    def table_numbers(self) -> tuple[int, ...]:
        """Number of the first kernel with the same table, per kernel."""
        first: dict[int, int] = {}
        return tuple(first.setdefault(id(table), number) for number, table in enumerate(self.tables))

    def traffic(self, kernels: int, members: tuple[int, ...]) -> Traffic:
        """Return the DRAM bytes of a set: a tensor is written once and read once, whatever its fan-out."""
        streams_in = streams_out = 0
        for number in self.touched_flows(members):
            flow = self.workload.flows[number]
            inside = flow.source != NO_SOURCE and kernels >> flow.source & 1
            if not inside:
                streams_in += flow.size_bytes
            elif flow.leaves or any(not kernels >> reading.kernel & 1 for reading in flow.readings):
                streams_out += flow.size_bytes
        held = self.touched_weights(members)
        return Traffic(streams_in, streams_out, sum(self.workload.weights[number].size_bytes for number in held))

    def sram_bytes(self, kernels: int, members: tuple[int, ...], tiles: int, weight_tiles: int) -> int:
        """Return the SRAM of a set: weights, two tiles of what crosses its border, in-flight tiles of what does not."""
        total = 0
        for number in self.touched_weights(members):
            total += -(-self.workload.weights[number].size_bytes // weight_tiles)
        for number in self.touched_flows(members):
            total += _flow_sram_bytes(self.workload.flows[number], kernels, tiles, weight_tiles)
        return total

    def fitting_tiles(self, kernels: int, members: tuple[int, ...]) -> tuple[int, int] | None:
        """Return (tiles, weight tiles), the fewest that fit SRAM, or None if no tiling fits."""
        weight_tiles = self.fitting_weight_tiles(kernels, members)
        if weight_tiles is None:
            return None
        capacity = self.system.accelerator.sram_bytes
        tiles = 1
        if capacity:
            while self.sram_bytes(kernels, members, tiles, weight_tiles) > capacity:
                tiles *= 2
        return tiles, weight_tiles

    def fitting_weight_tiles(self, kernels: int, members: tuple[int, ...]) -> int | None:
        """Return the fewest weight tiles that fit SRAM with the finest tiling, or None."""
        capacity = self.system.accelerator.sram_bytes
        if not capacity or self.sram_bytes(kernels, members, FINEST, 1) <= capacity:
            return 1
        most = self.most_weight_tiles(members)
        if most == 1 or self.sram_bytes(kernels, members, FINEST, most) > capacity:
            return None
        low, high = 1, most
        while high - low > 1:
            middle = (low + high) // 2
            if self.sram_bytes(kernels, members, FINEST, middle) <= capacity:
                high = middle
            else:
                low = middle
        return high

    def most_weight_tiles(self, members: tuple[int, ...]) -> int:
        """Return how often the weights of a set may be cut: those of a kernel alone, down to one row of its output.

        A row of an elementwise kernel is an element; what streams in is read once per tile there, too, which is more
        than needed where the weight is as large as the output.
        """
        if len(members) > 1 or not self.workload.weights_of[members[0]]:
            return 1
        return self.workload.kernels[members[0]].rows

    def time_and_bytes(self, kernels: int) -> tuple[float, int] | None:
        """Return the time of a set and its DRAM bytes, or None if it breaks a limit of cores or SRAM."""
        members = self.workload.members(kernels)
        weight_tiles = self.fitting_weight_tiles(kernels, members)
        if weight_tiles is None:
            return None
        compute_ns = self.compute_ns(members)
        if compute_ns is None:
            return None
        dram_bytes = self.traffic(kernels, members).total_bytes(weight_tiles)
        memory_ns = dram_bytes / self.system.dram_gb_per_s
        return self.options.overlap.time_ns(compute_ns, memory_ns, self.network_ns(members)), dram_bytes

    def network_ns(self, members: tuple[int, ...]) -> float:
        """Return the time in which a set exchanges with other chips."""
        return sum(self.workload.kernels[member].network_ns for member in members)

    @cached_property
    def dram_always_fits(self) -> bool:
        """Whether DRAM holds all tensors at once, so that no mapping can exceed it."""
        capacity = self.system.dram_capacity_bytes
        everything = sum(weight.size_bytes for weight in self.workload.weights)
        everything += sum(flow.size_bytes for flow in self.workload.flows)
        return not capacity or everything <= capacity

    def fits_dram(self, before: int, kernels: int) -> bool:
        """Return whether DRAM holds all that is alive while ``kernels`` run after ``before``."""
        return self.dram_always_fits or self.live_bytes(before, kernels) <= self.system.dram_capacity_bytes

    def live_bytes(self, before: int, kernels: int) -> int:
        """Return the DRAM bytes alive while ``kernels`` run after ``before``: weights and waiting tensors."""
        total = sum(weight.size_bytes for weight in self.workload.weights)
        after = before | kernels
        for flow in self.workload.flows:
            started = flow.source == NO_SOURCE or before >> flow.source & 1
            written = flow.source != NO_SOURCE and kernels >> flow.source & 1
            needed = flow.leaves or any(not before >> reading.kernel & 1 for reading in flow.readings)
            needed_after = flow.leaves or any(not after >> reading.kernel & 1 for reading in flow.readings)
            if (started and needed) or (written and needed_after):
                total += flow.size_bytes
        return total

    def touched_flows(self, members: tuple[int, ...]) -> dict[int, None]:
        """Return the numbers of the flows that a set writes or reads."""
        return {number: None for member in members for number in self.workload.flows_of[member]}

    def touched_weights(self, members: tuple[int, ...]) -> dict[int, None]:
        """Return the numbers of the weights of a set."""
        return {number: None for member in members for number in self.workload.weights_of[member]}

    def figures(self, before: int, kernels: int) -> Configuration | None:
        """Return all figures of a set that runs after the kernels of ``before``, or None if it breaks a limit."""
        return self.figures_beside(self.live_bytes(before, kernels), kernels)

    def figures_beside(self, live_bytes: int, kernels: int) -> Configuration | None:
        """Return all figures of a set while so many bytes are alive in DRAM, or None if it breaks a limit."""
        members = self.workload.members(kernels)
        compute_ns = self.compute_ns(members)
        fitting = self.fitting_tiles(kernels, members)
        if compute_ns is None or fitting is None:
            return None
        tiles, weight_tiles = fitting
        traffic = self.traffic(kernels, members)
        memory_ns = traffic.total_bytes(weight_tiles) / self.system.dram_gb_per_s
        network_ns = self.network_ns(members)
        times = {"compute": compute_ns, "memory": memory_ns, "network": network_ns}
        return Configuration(
            kernels=tuple(self.workload.kernels[member].name for member in members),
            core_splits=self.core_splits(members),
            compute_ns=compute_ns,
            memory_ns=memory_ns,
            network_ns=network_ns,
            time_ns=self.options.overlap.time_ns(compute_ns, memory_ns, network_ns),
            bound_by=max(times, key=lambda kind: times[kind]),
            dram_read_bytes=traffic.total_bytes(weight_tiles) - traffic.streams_out_bytes,
            dram_write_bytes=traffic.streams_out_bytes,
            dram_live_bytes=live_bytes,
            sram_bytes=self.sram_bytes(kernels, members, tiles, weight_tiles),
            tiles=tiles,
            weight_tiles=weight_tiles,
        )


def _flow_sram_bytes(flow: Flow, kernels: int, tiles: int, weight_tiles: int) -> int:
    readers = [reading for reading in flow.readings if kernels >> reading.kernel & 1]
    inside = flow.source != NO_SOURCE and kernels >> flow.source & 1
    if not inside:
        tile = max(-(-flow.size_bytes // min(tiles, reading.cuts)) for reading in readers)
        return 2 * tile
    total = 0
    if readers:
        total = max(
            reading.buffer_depth * -(-flow.size_bytes // min(tiles, reading.cuts, flow.cuts)) for reading in readers
        )
    if flow.leaves or len(readers) < len(flow.readings):
        # A kernel whose weights come in tiles makes as many parts of its output, one after the other.
        total += 2 * -(-flow.size_bytes // (min(tiles, flow.cuts) * weight_tiles))
    return total
