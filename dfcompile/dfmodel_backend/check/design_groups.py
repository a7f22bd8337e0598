"""The groups of chips of a design, and how often each of them runs its graph for a batch [ko24, section 4]."""

import math
from functools import cached_property

from msgspec import Struct

from dfcompile.dfmodel_backend.machine.machine import Link
from dfcompile.dfmodel_backend.workload.design import Batch, Design, WorkloadKind


class Groups(Struct, frozen=True, dict=True):
    """How the chips of a design share a batch."""

    design: Design

    @property
    def _batch(self) -> Batch:
        return self.design.execution.batch

    @cached_property
    def links(self) -> dict[str, Link]:
        """The dimension of the network along which each kind of group of a language model lies: TP, PP, DP, SP."""
        is_language_model = self._batch.kind is WorkloadKind.LLM
        return {link.parallelism: link for link in self.design.machine.links} if is_language_model else {}

    def _along(self, name: str) -> int:
        return self.links[name].chips if name in self.links else 1

    @cached_property
    def chips(self) -> int:
        """Chips of a copy of the workload."""
        return math.prod(link.chips for link in self.design.machine.links)

    @cached_property
    def tensor(self) -> int:
        """Chips that share each kernel."""
        return self._along("TP")

    @property
    def pipeline(self) -> int:
        """Stages that follow one another."""
        return self._along("PP")

    @property
    def data(self) -> int:
        """Groups that share a batch."""
        return self.chips if self._batch.kind is WorkloadKind.DLRM else self._along("DP")

    @property
    def sequence(self) -> int:
        """Groups that share the sequence."""
        return self._along("SP")

    @property
    def micro_batches(self) -> float:
        """How often a batch runs through the pipeline of a data parallel group."""
        if self._batch.kind in (WorkloadKind.HPL, WorkloadKind.FFT):
            return 1.0
        return self._batch.global_batch / (max(1, self._batch.micro_batch) * self.data)

    @property
    def _has_one_layer(self) -> bool:
        return self._batch.kind is WorkloadKind.LLM and self._batch.layers_in_graph <= 1

    @property
    def layers_of_stage(self) -> int:
        """How often the graph runs on a chip, per micro-batch; one of all layers runs once."""
        return math.ceil(self._batch.layers / self.pipeline) if self._has_one_layer else 1

    @property
    def repetitions(self) -> int:
        """How often the kernels of the graph are needed for a batch of one copy."""
        if self._batch.kind in (WorkloadKind.HPL, WorkloadKind.FFT):
            return 1
        return self._batch.global_batch * (self._batch.layers if self._has_one_layer else 1)

    @property
    def runs(self) -> float:
        """How often the configurations run in a batch, over all chips of all copies."""
        batch = self._batch
        if batch.kind is WorkloadKind.LLM:
            return float(self.repetitions * self.tensor * self.sequence * batch.copies)
        if batch.kind is WorkloadKind.DLRM:
            return batch.global_batch * batch.copies * self.chips / self.data
        return float(batch.copies * self.chips)
