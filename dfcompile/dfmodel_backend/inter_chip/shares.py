"""The share of one chip: layouts of tensors, and extents, bytes and traffic of each kernel [ko24].

A tensor is a matrix, ``outer·m`` rows of ``n``, that one kernel makes. A kernel reads it as the operand that fits its
extents, as it is or transposed. Of ``outer`` products ``A[m, k] B[k, n]`` m moves along the rows of A, k along the
columns of A and the rows of B, n along the columns of B. An operand that all products share has no axis for ``outer``:
every chip needs all of it where the products are split over chips.
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


Needs: TypeAlias = Mapping["Dim", Layout]  # in which a kernel reads a tensor, by the dimension that is split of it


def _by_dim(layouts: str) -> Needs:
    """Return the layouts of a kernel split along outer, M, K, N, and of one that is not split."""
    return dict(zip(Dim, map(Layout, layouts.split()), strict=True))


_GIVES = _by_dim("SR SR RR RS RR")  # after the all-reduce of K
_FIRST_OPERAND = _by_dim("SR RR SR RS RR")
_SECOND_OPERAND = _by_dim("SR SR RS RR RR")
_WEIGHT_UPDATE = _by_dim("SR SR RS SR RR")


def given_layout(sharding: Dim) -> Layout:
    """Return the layout in which a kernel leaves its output."""
    return _GIVES[sharding]


def needed_layout(consumer: DesignKernel, sharding: Dim, tensor_bytes: float) -> Layout:
    """Return the layout in which a kernel reads a tensor, by [ko24]'s table, which tells operands by their size."""
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
    """An operand in one orientation: which dimensions lie along its rows and its columns, outermost first.

    Attributes:
        name: ``A`` or ``B`` of a gemm, in any orientation; empty for the operands of elementwise kernels.
        rows: the number of rows is the product of their extents.
        columns: as for rows.
    """

    name: str
    rows: tuple[Dim, ...]
    columns: tuple[Dim, ...]


def _operands_of(name: str, sides: str) -> tuple[Operand, ...]:
    """Return the orientations of an operand, written ``rows,columns``: ``OM,N`` has outer and M along its rows."""
    split = (side.split(",") for side in sides.split())
    return tuple(Operand(name, tuple(map(Dim, rows)), tuple(map(Dim, columns))) for rows, columns in split)


_ELEMENTWISE = _operands_of("", "OM,N N,OM M,N OM, ,N")  # the last three are broadcast along outer, columns or rows
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
    """Return, per edge, the layout in which its consumer reads the tensor, for each dimension that may be split."""
    by_id = {kernel.id: kernel for kernel in kernels}
    tensors: dict[int, list[tuple[int, DesignKernel]]] = {}
    for number, edge in enumerate(edges):
        tensors.setdefault(edge.target, []).append((number, by_id[edge.source]))
    read_as: dict[int, Operand | None] = {}
    for consumer, inputs in tensors.items():
        read_as |= _operands(by_id[consumer], inputs)
    return tuple(_needs(by_id[edge.source], by_id[edge.target], read_as[number]) for number, edge in enumerate(edges))


def _operands(consumer: DesignKernel, inputs: Sequence[tuple[int, DesignKernel]]) -> dict[int, Operand | None]:
    """Return, by number of the edge, as which operand each input is read; two inputs are one operand only if they must.

    An input that fits a single operand comes first; of the others the first edge is the first operand.
    """
    operands = _OPERANDS[consumer.variant]
    fitting = {edge: [operand for operand in operands if _fits(operand, source, consumer)] for edge, source in inputs}
    chosen: dict[int, Operand | None] = {}
    taken: set[str] = set()
    for edge in sorted(fitting, key=lambda edge: (len({operand.name for operand in fitting[edge]}), edge)):
        free = [operand for operand in fitting[edge] if operand.name not in taken]
        chosen[edge] = operand = next(iter([*free, *fitting[edge]]), None)
        if operand is not None:
            taken.add(operand.name)
    return chosen


def _fits(operand: Operand, producer: DesignKernel, consumer: DesignKernel) -> bool:
    extents = _extents(consumer)
    return tuple(prod(extents[dim] for dim in side) for side in (operand.rows, operand.columns)) == producer.matrix


def _needs(producer: DesignKernel, consumer: DesignKernel, operand: Operand | None) -> Needs:
    if operand is not None:
        return {dim: _layout(operand, dim, consumer) for dim in Dim}
    # A reshape keeps the order of elements: what is split along the outermost axis stays so.
    is_reshape = not consumer.variant.is_gemm and prod(producer.matrix) == prod(consumer.matrix)
    return {dim: Layout.ROWS if is_reshape and dim.shard is Dim.M else Layout.REPLICATED for dim in Dim}


def _layout(operand: Operand, dim: Dim, consumer: DesignKernel) -> Layout:
    extents = _extents(consumer)
    for side, layout in ((operand.rows, Layout.ROWS), (operand.columns, Layout.COLUMNS)):
        outermost = next((axis for axis in side if extents[axis] > 1), None)
        if dim in side:
            return layout if dim is outermost else Layout.REPLICATED
    return Layout.REPLICATED


def _extents(kernel: DesignKernel) -> dict[Dim, int]:
    return {Dim.OUTER: kernel.outer, Dim.M: kernel.m, Dim.K: kernel.k, Dim.N: kernel.n}


