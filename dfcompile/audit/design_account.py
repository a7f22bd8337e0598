"""What a design takes for a batch, and what a chip keeps in DRAM meanwhile [ko24, section 4], [rajbhandari20]."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import astuple

from dfcompile.dfmodel_backend import StepFigures
from dfcompile.dfmodel_backend.check.decided_design import DecidedDesign, Kernels
from dfcompile.dfmodel_backend.check.machines import PER_GIGA, ChipNetwork
from dfcompile.dfmodel_backend.check.steps import PERIODIC, Step, steps_of
from dfcompile.dfmodel_backend.workload.design import WorkloadKind

ADAM_BYTES = 3 * 4  # per parameter: a copy and two moments of 32 bits [rajbhandari20, section 3]


class Memory(Struct, frozen=True):
    """Bytes of DRAM of a chip of one stage.

    Attributes:
        weights: with what the file adds.
        gradients: of them.
        optimizer_states: of parameters.
        activations_in_flight: of micro-batches, and of other layers.
        tables: embeddings, a matrix or a vector.
        waiting_tensors: between configurations, where most of them wait.
    """

    weights: float
    gradients: float
    optimizer_states: float
    activations_in_flight: float
    tables: float
    waiting_tensors: float

    @property
    def total(self) -> float:
        """All of it."""
        return float(sum(astuple(self)))


def _of_stage(decided: DecidedDesign, steps: Sequence[Step]) -> Memory:
    """Return what the configurations of a stage of the pipeline need."""
    design, groups, flaws = decided.design, decided.groups, decided.compatibility
    batch, layers = design.execution.batch, groups.layers_of_stage
    kernels = [kernel for step in steps for kernel in step.kernels]
    added = layers * sum(kernel.dram_extra_bytes for kernel in kernels)
    tables = batch.table_bytes / groups.chips
    waiting = max((step.live_bytes for step in steps), default=0.0)
    if flaws.other_tensors_ignored and batch.kind in (WorkloadKind.HPL, WorkloadKind.FFT):
        return Memory(added, 0.0, 0.0, 0.0, tables, waiting)
    trains = any(kernel.backward for kernel in design.kernels)
    forward = layers * _weight_bytes(decided, [kernel for kernel in kernels if not kernel.backward])
    repeats_backward = flaws.backward_weights_counted_again or not trains
    weights = layers * _weight_bytes(decided, kernels) if repeats_backward else forward
    gradients = optimizer = activations = 0.0
    if trains and not flaws.gradients_not_kept:
        updates = [kernel for kernel in kernels if kernel.collective is PERIODIC]
        sizes = (decided.output_bytes(kernel) * decided.tiles_of_output(kernel) for kernel in updates)
        gradients = float(layers * sum(sizes))
    if trains and not flaws.optimizer_states_ignored:
        optimizer = forward / design.execution.word_bytes * ADAM_BYTES
    if trains and not flaws.in_flight_activations_ignored:
        in_flight = min(groups.micro_batches, groups.pipeline)
        saved = _saved_bytes(decided, kernels)
        activations = max(0.0, layers * in_flight - 1) * max(1, batch.micro_batch) * saved
    return Memory(weights + added, gradients, optimizer, activations, tables, waiting)


def _weight_bytes(decided: DecidedDesign, kernels: Kernels) -> float:
    return float(sum(decided.weight_bytes(kernel) * decided.tiles_of_weight(kernel) for kernel in kernels))


def _saved_bytes(decided: DecidedDesign, kernels: Kernels) -> float:
    """Return what the forward pass leaves for the backward pass, each tensor once."""
    own, by_id = {kernel.id for kernel in kernels}, decided.kernels
    saved = {
        edge.source
        for edge in decided.design.edges
        if edge.source in own and not edge.zero_out and by_id[edge.target].backward and not by_id[edge.source].backward
    }
    return float(decided.decision.tiles * sum(decided.output_bytes(by_id[number]) for number in saved))


class DesignAccount:
    """The figures of a design under a decision.

    Attributes:
        decided: the design with its degrees, and what was decided of it.
        design: the same.
        groups: of its chips.
        steps: its configurations.
        step_ns: time of the slowest stage, with what it hands on to the next one.
        batch_ns: time of a batch of one copy: all layers of a stage, for all inputs, while the pipeline fills and
            drains.
        latency_ns: time of one input through all stages.
        flop: operations of a batch, of all copies.
        peak_flop_per_s: of one chip.
        memory: DRAM of a chip of the stage that needs most.
        dram_traffic_bytes: of a batch, all chips.
        network_traffic_bytes: of a batch, all chips.
        price_usd: of the machine.
        power_w: of the machine.
    """

    def __init__(self, decided: DecidedDesign, given: Sequence[StepFigures]) -> None:
        """Take what was decided, and what the checker has accepted of each configuration; see `steps_of`."""
        self.decided, self.design, self.groups = decided, decided.design, decided.groups
        machine, batch = self.design.machine, self.design.execution.batch
        self.steps = steps_of(decided, given)
        stages: dict[int, list[Step]] = {}  # of the pipeline
        for step in self.steps:
            stages.setdefault(step.stage, []).append(step)
        self.memory = max((_of_stage(decided, inside) for inside in stages.values()), key=lambda memory: memory.total)
        times_ns = {stage: sum(step.time_ns for step in inside) for stage, inside in stages.items()}
        self.step_ns = max(time_ns + self._sent_ns(stage) for stage, time_ns in times_ns.items())
        self._layer_bytes = float(batch.hidden * batch.sequence * self.design.execution.word_bytes)  # to the next one
        self.batch_ns, self.latency_ns = self._batch_ns(), self._latency_ns()
        self.dram_traffic_bytes = self.groups.runs * sum(step.dram_bytes for step in self.steps)
        self.network_traffic_bytes = self.groups.runs * sum(step.network_bytes for step in self.steps)
        of_graph = sum(
            kernel.outer * kernel.m * kernel.n * max(1, kernel.num_input) * (2 * kernel.k if kernel.systolic else 1)
            for kernel in self.design.kernels
        )
        self.flop = batch.copies * self.groups.repetitions * of_graph
        units = machine.lanes_per_core * machine.stages_per_core * machine.cores
        self.peak_flop_per_s = 2.0 * units * machine.frequency_ghz * PER_GIGA
        prices, network = machine.prices, ChipNetwork(machine.network, batch.copies, decided.compatibility)
        dram_usd, dram_w = prices.dram_usd_per_gb_per_s, prices.dram_w_per_gb_per_s
        chip_usd = prices.accelerator_usd + machine.dram_gb_per_s * dram_usd
        self.price_usd = machine.chips * chip_usd + network.price_usd
        self.power_w = machine.chips * (prices.accelerator_w + machine.dram_gb_per_s * dram_w) + network.power_w

    def _sent_ns(self, stage: int) -> float:
        """Return the time in which a stage sends what later ones read of all that was made."""
        link = self.groups.links.get("PP")
        if link is None:
            return 0.0
        stage_of = {kernel.id: step.stage for step in self.steps for kernel in step.kernels}
        crossing = sum(
            self.decided.edge_bytes(edge)
            for edge in self.design.edges
            if stage_of[edge.source] <= stage < stage_of[edge.target]
        )
        return self.decided.decision.tiles * crossing / link.gb_per_s

    def _batch_ns(self) -> float:
        groups, batch = self.groups, self.design.execution.batch
        if batch.kind in (WorkloadKind.HPL, WorkloadKind.FFT):
            return self.step_ns
        layers = groups.layers_of_stage
        waits = (groups.pipeline - 1) / (groups.micro_batches * max(1, layers - 1))
        busy_ns = self.step_ns * (1 + waits) * layers * batch.global_batch / groups.data
        link = groups.links.get("PP")
        trains = any(kernel.backward for kernel in self.design.kernels)
        has_stages = groups.pipeline > 1 or self.decided.compatibility.lone_chip_communicates
        if link is None or not trains or not has_stages or batch.layers_in_graph > 1:
            return busy_ns
        return busy_ns + 2 * batch.layers * self._layer_bytes / link.gb_per_s  # to the next stage, and back

    def _latency_ns(self) -> float:
        groups, link = self.groups, self.groups.links.get("PP")
        through_ns = groups.pipeline * groups.layers_of_stage * self.step_ns
        if link is None:
            return through_ns
        handed_ns = self._layer_bytes / groups.tensor / link.gb_per_s + self.design.machine.link_latency_ns
        return through_ns + (groups.pipeline - 1) * handed_ns
