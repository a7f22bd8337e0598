"""The share of one chip: layouts of tensors, and extents, bytes and traffic of each kernel [ko24].

A tensor is the matrix that its kernel makes, ``outer·m`` rows of ``n``. A reader takes it as one of its operands, as it
is or transposed, by the extents: of ``outer`` products ``A[m, k] B[k, n]`` the dimension m moves along the rows of A,
k along the columns of A and the rows of B, n along the columns of B. An operand that all products share has no
axis for ``outer``: where products are split it is needed whole, and so is a weight update's other operand.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum, unique
from functools import lru_cache
from math import prod
from types import MappingProxyType
from typing import TypeAlias, assert_never

from msgspec import Struct

from dfcompile.canonical_dag import KernelVariant
from dfcompile.dfmodel_backend.compatibility import RIGHT, Compatibility
from dfcompile.dfmodel_backend.inter_chip.degrees import Degrees
from dfcompile.dfmodel_backend.machine.system import Collective
from dfcompile.dfmodel_backend.workload.design import Design, DesignEdge, DesignKernel, Dim, WorkloadKind
from dfcompile.dfmodel_backend.workload.kernel_work import KernelWork
from dfcompile.records import replace


@unique
class Layout(StrEnum):
    """How a tensor lies on a group of chips."""

    REPLICATED = "RR"
    COLUMNS = "RS"  # split along N
    ROWS = "SR"  # split along M or outer


Needs: TypeAlias = Mapping["Dim", Layout]  # of a tensor, by the split of the kernel that reads it


def _by_dim(layouts: str) -> Needs:
    """Return layouts by split: of outer, M, K, N, and of none."""
    return dict(zip(Dim, map(Layout, layouts.split()), strict=True))


_GIVES = _by_dim("SR SR RR RS RR")  # after the all-reduce of K
_FIRST_OPERAND = _by_dim("SR RR SR RS RR")
_SECOND_OPERAND = _by_dim("SR SR RS RR RR")
_WEIGHT_UPDATE = _by_dim("SR SR RS SR RR")


def given_layout(sharding: Dim) -> Layout:
    """Return the layout in which a kernel leaves its output."""
    return _GIVES[sharding]


def needed_layout(consumer: DesignKernel, sharding: Dim, tensor_bytes: float) -> Layout:
    """Return the layout in which a kernel takes a tensor; its operand is told by the tensor's size."""
    if not consumer.variant.is_gemm:
        return _GIVES[sharding]
    if consumer.tiling is Dim.K:
        return _WEIGHT_UPDATE[sharding]
    second = (
        consumer.variant is KernelVariant.GEMM_INPUT1_INPUT2
        and tensor_bytes != consumer.input_1_bytes
        and tensor_bytes == consumer.input_2_bytes
    )
    return _SECOND_OPERAND[sharding] if second else _FIRST_OPERAND[sharding]


def conversion(given: Layout, needed: Layout) -> Collective:
    """Return the collective that changes a layout; it moves each byte of the tensor once."""
    if given in (needed, Layout.REPLICATED):
        return Collective.NONE
    match needed:
        case Layout.REPLICATED:
            return Collective.ALL_GATHER
        case Layout.ROWS | Layout.COLUMNS:
            return Collective.ALL_TO_ALL
    assert_never(needed)


STATISTICS = 2  # per vector: mean and variance of a normalization, maximum and sum of a softmax
REDUCING = ("norm", "softmax")  # in the name of a kernel: nothing else in a file tells that it reduces


class Operand(Struct, frozen=True):
    """How an operand lies: which dimensions make its rows and its columns, outer ones first.

    Attributes:
        name: of the operand; what lies in another way is the same one.
        rows: their extents multiplied are the rows.
        columns: the same.
    """

    name: str
    rows: tuple[Dim, ...]
    columns: tuple[Dim, ...]


def _operands_of(name: str, sides: str) -> tuple[Operand, ...]:
    """Return operands written as dimensions of their rows and of their columns, with a comma."""
    split = (one.split(",") for one in sides.split())
    return tuple(Operand(name, tuple(map(Dim, rows)), tuple(map(Dim, columns))) for rows, columns in split)