def exchanged_statistics(kernel: DesignKernel, sharding: Dim, rows: int, columns: int) -> int:
    """Return how many statistics the chips that share a kernel of ``rows`` by ``columns`` all-reduce; 0 if none.

    A normalization or a softmax reduces along rows, or along columns if rows are cut into tiles: no result depends on
    another tile. Chips that split the reduced dimension exchange statistics.
    """
    reduces = not kernel.variant.is_gemm and any(word in kernel.name.lower() for word in REDUCING)
    if not reduces or sharding is not (Dim.N if kernel.tiling.shard is Dim.M else Dim.M):
        return 0
    return STATISTICS * (columns if sharding is Dim.M else rows)


def needs_of(
    kernels: tuple[DesignKernel, ...], edges: tuple[DesignEdge, ...], compatibility: Compatibility
) -> tuple[Needs, ...]:
    """Return what `needs_by_axes` does, or the needs of [ko24]'s table where its flaw is to be repeated."""
    if not compatibility.layouts_by_letter:
        return needs_by_axes(kernels, edges)
    by_id = {kernel.id: kernel for kernel in kernels}
    ends = [(by_id[edge.source], by_id[edge.target]) for edge in edges]
    return tuple({dim: needed_layout(target, dim, source.output_bytes) for dim in Dim} for source, target in ends)


def layer_edges(design: Design) -> tuple[DesignEdge, ...]:
    """Return connections from the last kernels of a layer to the first ones of the next layer of the same pass.

    Two kernels are connected if their outputs have the same extents; gradients of weights go to no other layer. Such a
    connection costs its change of layout alone: its tensor is an input and an output of the graph and counts as these.
    """
    batch = design.execution.batch
    if not design.shards_kernels or batch.layers <= 1 or batch.layers_in_graph > 1:
        return ()
    sources = {edge.source for edge in design.edges}
    targets = {edge.target for edge in design.edges}
    last = [k for k in design.kernels if k.id not in sources and k.collective is not Collective.ALL_REDUCE_PERIODIC]
    first = [k for k in design.kernels if k.id not in targets and not k.variant.is_gemm]
    return tuple(
        DesignEdge(producer.id, consumer.id, zero_out=False)
        for producer in last
        for consumer in first
        if producer.id != consumer.id and (producer.backward, producer.matrix) == (consumer.backward, consumer.matrix)
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


def _with_statistics_and_boundary(design: Design, shares: list[Share]) -> tuple[Share, ...]:
    """Add the exchange of statistics, and the changes of layout between the layer and the next one."""
    for number, share in enumerate(shares):
        statistics = exchanged_statistics(share.kernel, share.sharding, share.work.rows, share.work.n)
        if statistics:
            shares[number] = _exchanging(share, Collective.ALL_REDUCE, statistics * design.execution.word_bytes)
    edges = layer_edges(design)
    position = {kernel.id: number for number, kernel in enumerate(design.kernels)}
    for edge, needed in zip(edges, needs_by_axes(design.kernels, edges), strict=True):
        producer, consumer = shares[position[edge.source]], shares[position[edge.target]]
        change = conversion(given_layout(producer.sharding), needed[consumer.sharding])
        if change is not Collective.NONE:
            shares[position[edge.source]] = _exchanging(producer, change, producer.output_bytes)
    return tuple(shares)


def _exchanging(share: Share, collective: Collective, size_bytes: int) -> Share:
    return replace(share, exchange=(*share.exchange, (collective, float(size_bytes))))


def in_micro_batches(shares: tuple[Share, ...], micro_batches: float) -> tuple[Share, ...]:
    """Return a language model's shares for another number of micro-batches: the exchange of gradients is spread."""
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
    # Stages per core of this kernel alone; 0: as the chip has.
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
        exchanges = [(Collective.BROADCAST, size / x if x > 1 else 0.0)]
        if kernel.collective_2 is Collective.POINT_TO_POINT:
            exchanges.append((Collective.POINT_TO_POINT, size / y if y > 1 else 0.0))
        return exchanges
    if kind is WorkloadKind.FFT:
        return [(kernel.collective, size / (design.machine.chips // batch.copies) ** 2)]
    whole = output_bytes if kind is WorkloadKind.LLM else size
    is_once_a_batch = kernel.collective is Collective.ALL_REDUCE_PERIODIC
    return [(kernel.collective, whole / micro_batches if is_once_a_batch else whole)]


def edge_shares(
    design: Design, shares: tuple[Share, ...], compatibility: Compatibility = RIGHT
) -> tuple[EdgeShare, ...]:
    """Return the shares of all connections, with the layout changes on them."""
    needs = needs_of(design.kernels, design.edges, compatibility)
    levels = design.levels
    edges = []
    for edge, (source, target), needed in zip(design.edges, design.ends, needs, strict=True):
        producer, consumer = shares[source], shares[target]
        size = 0 if edge.zero_out else producer.output_bytes
        change = Collective.NONE
        if design.shards_kernels:
            change = conversion(given_layout(producer.sharding), needed[consumer.sharding])
        exchange = ((change, float(producer.output_bytes)),) if change is not Collective.NONE else ()
        edges.append(EdgeShare(source, target, size, levels[target] - levels[source] + 1, exchange))
    return tuple(edges)
