"""A design under a decision, from first principles: what one chip has of kernels and tensors; for checkers."""

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

WHOLE, ROWS, COLUMNS = "RR", "SR", "RS"
# Dimensions along rows and columns of a matrix that is read, outer ones first; preferred readings first.
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
# By the split dimension of a kernel, in the order O, M, K, N, none: how what it makes lies, and what it needs.
_SPLITS = (Dim.OUTER, Dim.M, Dim.K, Dim.N, Dim.NONE)
_GIVEN = ("SR", "SR", "RR", "RS", "RR")
_NEEDED = MappingProxyType(
    {
        "elementwise": ("SR", "SR", "RR", "RS", "RR"),
        "first": ("SR", "RR", "SR", "RS", "RR"),
        "second": ("SR", "SR", "RS", "RR", "RR"),
        "weight update": ("SR", "SR", "RS", "SR", "RR"),
    }
)
Conversions = Sequence[tuple[int, Collective]]  # id of the kernel that makes a tensor, and what changes its layout
Pair = tuple[DesignKernel, DesignKernel]


def _changes_by_letter(design: Design, sharding: Mapping[int, Dim]) -> Iterator[tuple[int, Collective]]:
    kernels = {kernel.id: kernel for kernel in design.kernels}
    for edge in design.edges:
        giver, taker = kernels[edge.source], kernels[edge.target]
        given = _GIVEN[_SPLITS.index(sharding.get(giver.id, Dim.NONE))]
        row = "first"
        if not taker.variant.is_gemm:
            row = "elementwise"
        elif taker.tiling is Dim.K:
            row = "weight update"
        elif taker.variant is KernelVariant.GEMM_INPUT1_INPUT2 and giver.output_bytes != taker.input_1_bytes:
            row = "second" if giver.output_bytes == taker.input_2_bytes else "first"
        needed = _NEEDED[row][_SPLITS.index(sharding.get(taker.id, Dim.NONE))]
        if given not in (WHOLE, needed):
            yield giver.id, Collective.ALL_GATHER if needed == WHOLE else Collective.ALL_TO_ALL


def changes_by_axes(design: Design, sharding: Mapping[int, Dim]) -> Iterator[tuple[int, Collective]]:
    """Yield the giver's id and the collective, for each tensor that is not held as it is needed."""
    kernels = {kernel.id: kernel for kernel in design.kernels}
    within = [(kernels[edge.source], kernels[edge.target]) for edge in design.edges]
    for pairs in (within, _between_layers(design)):
        for number, (giver, taker) in enumerate(pairs):
            held = {Dim.OUTER: ROWS, Dim.M: ROWS, Dim.N: COLUMNS}.get(sharding.get(giver.id, Dim.NONE), WHOLE)
            needed = _needed(pairs, number, sharding.get(taker.id, Dim.NONE))
            if held not in (WHOLE, needed):
                yield giver.id, Collective.ALL_GATHER if needed == WHOLE else Collective.ALL_TO_ALL


def _between_layers(design: Design) -> list[Pair]:
    """Return who hands a matrix to whom at the end of a layer."""
    batch = design.execution.batch
    if batch.layers < 2 or batch.layers_in_graph != 1:  # one layer follows another
        return []
    sources, targets = ({getattr(edge, end) for edge in design.edges} for end in ("source", "target"))
    return [
        (giver, taker)
        for giver in design.kernels
        for taker in design.kernels
        if giver is not taker
        and giver.id not in sources
        and taker.id not in targets
        and giver.collective is not Collective.ALL_REDUCE_PERIODIC
        and not taker.variant.is_gemm
        and (giver.backward, giver.outer * giver.m, giver.n) == (taker.backward, taker.outer * taker.m, taker.n)
    ]