_ELEMENTWISE = _operands_of("", "OM,N N,OM M,N OM, ,N")  # also the same for all outer, all columns, all rows
_FIRST = _operands_of("A", "OM,K OK,M M,K K,M")
_SECOND = _operands_of("B", "OK,N ON,K K,N N,K")
_OPERANDS: Mapping[KernelVariant, tuple[Operand, ...]] = MappingProxyType(
    {
        KernelVariant.GEMM_INPUT1_WEIGHT: _SECOND,  # the weight is A
        KernelVariant.GEMM_INPUT1_INPUT2: (*_FIRST, *_SECOND),
        KernelVariant.ELEMENTWISE_INPUT1: _ELEMENTWISE,
        KernelVariant.ELEMENTWISE_INPUT1_INPUT2: _ELEMENTWISE,
    }
)


@lru_cache(maxsize=8)  # thousands of choices of one design have the same kernels
def needs_by_axes(kernels: tuple[DesignKernel, ...], edges: tuple[DesignEdge, ...]) -> tuple[Needs, ...]:
    """Return, per edge, in which layout its reader takes the tensor for each split of the reader."""
    by_id = {kernel.id: kernel for kernel in kernels}
    read: dict[int, list[tuple[int, DesignKernel]]] = {}
    for at, edge in enumerate(edges):
        read.setdefault(edge.target, []).append((at, by_id[edge.source]))
    read_as: dict[int, Operand | None] = {}
    for taker, tensors in read.items():
        read_as |= _operands(by_id[taker], tensors)
    return tuple(_needs(by_id[edge.source], by_id[edge.target], read_as[at]) for at, edge in enumerate(edges))


def _operands(taker: DesignKernel, read: Sequence[tuple[int, DesignKernel]]) -> dict[int, Operand | None]:
    """Return as which operand each tensor is read, by the number of its edge: each is one of its own, if possible.

    What may be one operand alone comes first; of others the first edge is the first operand.
    """
    fitting = {at: [one for one in _OPERANDS[taker.variant] if _fits(one, giver, taker)] for at, giver in read}
    found: dict[int, Operand | None] = {}
    taken: set[str] = set()
    for at in sorted(fitting, key=lambda one: (len({operand.name for operand in fitting[one]}), one)):
        free = [operand for operand in fitting[at] if not operand.name or operand.name not in taken]
        found[at] = next(iter([*free, *fitting[at]]), None)
        taken |= {operand.name for operand in (found[at],) if operand is not None}
    return found


def _fits(operand: Operand, giver: DesignKernel, taker: DesignKernel) -> bool:
    extents = _extents(taker)
    sides = (operand.rows, operand.columns)
    return tuple(prod(extents[dim] for dim in side) for side in sides) == (giver.outer * giver.m, giver.n)


def _needs(giver: DesignKernel, taker: DesignKernel, operand: Operand | None) -> Needs:
    if operand is not None:
        return {dim: _layout(operand, dim, taker) for dim in Dim}
    # A reshape keeps the order of elements: what is split along the outermost axis stays so.
    is_reshape = not taker.variant.is_gemm and giver.outer * giver.m * giver.n == taker.outer * taker.m * taker.n
    return {dim: Layout.ROWS if is_reshape and dim.shard is Dim.M else Layout.REPLICATED for dim in Dim}


def _layout(operand: Operand, dim: Dim, taker: DesignKernel) -> Layout:
    extents = _extents(taker)
    for side, layout in ((operand.rows, Layout.ROWS), (operand.columns, Layout.COLUMNS)):
        outermost = next((one for one in side if extents[one] > 1), None)
        if dim in side:
            return layout if dim is outermost else Layout.REPLICATED
    return Layout.REPLICATED


def _extents(kernel: DesignKernel) -> dict[Dim, int]:
    return {Dim.OUTER: kernel.outer, Dim.M: kernel.m, Dim.K: kernel.k, Dim.N: kernel.n}


def exchanged_statistics(kernel: DesignKernel, sharding: Dim, rows: int, columns: int) -> int:
    """Return how many statistics chips all-reduce that share a kernel of ``rows`` by ``columns``; 0 if none.

    A normalization or a softmax reduces along rows, unless these come in tiles: a tile holds all that its results
    depend on.
    """
    reduces = not kernel.variant.is_gemm and any(word in kernel.name.lower() for word in REDUCING)
    if not reduces or sharding is not (Dim.N if kernel.tiling.shard is Dim.M else Dim.M):
        return 0
    return STATISTICS * (columns if sharding is Dim.M else rows)


