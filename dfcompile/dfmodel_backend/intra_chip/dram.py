"""DRAM that one chip of a design needs: weights, what training keeps, tensors that wait [ko24, section 4]."""

from dataclasses import dataclass

import numpy as np

from dfcompile.dfmodel_backend.columns import Column, Members
from dfcompile.dfmodel_backend.inter_chip.shares import Share
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel
from dfcompile.dfmodel_backend.machine.machine import Collective
from dfcompile.dfmodel_backend.workload.design import Dim, WorkloadKind

OPTIMIZER_BYTES = 12  # per parameter: 32-bit copy, momentum and variance of Adam [rajbhandari20, section 3]


@dataclass(frozen=True, slots=True)
class DramNeed:
    """Bytes of DRAM of one chip; what waits between configurations comes on top."""

    weights: float
    gradients: float
    optimizer: float
    activations: float  # of micro-batches in flight and of other layers
    tables: float

    @property
    def total(self) -> float:
        """All of it."""
        return self.weights + self.gradients + self.optimizer + self.activations + self.tables


def dram_need(model: DesignModel, positions: list[int] | None = None) -> DramNeed:
    """Return what the kernels of one pipeline stage keep in DRAM all the time; all kernels unless given."""
    shares = [model.shares[position] for position in positions] if positions is not None else list(model.shares)
    design, compatibility = model.design, model.compatibility
    batch = design.execution.batch
    per_stage = layers_per_stage(model)
    per_copy = design.machine.chips // batch.copies
    extra = per_stage * sum(share.kernel.dram_extra_bytes for share in shares)
    if _holds_problem_alone(model):
        return DramNeed(extra, 0.0, 0.0, 0.0, batch.table_bytes / per_copy)
    trains = any(kernel.backward for kernel in design.kernels)
    weights = per_stage * sum(_weight(share, model, trains=trains) for share in shares)
    gradients = optimizer = activations = 0.0
    if trains and not compatibility.gradients_not_kept:
        updates = [share for share in shares if share.kernel.collective is Collective.ALL_REDUCE_PERIODIC]
        gradients = per_stage * sum(share.output_bytes * model.tiles_of_gradient(share) for share in updates)
    if trains and not compatibility.optimizer_states_ignored:
        forward = sum(
            share.weight_bytes * model.tiles_of_weight(share) for share in shares if not share.kernel.backward
        )
        optimizer = per_stage * forward / design.execution.word_bytes * OPTIMIZER_BYTES
    if trains and not compatibility.in_flight_activations_ignored:
        in_flight = min(float(model.micro_batches), model.degrees.pipeline)
        others = per_stage * in_flight - 1  # one layer of one micro-batch is what waits between configurations
        activations = max(0.0, others) * max(1, batch.micro_batch) * _saved_bytes(model, shares)
    return DramNeed(weights + extra, gradients, optimizer, activations, batch.table_bytes / per_copy)


def kept_bytes(model: DesignModel) -> Column:
    """Return what each kernel alone keeps in DRAM all the time; over the kernels of a pipeline stage it adds up."""
    return np.array([dram_need(model, [position]).total for position in range(len(model.shares))])


def never_fits_dram(whole: DesignModel) -> bool:
    """Return whether, cut into any number of tiles, what is always in DRAM is too much.

    ``whole`` is the design in one tile: tiles only add; but where of weights and gradients one tile counts.
    """
    design = whole.design
    if not design.machine.dram_bytes or design.execution.batch.layers_in_graph > 1:
        return False
    for share in whole.shares if whole.compatibility.weights_of_one_tile or _has_inputs(whole) else ():
        tiled, collective = share.kernel.tiling.shard, share.kernel.collective
        if share.weight_bytes and tiled in (Dim.M, Dim.K):
            return False
        if collective is Collective.ALL_REDUCE_PERIODIC and tiled in (Dim.M, Dim.N):
            return False
    return dram_need(whole).total > design.machine.dram_bytes


def _has_inputs(model: DesignModel) -> bool:
    return any(share.kernel.num_input for share in model.shares)


def _holds_problem_alone(model: DesignModel) -> bool:
    kind = model.design.execution.batch.kind
    return model.compatibility.other_tensors_ignored and kind in (WorkloadKind.HPL, WorkloadKind.FFT)


def layers_per_stage(model: DesignModel) -> int:
    """Return how often the graph runs on one chip per micro-batch; a graph of all layers is spread over stages."""
    batch = model.design.execution.batch
    if batch.kind is not WorkloadKind.LLM or batch.layers_in_graph > 1:
        return 1
    return -(-batch.layers // model.degrees.pipeline)


def _weight(share: Share, model: DesignModel, *, trains: bool) -> float:
    if trains and share.kernel.backward and not model.compatibility.backward_weights_counted_again:
        return 0.0
    return share.weight_bytes * model.tiles_of_weight(share)


def _saved_bytes(model: DesignModel, shares: list[Share]) -> float:
    """Return what the forward pass of some kernels leaves for the backward pass; a tensor counts once."""
    saving = {share.kernel.id for share in shares}
    kept: dict[int, float] = {}
    for edge in model.edges:
        source, target = model.shares[edge.source].kernel, model.shares[edge.target].kernel
        if source.id in saving and target.backward and not source.backward:
            kept[edge.source] = max(kept.get(edge.source, 0.0), edge.size_bytes)
    return model.tiles * sum(kept.values())


def waiting_bytes(model: DesignModel, before: Members, inside: Members) -> Column:
    """Return the bytes of tensors in DRAM while sets run after the kernels of ``before``.

    A tensor waits from the configuration that makes it to the last that reads it, both included.

    Args:
        model: of the design.
        before: kernels that ran earlier, ``[set, kernel]``.
        inside: kernels of the configuration, ``[set, kernel]``.
    """
    if _holds_problem_alone(model):
        return np.zeros(len(before))
    source = np.array([edge.source for edge in model.edges], np.intp)
    target = np.array([edge.target for edge in model.edges], np.intp)
    size = np.array([edge.size_bytes for edge in model.edges], float)
    inputs = np.array([share.kernel.num_input for share in model.shares], np.int64)
    tiles = np.where((inside * inputs).max(axis=1, initial=0) > 0, 1, model.tiles)
    made = before[:, source] | inside[:, source]
    on_chip = inside[:, source] & inside[:, target]
    live = (made & ~before[:, target] & ~on_chip).astype(float) @ size
    column: Column = live * tiles * max(1, model.design.execution.batch.micro_batch)
    return column
