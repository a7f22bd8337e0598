"""Figures of a design for a given sharding, tile count and assignment to configurations [ko24, section 4]."""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from dfcompile.dfmodel_backend.collectives import (
    all_gather_ratio,
    all_reduce_ratio,
    all_to_all_ns,
    all_to_all_ratio,
)
from dfcompile.dfmodel_backend.compatibility import RIGHT, Compatibility
from dfcompile.dfmodel_backend.cores import CoreTable, core_table, least_cycles
from dfcompile.dfmodel_backend.degrees import Degrees, degrees_of
from dfcompile.dfmodel_backend.design import Collective, Design, Dim, WorkloadKind
from dfcompile.dfmodel_backend.network_cost import machine_cost_usd, machine_power_w
from dfcompile.dfmodel_backend.shares import Share, edge_shares, shares_of
from dfcompile.dfmodel_backend.system import Accelerator, Amount
from dfcompile.dfmodel_backend.workload import KernelWork
from dfcompile.errors import InfeasibleError, UserError


@dataclass(frozen=True, slots=True)
class Decision:
    """What the optimizer decides: sharded dimension by kernel id, tiles, configuration by kernel id."""

    sharding: dict[int, Dim]
    tiles: int
    configs: dict[int, int]


@dataclass(frozen=True, slots=True)
class StepFigures:
    """One configuration, per micro-batch and layer; times in ns."""

    compute_ns: float
    memory_ns: float
    network_ns: float
    time_ns: float


@dataclass(frozen=True, slots=True)
class DesignFigures:
    """Figures of a design."""

    steps: tuple[StepFigures, ...]
    batch_ns: float
    flop: float
    utilization: float
    cost_usd: float
    power_w: float

    @property
    def step_ns(self) -> float:
        """All configurations once."""
        return sum(step.time_ns for step in self.steps)


def evaluate_design(design: Design, decision: Decision, compatibility: Compatibility = RIGHT) -> DesignFigures:
    """Return all figures of a design.

    Raises:
        UserError: the degrees do not fit the chips, or the batch is no whole number of micro-batches.
        InfeasibleError: a configuration has more kernels than the chip has cores.
    """
    return DesignModel(design, decision.sharding, decision.tiles, compatibility).figures(decision.configs)