def needs_of(
    kernels: tuple[DesignKernel, ...], edges: tuple[DesignEdge, ...], compatibility: Compatibility
) -> tuple[Needs, ...]:
    """Return, per edge, in which layout its reader takes the tensor for each split of the reader.

    As a flaw by the table of [ko24].
    """
    if not compatibility.layouts_by_letter:
        return needs_by_axes(kernels, edges)
    by_id = {kernel.id: kernel for kernel in kernels}
    ends = [(by_id[edge.source], by_id[edge.target]) for edge in edges]
    return tuple({dim: needed_layout(taker, dim, giver.output_bytes) for dim in Dim} for giver, taker in ends)


def layer_edges(design: Design) -> tuple[DesignEdge, ...]:
    """Return connections from the last kernels of a layer to the first ones of the next layer of the same pass.

    They are told by their extents; gradients stay where they are. They cost what a change of layout on them costs:
    what they hold is the input and the output of the graph, which is moved whatever the layouts.
    """
    batch = design.execution.batch
    if not design.shards_kernels or batch.layers <= 1 or batch.layers_in_graph > 1:
        return ()
    read = {edge.source for edge in design.edges}
    made = {edge.target for edge in design.edges}
    last = [k for k in design.kernels if k.id not in read and k.collective is not Collective.ALL_REDUCE_PERIODIC]
    first = [k for k in design.kernels if k.id not in made and not k.variant.is_gemm]
    matrix = {k.id: (k.backward, k.outer * k.m, k.n) for k in design.kernels}
    return tuple(
        DesignEdge(giver.id, taker.id, zero_out=False)
        for giver in last
        for taker in first
        if giver.id != taker.id and matrix[giver.id] == matrix[taker.id]
    )


class Share(Struct, frozen=True):
    """One tile of one kernel on one chip."""

    kernel: DesignKernel
    sharding: Dim
    work: KernelWork
    output_bytes: int
    weight_bytes: int
    exchange: tuple[tuple[Collective, float], ...]  # bytes per tile


class EdgeShare(Struct, frozen=True):
    """One tile of one connection on one chip."""

    source: int  # position of the kernel
    target: int
    size_bytes: int
    depth: int
    exchange: tuple[tuple[Collective, float], ...]


def shares_of(
    design: Design,
    degrees: Degrees,
    sharding: dict[int, Dim],
    tiles: int,
    micro_batches: float,
    compatibility: Compatibility = RIGHT,
) -> tuple[Share, ...]:
    """Return the shares of all kernels; ``sharding`` is by kernel id, unlisted kernels are not sharded."""
    shares = tuple(
        _share(design, degrees, kernel, sharding.get(kernel.id, Dim.NONE), tiles, micro_batches)
        for kernel in design.kernels
    )
    if not design.shards_kernels or degrees.tensor == 1 or compatibility.layouts_by_letter:
        return shares
    return _with_statistics_and_boundary(design, list(shares))


def _with_statistics_and_boundary(design: Design, found: list[Share]) -> tuple[Share, ...]:
    """Return the shares with statistics, and with the layout changes of what the layer hands to the next one."""
    for number, share in enumerate(found):
        statistics = exchanged_statistics(share.kernel, share.sharding, share.work.rows, share.work.n)
        if statistics:
            found[number] = _exchanging(share, Collective.ALL_REDUCE, statistics * design.execution.word_bytes)
    edges = layer_edges(design)
    position = {kernel.id: number for number, kernel in enumerate(design.kernels)}
    for edge, needed in zip(edges, needs_by_axes(design.kernels, edges), strict=True):
        giver, taker = found[position[edge.source]], found[position[edge.target]]
        change = conversion(given_layout(giver.sharding), needed[taker.sharding])
        if change is not Collective.NONE:
            found[position[edge.source]] = _exchanging(giver, change, giver.output_bytes)
    return tuple(found)


def _exchanging(share: Share, collective: Collective, size_bytes: int) -> Share:
    return replace(share, exchange=(*share.exchange, (collective, float(size_bytes))))


