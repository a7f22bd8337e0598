"""What one chip computes and holds of a design under a decision; computed anew, for checkers alone."""

import math
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from types import MappingProxyType
from typing import assert_never

from dfcompile.canonical_dag import KernelVariant
from dfcompile.dfmodel_backend.check.requirements import longest_paths
from dfcompile.dfmodel_backend.compatibility import Compatibility
from dfcompile.dfmodel_backend.evaluate.designs import Decision
from dfcompile.dfmodel_backend.machine.system import Collective, Link
from dfcompile.dfmodel_backend.workload.design import Design, DesignEdge, DesignKernel, Dim, WorkloadKind

# Layouts: rows, then columns of a matrix are replicated (R) on chips or split (S) over them.
WHOLE, ROWS, COLUMNS = "RR", "SR", "RS"
# How a kernel may read a matrix: its dimensions along the rows, a comma, those along the columns, outermost first.
# Of several readings that fit the first is taken. A and B are the operands of a gemm.
_ELEMENTWISE = ("OM,N", "N,OM", "M,N", "OM,", ",N")
_A = ("OM,K", "OK,M", "M,K", "K,M")
_B = ("OK,N", "ON,K", "K,N", "N,K")
_READINGS: Mapping[KernelVariant, tuple[tuple[str, ...], ...]] = MappingProxyType(
    {
        KernelVariant.GEMM_INPUT1_WEIGHT: (_B,),
        KernelVariant.GEMM_INPUT1_INPUT2: (_A, _B),
        KernelVariant.ELEMENTWISE_INPUT1: (_ELEMENTWISE,),
        KernelVariant.ELEMENTWISE_INPUT1_INPUT2: (_ELEMENTWISE,),
    }
)
# The table of [ko24]: layouts of the output and of the inputs of a kernel, by the dimension along which it is split.
_SPLITS = (Dim.OUTER, Dim.M, Dim.K, Dim.N, Dim.NONE)
_OUTPUT_LAYOUTS = ("SR", "SR", "RR", "RS", "RR")
_INPUT_LAYOUTS = MappingProxyType(
    {
        "elementwise": ("SR", "SR", "RR", "RS", "RR"),
        "first": ("SR", "RR", "SR", "RS", "RR"),
        "second": ("SR", "SR", "RS", "RR", "RR"),
        "weight update": ("SR", "SR", "RS", "SR", "RR"),
    }
)
Conversions = Sequence[tuple[int, Collective]]  # id of a tensor's producer, and the collective that changes its layout
Pair = tuple[DesignKernel, DesignKernel]  # producer and consumer of a tensor


def _changes_by_letter(design: Design, sharding: Mapping[int, Dim]) -> Iterator[tuple[int, Collective]]:
    """Yield the changes of layout that [ko24]'s table asks for, which tells operands by their size alone."""
    kernels = {kernel.id: kernel for kernel in design.kernels}
    for edge in design.edges:
        producer, consumer = kernels[edge.source], kernels[edge.target]
        held = _OUTPUT_LAYOUTS[_SPLITS.index(sharding.get(producer.id, Dim.NONE))]
        row = "first"
        if not consumer.variant.is_gemm:
            row = "elementwise"
        elif consumer.tiling is Dim.K:
            row = "weight update"
        elif consumer.variant is KernelVariant.GEMM_INPUT1_INPUT2 and producer.output_bytes != consumer.input_1_bytes:
            row = "second" if producer.output_bytes == consumer.input_2_bytes else "first"
        needed = _INPUT_LAYOUTS[row][_SPLITS.index(sharding.get(consumer.id, Dim.NONE))]
        if held not in (WHOLE, needed):
            yield producer.id, Collective.ALL_GATHER if needed == WHOLE else Collective.ALL_TO_ALL


def changes_by_axes(design: Design, sharding: Mapping[int, Dim]) -> Iterator[tuple[int, Collective]]:
    """Yield, for each tensor whose layout must change, the id of its producer and the collective that changes it."""
    kernels = {kernel.id: kernel for kernel in design.kernels}
    within = [(kernels[edge.source], kernels[edge.target]) for edge in design.edges]
    for pairs in (within, _between_layers(design)):
        for number, (producer, consumer) in enumerate(pairs):
            held = {Dim.OUTER: ROWS, Dim.M: ROWS, Dim.N: COLUMNS}.get(sharding.get(producer.id, Dim.NONE), WHOLE)
            needed = _needed(pairs, number, sharding.get(consumer.id, Dim.NONE))
            if held not in (WHOLE, needed):
                yield producer.id, Collective.ALL_GATHER if needed == WHOLE else Collective.ALL_TO_ALL