class DesignModel:
    """A sharded and tiled design: the figures of any set of its kernels as a configuration."""

    def __init__(
        self, design: Design, sharding: dict[int, Dim], tiles: int, compatibility: Compatibility = RIGHT
    ) -> None:
        self.design = design
        self.tiles = tiles
        self._compatibility = compatibility
        self._degrees = degrees_of(design)
        self._micro_batches = _micro_batches(design, self._degrees)
        self.shares = shares_of(design, self._degrees, sharding, tiles, float(self._micro_batches))
        self.edges = edge_shares(design, self.shares)
        self._factor = 2.0 if design.execution.separate_reduce_scatter else 1.0

    def figures(self, configs: dict[int, int]) -> DesignFigures:
        """Return the figures of an assignment of kernels, by id, to configurations."""
        batch = self.design.execution.batch
        inside: list[list[int]] = [[] for _ in range(max(configs.values()) + 1)]
        for position, share in enumerate(self.shares):
            inside[configs[share.kernel.id]].append(position)
        steps = tuple(self.step(members) for members in inside)
        batch_ns = self._batch_ns(sum(step.time_ns for step in steps))
        flop = sum(kernel.flop for kernel in self.design.kernels)
        if batch.kind is WorkloadKind.LLM:
            flop *= batch.layers * batch.global_batch
        elif batch.kind is WorkloadKind.DLRM:
            flop *= batch.global_batch
        machine = self.design.machine
        seconds = batch_ns * batch.copies / 1e9
        return DesignFigures(
            steps=steps,
            batch_ns=batch_ns,
            flop=flop,
            utilization=flop / (seconds * machine.chips * machine.peak_gflops * 1e9),
            cost_usd=machine_cost_usd(machine, batch.copies),
            power_w=machine_power_w(machine, batch.copies),
        )

    def _batch_ns(self, step_ns: float) -> float:
        batch, degrees = self.design.execution.batch, self._degrees
        if batch.kind in (WorkloadKind.HPL, WorkloadKind.FFT):
            return step_ns
        layers = batch.layers if batch.layers_in_graph == 1 else degrees.pipeline
        per_stage = -(-layers // degrees.pipeline)
        interleave = per_stage - 1 if per_stage > 1 else 1
        bubble = 1 + (degrees.pipeline - 1) / (float(self._micro_batches) * interleave)
        busy = step_ns * bubble * per_stage * batch.global_batch / degrees.data
        training = any(kernel.backward for kernel in self.design.kernels)
        if not training or degrees.pipeline_link is None:
            return busy
        word = self.design.execution.word_bytes
        return busy + 2 * batch.hidden * batch.sequence * word * layers / degrees.pipeline_link.gb_per_s

    @cached_property
    def _tables(self) -> tuple[CoreTable, ...]:
        chip = _chip(self.design)
        return tuple(core_table(_work(share), chip) for share in self.shares)

    def step(self, inside: list[int], weight_tiles: int = 1) -> StepFigures:
        """Return the figures of a configuration of the kernels at some positions."""
        execution = self.design.execution
        inputs = max((self.shares[position].kernel.num_input for position in inside), default=0)
        tiles = 1 if inputs else self.tiles
        compute_ns = tiles * self._compute_ns(inside)
        memory_ns = self._memory_ns(inside, tiles * weight_tiles)
        network_ns = self._network_ns(inside, tiles)
        time_ns = max(1, inputs) * execution.overlap.time_ns(
            compute_ns if "C" in execution.counted else 0.0,
            memory_ns if "M" in execution.counted else 0.0,
            network_ns if "N" in execution.counted else 0.0,
        )
        return StepFigures(compute_ns, memory_ns, network_ns, time_ns)

    @cached_property
    def least_parts(self) -> tuple[tuple[float, float, float], ...]:
        """Unavoidable compute, DRAM and network time of each kernel; all three add up over any set of kernels."""
        execution, machine = self.design.execution, self.design.machine
        found = []
        for position, share in enumerate(self.shares):
            tiles = 1 if share.kernel.num_input else self.tiles
            inputs = max(1, share.kernel.num_input)
            if execution.compute_utilization > 0:
                compute_ns = self._compute_ns([position])
            else:
                compute_ns = self._tables[position].least_area / (machine.cores * machine.frequency_ghz)
            # Groups that exchange at the same time do not add up: only the tensor parallel one is counted then.
            network_ns = self._network_ns([position], tiles, tensor_only=not self._compatibility.network_is_sum)
            found.append(
                (
                    tiles * inputs * compute_ns if "C" in execution.counted else 0.0,
                    inputs * share.kernel.memory_bytes / machine.dram_gb_per_s if "M" in execution.counted else 0.0,
                    inputs * network_ns if "N" in execution.counted else 0.0,
                )
            )
        return tuple(found)

    def least_ns(self, inside: Iterable[int]) -> float:
        """Return a time that no configurations of these kernels beat: no core idle, no tensor between them in DRAM."""
        parts = [self.least_parts[position] for position in inside]
        return self.design.execution.overlap.time_ns(*(sum(part[kind] for part in parts) for kind in range(3)))

    def sram_bytes(self, inside: list[int], weight_tiles: int = 1) -> float:
        """Return the SRAM of a configuration: tiles of tensors, weights, and what the design adds."""
        members = dict.fromkeys(inside)
        total = 0.0
        for edge in self.edges:
            starts, ends = edge.source in members, edge.target in members
            if starts or ends:
                count = edge.depth if starts and ends else 2
                total += count * edge.size_bytes / (weight_tiles if starts else 1)
        for position in inside:
            share = self.shares[position]
            held = 0 if share.kernel.skip_weight else share.weight_bytes
            total += held / weight_tiles + share.kernel.sram_extra_bytes
        return total

    def _compute_ns(self, inside: list[int]) -> float:
        execution, machine = self.design.execution, self.design.machine
        if execution.compute_utilization > 0:
            flop = sum(self.shares[position].flop for position in inside)
            return flop / (execution.compute_utilization * machine.peak_gflops)
        tables = [(self._tables[position], 1) for position in inside]
        cycles = least_cycles(tables, machine.cores) if tables else 0
        if cycles is None:
            raise InfeasibleError(f"configuration: found {len(inside)} kernels against {machine.cores} cores")
        return cycles / machine.frequency_ghz

    def _memory_ns(self, inside: list[int], tiles: int) -> float:
        members = dict.fromkeys(inside)
        crossing = sum(e.size_bytes for e in self.edges if (e.source in members) != (e.target in members))
        extra = sum(self.shares[position].kernel.memory_bytes for position in inside)
        return (tiles * crossing + extra) / self.design.machine.dram_gb_per_s

    def _network_ns(self, inside: list[int], tiles: int, *, tensor_only: bool = False) -> float:
        kind = self.design.execution.batch.kind
        members = dict.fromkeys(inside)
        found = [item for position in inside for item in self.shares[position].exchange]
        found += [item for edge in self.edges if edge.source in members for item in edge.exchange]
        sizes = dict.fromkeys(Collective, 0.0)
        for collective, size in found:
            sizes[collective] += size
        if kind is WorkloadKind.LLM:
            tensor_ns, data_ns = self._llm_network_ns(found, sizes, tiles)
            if tensor_only:
                return tensor_ns
            return tensor_ns + data_ns if self._compatibility.network_is_sum else max(tensor_ns, data_ns)
        if tensor_only and kind is WorkloadKind.HPL:
            return 0.0
        links = self.design.machine.links
        if kind is WorkloadKind.HPL:
            return max(
                sizes[Collective.POINT_TO_POINT] / links[0].gb_per_s, sizes[Collective.BROADCAST] / links[-1].gb_per_s
            )
        pair_bytes = sizes[Collective.ALL_TO_ALL]
        if kind is WorkloadKind.DLRM and not self._compatibility.all_to_all_as_given:
            pair_bytes /= self._degrees.data
        oldest = self._compatibility.oldest_all_to_all
        topology = self.design.machine.topology
        exchange_ns = all_to_all_ns(topology, links, pair_bytes, oldest=oldest) if pair_bytes else 0.0
        return exchange_ns + self._periodic_ns(sizes[Collective.ALL_REDUCE_PERIODIC])

    def _periodic_ns(self, size: float) -> float:
        if not size:
            return 0.0
        factor = self._compatibility.periodic_factor or self._factor
        if self._compatibility.periodic_gb_per_s:
            return size * factor / self._compatibility.periodic_gb_per_s
        link = self._degrees.data_link or self.design.machine.links[-1]
        return size * all_reduce_ratio(link, factor)

    def _llm_network_ns(
        self, found: list[tuple[Collective, float]], sizes: dict[Collective, float], tiles: int
    ) -> tuple[float, float]:
        """Return the times of the tensor parallel and of the data parallel group."""
        tensor_ns = data_ns = 0.0
        link = self._degrees.tensor_link
        if link is not None and link.chips > 1:
            factor = self._compatibility.all_reduce_factor or self._factor
            tensor_ns = tiles * (
                sizes[Collective.ALL_REDUCE] * all_reduce_ratio(link, factor)
                + sizes[Collective.ALL_TO_ALL] * all_to_all_ratio(link)
                + sizes[Collective.ALL_GATHER] * all_gather_ratio(link)
            )
            reductions = sum(1 for collective, _ in found if collective is Collective.ALL_REDUCE)
            hops = 1 if link.shape == "fc" else link.chips - 1
            tensor_ns += reductions * self.design.machine.link_latency_ns * self._factor * hops
        if self._degrees.data_link is not None and self._degrees.data_link.chips > 1:
            data_ns = self._periodic_ns(sizes[Collective.ALL_REDUCE_PERIODIC])
        return tensor_ns, data_ns


def _work(share: Share) -> KernelWork:
    return KernelWork(share.kernel.name, share.kernel.systolic, share.rows, share.k, share.n)


def _chip(design: Design) -> Accelerator:
    machine = design.machine
    return Accelerator(
        machine.cores,
        machine.lanes_per_core,
        machine.stages_per_core,
        machine.frequency_ghz,
        Amount(machine.sram_bytes),
        Amount(0.0),
        Amount(0.0),
    )


def _micro_batches(design: Design, degrees: Degrees) -> Fraction:
    batch = design.execution.batch
    if batch.kind in (WorkloadKind.HPL, WorkloadKind.FFT):
        return Fraction(1)
    count = Fraction(batch.global_batch, max(1, batch.micro_batch) * degrees.data)
    if count.denominator != 1:
        raise UserError(
            f"field 'execution.{batch.kind}.global_batch_size': found {batch.global_batch} against a multiple of "
            f"micro_batch_size x DP = {max(1, batch.micro_batch)} x {degrees.data}"
        )
    return count