def in_micro_batches(shares: tuple[Share, ...], micro_batches: float) -> tuple[Share, ...]:
    """Return the shares of a language model with another number of micro-batches; what comes once a batch is split."""
    once = Collective.ALL_REDUCE_PERIODIC
    return tuple(
        replace(share, exchange=((once, share.output_bytes / micro_batches), *share.exchange[1:]))
        if share.kernel.collective is once
        else share
        for share in shares
    )


def _share(
    design: Design, degrees: Degrees, kernel: DesignKernel, sharding: Dim, tiles: int, micro_batches: float
) -> Share:
    extents = {Dim.M: kernel.outer * kernel.m, Dim.K: kernel.k, Dim.N: kernel.n}
    for dim, parts in _splits(design, degrees, kernel, sharding, tiles):
        if dim is not Dim.NONE:
            extents[dim] = -(-extents[dim] // parts)
    word = design.execution.word_bytes
    # Of its own; 0: those of the chip.
    stages = max(1, design.execution.effective_stage) if kernel.systolic and kernel.use_effective_stage else 0
    rows, k, n = extents[Dim.M], extents[Dim.K], extents[Dim.N]
    output = rows * n * word
    return Share(
        kernel=kernel,
        sharding=sharding,
        work=KernelWork(kernel.name, kernel.systolic, rows, k, n, stages_per_core=stages),
        output_bytes=output,
        weight_bytes=rows * k * word if kernel.has_weight else 0,
        exchange=tuple(_exchange(design, degrees, kernel, sharding, output, micro_batches)),
    )


def _splits(design: Design, degrees: Degrees, kernel: DesignKernel, sharding: Dim, tiles: int) -> list[tuple[Dim, int]]:
    batch = design.execution.batch
    match batch.kind:
        case WorkloadKind.LLM:
            return [(sharding.shard, degrees.tensor), (kernel.tiling.shard, tiles)]
        case WorkloadKind.HPL:
            return list(zip((Dim.M, Dim.K), grid(design), strict=True))
        case WorkloadKind.FFT:
            return [(Dim.N, design.machine.chips // batch.copies)]
        case WorkloadKind.DLRM:
            return []
    assert_never(batch.kind)


def grid(design: Design) -> tuple[int, int]:
    """Return the two-dimensional grid (X, Y) of chips that a matrix is laid out on."""
    *rows, last = (link.chips for link in design.machine.links)
    return prod(rows), last


def _exchange(
    design: Design, degrees: Degrees, kernel: DesignKernel, sharding: Dim, output_bytes: int, micro_batches: float
) -> list[tuple[Collective, float]]:
    batch = design.execution.batch
    kind, size = batch.kind, kernel.collective_bytes
    if kernel.collective is Collective.NONE:
        is_reduced = kind is WorkloadKind.LLM and sharding is Dim.K and degrees.tensor > 1
        return [(Collective.ALL_REDUCE, output_bytes)] if is_reduced else []
    if kind is WorkloadKind.HPL:
        x, y = grid(design)
        found = [(Collective.BROADCAST, size / x if x > 1 else 0.0)]
        if kernel.collective_2 is Collective.POINT_TO_POINT:
            found.append((Collective.POINT_TO_POINT, size / y if y > 1 else 0.0))
        return found
    if kind is WorkloadKind.FFT:
        return [(kernel.collective, size / (design.machine.chips // batch.copies) ** 2)]
    whole = output_bytes if kind is WorkloadKind.LLM else size
    once = kernel.collective is Collective.ALL_REDUCE_PERIODIC
    return [(kernel.collective, whole / micro_batches if once else whole)]


def edge_shares(
    design: Design, shares: tuple[Share, ...], compatibility: Compatibility = RIGHT
) -> tuple[EdgeShare, ...]:
    """Return the shares of all connections, with the layout changes on them."""
    needs = needs_of(design.kernels, design.edges, compatibility)
    levels = design.levels
    found = []
    for edge, (source, target), needed in zip(design.edges, design.ends, needs, strict=True):
        giver, taker = shares[source], shares[target]
        size = 0 if edge.zero_out else giver.output_bytes
        change = Collective.NONE
        if design.shards_kernels:
            change = conversion(given_layout(giver.sharding), needed[taker.sharding])
        exchange = ((change, float(giver.output_bytes)),) if change is not Collective.NONE else ()
        found.append(EdgeShare(source, target, size, levels[target] - levels[source] + 1, exchange))
    return tuple(found)