def _between_layers(design: Design) -> list[Pair]:
    """Return the producers and consumers of the tensors that one layer hands to the next."""
    batch = design.execution.batch
    if batch.layers < 2 or batch.layers_in_graph != 1:  # there is no next layer, or the graph holds it
        return []
    sources, targets = ({getattr(edge, end) for edge in design.edges} for end in ("source", "target"))
    return [
        (producer, consumer)
        for producer in design.kernels
        for consumer in design.kernels
        if producer is not consumer
        and producer.id not in sources
        and consumer.id not in targets
        and producer.collective is not Collective.ALL_REDUCE_PERIODIC
        and not consumer.variant.is_gemm
        and (producer.backward, producer.matrix) == (consumer.backward, consumer.matrix)
    ]


def _needed(pairs: Sequence[Pair], number: int, split: Dim) -> str:
    """Return the layout in which a consumer that is split along a dimension needs the tensor of a pair."""
    producer, consumer = pairs[number]
    reading = _reading(pairs, number)
    sizes = {"O": consumer.outer, "M": consumer.m, "K": consumer.k, "N": consumer.n}
    if reading is None:
        is_reshape = prod(producer.matrix) == prod(consumer.matrix)
        return ROWS if is_reshape and not consumer.variant.is_gemm and split in (Dim.OUTER, Dim.M) else WHOLE
    for side, layout in zip(reading.split(","), (ROWS, COLUMNS), strict=True):
        if split.value in side:
            outermost = next((letter for letter in side if sizes[letter] > 1), None)
            return layout if split.value == outermost else WHOLE
    return WHOLE


def _reading(pairs: Sequence[Pair], number: int) -> str | None:
    """Return how a consumer reads the tensor of a pair; None if it fits no operand.

    Of all tensors of the consumer those that fit fewest operands choose first, a free operand if they fit one.
    """
    consumer = pairs[number][1]
    operands = _READINGS[consumer.variant]
    inputs = [position for position, pair in enumerate(pairs) if pair[1] is consumer]
    fits = {position: [_fitting(operand, *pairs[position]) for operand in operands] for position in inputs}
    chosen: dict[int, int] = {}  # by position of the pair: the operand
    for position in sorted(inputs, key=lambda position: sum(map(bool, fits[position]))):
        possible = [operand for operand, readings in enumerate(fits[position]) if readings]
        if possible:
            free = (operand for operand in possible if operand not in chosen.values())
            chosen[position] = next(free, possible[0])
    return fits[number][chosen[number]][0] if number in chosen else None


def _fitting(operand: Sequence[str], producer: DesignKernel, consumer: DesignKernel) -> list[str]:
    """Return the readings of an operand whose rows and columns are as many as those of the producer's output."""
    sizes = {"O": consumer.outer, "M": consumer.m, "K": consumer.k, "N": consumer.n}
    shapes = {reading: tuple(prod(sizes[dim] for dim in side) for side in reading.split(",")) for reading in operand}
    return [reading for reading, shape in shapes.items() if shape == producer.matrix]


def statistics_of(kernel: DesignKernel, split: Dim, rows: int, columns: int) -> int:
    """Return how many sums and maxima chips exchange to share a normalization or softmax, known by its name."""
    has_statistics = any(word in kernel.name.lower() for word in ("norm", "softmax")) and not kernel.variant.is_gemm
    tiled_rows = kernel.tiling in (Dim.OUTER, Dim.M)
    if has_statistics and split is (Dim.N if tiled_rows else Dim.M):
        return 2 * (rows if tiled_rows else columns)
    return 0


class Groups:
    """How the chips of a design share a batch.

    Attributes:
        links: of a language model, the dimension of the network for each of TP, PP, DP and SP.
        chips: of one copy of the workload.
        tensor: TP, the chips that share each kernel.
        pipeline: PP, the stages of the pipeline.
        sequence: SP, the groups that share a sequence.
        data: DP, the groups that share a batch.
        micro_batches: how many of a batch each data parallel group runs.
        layers_of_stage: runs of the graph on a chip per micro-batch: one per layer, or 1 if the graph holds all.
        repetitions: runs of the graph for a batch of one copy.
        runs: of the configurations in a batch, summed over the chips of all copies.
    """

    def __init__(self, design: Design) -> None:
        batch, links = design.execution.batch, design.machine.links
        is_language_model = batch.kind is WorkloadKind.LLM
        self.links: dict[str, Link] = {link.parallelism: link for link in links} if is_language_model else {}
        self.chips = math.prod(link.chips for link in links)
        along = {name: link.chips for name, link in self.links.items()}
        self.tensor, self.pipeline, self.sequence = (along.get(name, 1) for name in ("TP", "PP", "SP"))
        self.data = self.chips if batch.kind is WorkloadKind.DLRM else along.get("DP", 1)
        layers = batch.layers if is_language_model and batch.layers_in_graph <= 1 else 1
        self.layers_of_stage = math.ceil(layers / self.pipeline)
        self.micro_batches = batch.global_batch / (max(1, batch.micro_batch) * self.data)
        self.repetitions = batch.global_batch * layers
        self.runs = float(batch.copies * self.chips)
        if is_language_model:
            self.runs = float(self.repetitions * self.tensor * self.sequence * batch.copies)
        elif batch.kind is WorkloadKind.DLRM:
            self.runs = batch.global_batch * batch.copies * self.chips / self.data
        else:
            self.micro_batches, self.repetitions = 1.0, 1


