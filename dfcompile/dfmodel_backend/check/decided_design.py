"""A design under a decision, from first principles: what one chip has of kernels and tensors; for checkers."""

import math
from collections.abc import Sequence
from functools import cached_property
from typing import assert_never

from msgspec import Struct

from dfcompile.dfmodel_backend.check.operands import Conversions, conversions_of, statistics_of
from dfcompile.dfmodel_backend.check.requirements import longest_paths
from dfcompile.dfmodel_backend.compatibility import Compatibility
from dfcompile.dfmodel_backend.evaluate.designs import Decision
from dfcompile.dfmodel_backend.machine.machine import Collective, Link
from dfcompile.dfmodel_backend.workload.design import Batch, Design, DesignEdge, DesignKernel, Dim, WorkloadKind


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


Kernels = Sequence[DesignKernel]  # of a configuration


class DecidedDesign(Struct, frozen=True, dict=True):
    """A design and what was decided of it.

    Attributes:
        design: with its degrees.
        decision: sharding, tiles and configurations.
        compatibility: flaws to repeat.
    """

    design: Design
    decision: Decision
    compatibility: Compatibility

    @cached_property
    def kernels(self) -> dict[int, DesignKernel]:
        """Kernels by id."""
        return {kernel.id: kernel for kernel in self.design.kernels}

    @cached_property
    def groups(self) -> Groups:
        """Of its chips."""
        return Groups(self.design)

    @cached_property
    def conversions(self) -> Conversions:
        """What changes layouts between kernels."""
        return conversions_of(self.design, self.decision.sharding, self.compatibility)

    @property
    def sharding_bytes(self) -> float:
        """Bytes that all chips of a layer exchange for one input: reductions, changes of layout, statistics."""
        design = self.design
        if not design.shards_kernels:
            return 0.0
        total = sum(self.kernels[giver].output_bytes for giver, _ in self.conversions)
        for kernel in design.kernels:
            split = self.split(kernel)
            if split is Dim.K and kernel.collective in (Collective.NONE, Collective.ALL_REDUCE):
                total += kernel.output_bytes
            if not self.compatibility.layouts_by_letter:
                count = statistics_of(kernel, split, kernel.outer * kernel.m, kernel.n)
                total += count * design.execution.word_bytes
        return total

    @cached_property
    def levels(self) -> dict[int, int]:
        """The length of the longest path to each kernel, by id."""
        return longest_paths(self.kernels, [(edge.source, edge.target) for edge in self.design.edges])

    def inside(self, number: int) -> tuple[DesignKernel, ...]:
        """Return the kernels of a configuration, in the order of the file."""
        return tuple(kernel for kernel in self.design.kernels if self.decision.configs[kernel.id] == number)

    def split(self, kernel: DesignKernel) -> Dim:
        """Return the dimension of a kernel that is split over chips."""
        return self.decision.sharding.get(kernel.id, Dim.NONE)

    def extents(self, kernel: DesignKernel) -> tuple[int, int, int]:
        """Return rows, k and columns of one tile on one chip."""
        extents = {"M": kernel.outer * kernel.m, "K": kernel.k, "N": kernel.n}
        kind = self.design.execution.batch.kind
        match kind:
            case WorkloadKind.LLM:
                for dim, count in ((self.split(kernel), self.groups.tensor), (kernel.tiling, self.decision.tiles)):
                    axis = "M" if dim in (Dim.OUTER, Dim.M) else dim.value
                    if axis in extents:
                        extents[axis] = math.ceil(extents[axis] / count)
            case WorkloadKind.HPL:
                x, y = self.sides
                extents["M"], extents["K"] = math.ceil(extents["M"] / x), math.ceil(extents["K"] / y)
            case WorkloadKind.FFT:
                extents["N"] = math.ceil(extents["N"] / self.groups.chips)
            case WorkloadKind.DLRM:
                pass
            case _:
                assert_never(kind)
        return extents["M"], extents["K"], extents["N"]

    @cached_property
    def sides(self) -> tuple[int, int]:
        """The sides of the grid of chips that a matrix is laid out on."""
        chips = [link.chips for link in self.design.machine.links]
        return (1, chips[0]) if len(chips) == 1 else (math.prod(chips[:-1]), chips[-1])

    def output_bytes(self, kernel: DesignKernel) -> int:
        """Return the bytes of a tile of what a kernel makes, on one chip."""
        rows, _, columns = self.extents(kernel)
        return rows * columns * self.design.execution.word_bytes

    def weight_bytes(self, kernel: DesignKernel) -> int:
        """Return the bytes of a tile of a kernel's weights, on one chip."""
        rows, k, _ = self.extents(kernel)
        return rows * k * self.design.execution.word_bytes if kernel.has_weight else 0

    def edge_bytes(self, edge: DesignEdge) -> int:
        """Return the bytes of a tile of what a connection brings, on one chip."""
        return 0 if edge.zero_out else self.output_bytes(self.kernels[edge.source])

    def tiles_of(self, inside: Kernels) -> int:
        """Return how many tiles of a configuration follow one another; of kernels with several inputs one."""
        return 1 if any(kernel.num_input for kernel in inside) else self.decision.tiles

    def tiles_of_tensor(self, kernel: DesignKernel, dims: tuple[Dim, ...]) -> int:
        """Return in how many tiles a tensor with some dimensions of a kernel comes, as far as all of them count."""
        is_whole = self.compatibility.weights_of_one_tile or kernel.num_input or kernel.tiling not in dims
        return 1 if is_whole else self.decision.tiles

    def tiles_of_weight(self, kernel: DesignKernel) -> int:
        """Return in how many tiles the weights of a kernel come."""
        return self.tiles_of_tensor(kernel, (Dim.OUTER, Dim.M, Dim.K))

    def tiles_of_output(self, kernel: DesignKernel) -> int:
        """Return in how many tiles the output of a kernel comes."""
        return self.tiles_of_tensor(kernel, (Dim.OUTER, Dim.M, Dim.N))

    def core_work(self, kernel: DesignKernel) -> tuple[int, int, int, int]:
        """Return rows, steps and columns of a kernel on cores, and the stages of a core that share columns."""
        rows, k, columns = self.extents(kernel)
        if kernel.systolic and kernel.use_effective_stage:
            return rows, columns, k, max(1, self.design.execution.effective_stage)
        return rows, k, columns, self.design.machine.stages_per_core