def _needed(pairs: Sequence[Pair], number: int, split: Dim) -> str:
    giver, taker = pairs[number]
    reading = _reading(pairs, number)
    sizes = {"O": taker.outer, "M": taker.m, "K": taker.k, "N": taker.n}
    if reading is None:
        same = giver.outer * giver.m * giver.n == taker.outer * taker.m * taker.n
        return ROWS if same and not taker.variant.is_gemm and split in (Dim.OUTER, Dim.M) else WHOLE
    for side, layout in zip(reading.split(","), (ROWS, COLUMNS), strict=True):
        cut = [letter for letter in side if sizes[letter] > 1]
        if split.value in side:
            return layout if cut[:1] == [split.value] else WHOLE
    return WHOLE


def _reading(pairs: Sequence[Pair], number: int) -> str | None:
    """Return how a tensor is read: tensors that fit one operand alone go first, then each takes a free operand."""
    taker = pairs[number][1]
    operands = _READINGS[taker.variant]
    rest = [place for place, pair in enumerate(pairs) if pair[1] is taker]
    fits = {place: [_fitting(operand, *pairs[place]) for operand in operands] for place in rest}
    used: set[int] = set()
    for count in range(len(operands) + 1):
        for place in (place for place in rest if sum(map(bool, fits[place])) == count):
            possible = [operand for operand, readings in enumerate(fits[place]) if readings]
            chosen = next((operand for operand in possible if operand not in used), possible[0] if possible else None)
            if place == number:
                return None if chosen is None else fits[place][chosen][0]
            if chosen is not None:
                used.add(chosen)
    return None


def _fitting(operand: Sequence[str], giver: DesignKernel, taker: DesignKernel) -> list[str]:
    sizes = {"O": taker.outer, "M": taker.m, "K": taker.k, "N": taker.n}
    wanted = [giver.outer * giver.m, giver.n]
    return [one for one in operand if [prod(sizes[letter] for letter in side) for side in one.split(",")] == wanted]


def statistics_of(kernel: DesignKernel, split: Dim, rows: int, columns: int) -> int:
    """Return how many sums or extrema the chips that share a normalization or a softmax exchange."""
    is_told = any(word in kernel.name.lower() for word in ("norm", "softmax")) and not kernel.variant.is_gemm
    tiled_rows = kernel.tiling in (Dim.OUTER, Dim.M)
    if is_told and split is (Dim.N if tiled_rows else Dim.M):
        return 2 * (rows if tiled_rows else columns)
    return 0


class Groups:
    """How the chips of a design share a batch.

    Attributes:
        links: the dimension of the network along which each kind of group of a language model lies: TP, PP, DP, SP.
        chips: of a copy of the workload.
        tensor: chips that share each kernel.
        pipeline: stages that follow one another.
        sequence: groups that share the sequence.
        data: groups that share a batch.
        micro_batches: how often a batch runs through the pipeline of a data parallel group.
        layers_of_stage: how often the graph runs on a chip, per micro-batch; one of all layers runs once.
        repetitions: how often the kernels of the graph are needed for a batch of one copy.
        runs: how often the configurations run in a batch, over all chips of all copies.
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
    """A design and what was decided of it.

    Attributes:
        design: with its degrees.
        decision: sharding, tiles and configurations.
        compatibility: flaws to repeat.
        kernels: by id.
        groups: of its chips.
        sides: of the grid of chips that a matrix is laid out on.
        levels: the length of the longest path to each kernel, by id.
        conversions: what changes layouts between kernels: per edge that does, the id of its giver and what changes it.
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
        total = sum(self.kernels[giver].output_bytes for giver, _ in self.conversions)
        for kernel in design.kernels:
            split = self.split(kernel)
            if split is Dim.K and kernel.collective in (Collective.NONE, Collective.ALL_REDUCE):
                total += kernel.output_bytes
            if not self.compatibility.layouts_by_letter:
                count = statistics_of(kernel, split, kernel.outer * kernel.m, kernel.n)
                total += count * design.execution.word_bytes
        return total

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
