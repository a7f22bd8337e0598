"""The groups of chips of a design, and how often each of them runs its graph for a batch [ko24, section 4]."""

import math

from dfcompile.dfmodel_backend.machine.machine import Link
from dfcompile.dfmodel_backend.workload.design import Design, WorkloadKind


class Groups:
    """How the chips of a design share a batch.

    Attributes:
        copies: of the workload, each on chips of its own.
        chips: of a copy.
        tensor: chips that share each kernel.
        pipeline: stages that follow one another.
        data: groups that share a batch.
        sequence: groups that share the sequence.
        pipeline_link: between stages, if there is one.
    """

    def __init__(self, design: Design) -> None:
        batch, links = design.execution.batch, design.machine.links
        is_language_model = batch.kind is WorkloadKind.LLM
        along: dict[str, Link] = {link.parallelism: link for link in links} if is_language_model else {}
        chips = {name: link.chips for name, link in along.items()}
        self.copies = batch.copies
        self.chips = math.prod(link.chips for link in links)
        self.tensor, self.pipeline = chips.get("TP", 1), chips.get("PP", 1)
        self.sequence = chips.get("SP", 1)
        self.data = self.chips if batch.kind is WorkloadKind.DLRM else chips.get("DP", 1)
        self.pipeline_link = along.get("PP")

    def micro_batches(self, design: Design) -> float:
        """Return how often a batch runs through the pipeline of a data parallel group."""
        batch = design.execution.batch
        if batch.kind in (WorkloadKind.HPL, WorkloadKind.FFT):
            return 1.0
        return batch.global_batch / (max(1, batch.micro_batch) * self.data)

    def layers_of_stage(self, design: Design) -> int:
        """Return how often the graph runs on a chip, per micro-batch; one of all layers runs once."""
        batch = design.execution.batch
        is_layer = batch.kind is WorkloadKind.LLM and batch.layers_in_graph <= 1
        return math.ceil(batch.layers / self.pipeline) if is_layer else 1

    def runs(self, design: Design) -> float:
        """Return how often the configurations run in a batch, over all chips of all copies."""
        batch = design.execution.batch
        if batch.kind is WorkloadKind.LLM:
            return float(repetitions(design) * self.tensor * self.sequence * self.copies)
        if batch.kind is WorkloadKind.DLRM:
            return batch.global_batch * self.copies * self.chips / self.data
        return float(self.copies * self.chips)


def repetitions(design: Design) -> int:
    """Return how often the kernels of the graph are needed for a batch of one copy."""
    batch = design.execution.batch
    if batch.kind in (WorkloadKind.HPL, WorkloadKind.FFT):
        return 1
    is_layer = batch.kind is WorkloadKind.LLM and batch.layers_in_graph <= 1
    return batch.global_batch * (batch.layers if is_layer else 1)