Kernels = Sequence[DesignKernel]  # of a configuration


class DecidedDesign:
    """A design and the decision that solves it.

    Attributes:
        design: whose degrees are all given.
        decision: sharding, tiles and configurations.
        compatibility: which flaws of DFModel to repeat.
        kernels: by id.
        groups: of its chips.
        sides: of the grid of chips on which a matrix is laid out.
        levels: the length of the longest path to each kernel, by id.
        conversions: one per connection whose tensor changes its layout.
    """

    def __init__(self, design: Design, decision: Decision, compatibility: Compatibility) -> None:
        self.design, self.decision, self.compatibility = design, decision, compatibility
        self.kernels = {kernel.id: kernel for kernel in design.kernels}
        self.groups = Groups(design)
        *others, last = [link.chips for link in design.machine.links] or [1]
        self.sides = math.prod(others), last
        self.levels = longest_paths(self.kernels, [(edge.source, edge.target) for edge in design.edges])
        self.conversions: Conversions = []
        if design.shards_kernels:
            changes = _changes_by_letter if compatibility.layouts_by_letter else changes_by_axes
            self.conversions = list(changes(design, decision.sharding))

    @property
    def sharding_bytes(self) -> float:
        """Bytes that all chips of a layer exchange for one input: reductions, changes of layout, statistics."""
        design = self.design
        if not design.shards_kernels:
            return 0.0
        total = sum(self.kernels[producer].output_bytes for producer, _ in self.conversions)
        for kernel in design.kernels:
            split = self.split(kernel)
            if split is Dim.K and kernel.collective in (Collective.NONE, Collective.ALL_REDUCE):
                total += kernel.output_bytes
            if not self.compatibility.layouts_by_letter:
                count = statistics_of(kernel, split, kernel.outer * kernel.m, kernel.n)
                total += count * design.execution.word_bytes
        return total

    def configuration(self, number: int) -> tuple[DesignKernel, ...]:
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

    def output_bytes(self, kernel: DesignKernel) -> int:
        """Return the bytes of a tile of a kernel's output, on one chip."""
        rows, _, columns = self.extents(kernel)
        return rows * columns * self.design.execution.word_bytes

    def weight_bytes(self, kernel: DesignKernel) -> int:
        """Return the bytes of a tile of a kernel's weights, on one chip."""
        rows, k, _ = self.extents(kernel)
        return rows * k * self.design.execution.word_bytes if kernel.has_weight else 0

    def edge_bytes(self, edge: DesignEdge) -> int:
        """Return the bytes of a tile that a connection carries, on one chip."""
        return 0 if edge.zero_out else self.output_bytes(self.kernels[edge.source])

    def tiles_of(self, inside: Kernels) -> int:
        """Return how many tiles run through a configuration: one if any of its kernels has several inputs."""
        return 1 if any(kernel.num_input for kernel in inside) else self.decision.tiles

    def tiles_of_tensor(self, kernel: DesignKernel, dims: tuple[Dim, ...]) -> int:
        """Return how many tiles of a tensor with these dimensions count: all, or one to repeat DFModel's flaw."""
        is_whole = self.compatibility.weights_of_one_tile or kernel.num_input or kernel.tiling not in dims
        return 1 if is_whole else self.decision.tiles

    def tiles_of_weight(self, kernel: DesignKernel) -> int:
        """Return how many tiles of a kernel's weights count."""
        return self.tiles_of_tensor(kernel, (Dim.OUTER, Dim.M, Dim.K))

    def tiles_of_output(self, kernel: DesignKernel) -> int:
        """Return how many tiles of a kernel's output count."""
        return self.tiles_of_tensor(kernel, (Dim.OUTER, Dim.M, Dim.N))

    def core_work(self, kernel: DesignKernel) -> tuple[int, int, int, int]:
        """Return rows, reduction steps and columns of a kernel, and the stages of a core, which share the columns."""
        rows, k, columns = self.extents(kernel)
        if kernel.systolic and kernel.use_effective_stage:
            return rows, columns, k, max(1, self.design.execution.effective_stage)
        return rows, k, columns, self.design.machine.stages_per_core
