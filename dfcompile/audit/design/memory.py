"""What a chip of a design keeps in DRAM while it works on a batch [ko24], [rajbhandari20]."""

from collections.abc import Sequence

from msgspec import Struct

from dfcompile.audit.design.groups import Groups
from dfcompile.audit.design.steps import ONCE, Step, tile_bytes
from dfcompile.dfmodel_backend import Decision
from dfcompile.dfmodel_backend.check.shares import extents_of
from dfcompile.dfmodel_backend.compatibility import Compatibility
from dfcompile.dfmodel_backend.workload.design import Design, DesignKernel, Dim, WorkloadKind

ADAM_BYTES = 3 * 4  # per parameter: a copy and two moments of 32 bits [rajbhandari20, section 3]
ROWS = (Dim.OUTER, Dim.M)


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


def memory_of(design: Design, decision: Decision, steps: Sequence[Step], compatibility: Compatibility) -> Memory:
    """Return the DRAM of a chip of the stage that needs most."""
    stages = dict.fromkeys(step.stage for step in steps)
    found = [_Stage(design, decision, [step for step in steps if step.stage == one], compatibility) for one in stages]
    return max((stage.memory() for stage in found), key=lambda memory: memory.total)


class _Stage:
    """The configurations of a stage of the pipeline."""

    def __init__(self, design: Design, decision: Decision, steps: Sequence[Step], compatibility: Compatibility) -> None:
        self._design, self._decision, self._steps = design, decision, steps
        self._compatibility = compatibility
        self._kernels = [kernel for step in steps for kernel in step.kernels]
        self._trains = any(kernel.backward for kernel in design.kernels)
        self._groups = Groups(design)

    def memory(self) -> Memory:
        """Return what it needs."""
        batch, flaws = self._design.execution.batch, self._compatibility
        layers = self._groups.layers_of_stage(self._design)
        added = layers * sum(kernel.dram_extra_bytes for kernel in self._kernels)
        tables = batch.table_bytes / self._groups.chips
        waiting = max((step.live_bytes for step in self._steps), default=0.0)
        if flaws.other_tensors_ignored and batch.kind in (WorkloadKind.HPL, WorkloadKind.FFT):
            return Memory(added, 0.0, 0.0, 0.0, tables, waiting)
        repeats_backward = flaws.backward_weights_counted_again or not self._trains
        counted = [kernel for kernel in self._kernels if repeats_backward or not kernel.backward]
        weights = layers * sum(map(self._weight_bytes, counted)) + added
        gradients = optimizer = activations = 0.0
        if self._trains and not flaws.gradients_not_kept:
            gradients = layers * sum(map(self._gradient_bytes, self._kernels))
        if self._trains and not flaws.optimizer_states_ignored:
            forward = sum(self._weight_bytes(kernel) for kernel in self._kernels if not kernel.backward)
            optimizer = layers * forward / self._design.execution.word_bytes * ADAM_BYTES
        if self._trains and not flaws.in_flight_activations_ignored:
            in_flight = min(self._groups.micro_batches(self._design), self._groups.pipeline)
            activations = max(0.0, layers * in_flight - 1) * max(1, batch.micro_batch) * self._saved_bytes()
        return Memory(weights, gradients, optimizer, activations, tables, waiting)

    def _tiles(self, kernel: DesignKernel, dims: Sequence[Dim]) -> int:
        """Return in how many tiles a tensor with some dimensions of a kernel comes."""
        is_whole = self._compatibility.weights_of_one_tile or kernel.num_input or kernel.tiling not in dims
        return 1 if is_whole else self._decision.tiles

    def _weight_bytes(self, kernel: DesignKernel) -> float:
        if not kernel.has_weight:
            return 0.0
        rows, k, _ = extents_of(self._design, self._decision, kernel)
        return float(rows * k * self._design.execution.word_bytes * self._tiles(kernel, (*ROWS, Dim.K)))

    def _gradient_bytes(self, kernel: DesignKernel) -> float:
        if kernel.collective is not ONCE:
            return 0.0
        return float(tile_bytes(self._design, self._decision, kernel) * self._tiles(kernel, (*ROWS, Dim.N)))

    def _saved_bytes(self) -> float:
        """Return what the forward pass leaves for the backward pass, each tensor once."""
        kernels = {kernel.id: kernel for kernel in self._design.kernels}
        own = {kernel.id for kernel in self._kernels}
        saved = {
            edge.source
            for edge in self._design.edges
            if edge.source in own
            and not edge.zero_out
            and kernels[edge.target].backward
            and not kernels[edge.source].backward
        }
        return float(
            self._decision.tiles * sum(tile_bytes(self._design, self._decision, kernels[number]) for number in saved)
        )
