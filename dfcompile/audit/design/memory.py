"""What a chip of a design keeps in DRAM while it works on a batch [ko24], [rajbhandari20]."""

from collections.abc import Sequence

from msgspec import Struct

from dfcompile.dfmodel_backend.check.decided_design import DecidedDesign, Kernels
from dfcompile.dfmodel_backend.check.network import ONCE
from dfcompile.dfmodel_backend.check.steps import Step
from dfcompile.dfmodel_backend.workload.design import WorkloadKind

ADAM_BYTES = 3 * 4  # per parameter: a copy and two moments of 32 bits [rajbhandari20, section 3]


class Memory(Struct, frozen=True):
    """Bytes of DRAM of a chip of one stage.

    Attributes:
        weights: with what the file adds.
        gradients: of them.
        optimizer: states of parameters.
        activations: of micro-batches in flight, and of other layers.
        tables: embeddings, a matrix or a vector.
        waiting: tensors between configurations, where most of them wait.
    """

    weights: float
    gradients: float
    optimizer: float
    activations: float
    tables: float
    waiting: float

    @property
    def total(self) -> float:
        """All of it."""
        return self.weights + self.gradients + self.optimizer + self.activations + self.tables + self.waiting


def memory_of(decided: DecidedDesign, steps: Sequence[Step]) -> Memory:
    """Return the DRAM of a chip of the stage that needs most."""
    stages = dict.fromkeys(step.stage for step in steps)
    found = [_of_stage(decided, [step for step in steps if step.stage == stage]) for stage in stages]
    return max(found, key=lambda memory: memory.total)


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
        updates = [kernel for kernel in kernels if kernel.collective is ONCE]
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
