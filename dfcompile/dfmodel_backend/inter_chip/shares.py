"""The share of one chip: extents, bytes and traffic of each kernel after sharding and tiling."""

from math import prod
from typing import assert_never

from msgspec import Struct

from dfcompile.dfmodel_backend.compatibility import RIGHT, Compatibility
from dfcompile.dfmodel_backend.inter_chip.degrees import Degrees
from dfcompile.dfmodel_backend.inter_chip.layouts import (
    conversion,
    exchanged_statistics,
    given_layout,
    layer_edges,
    needs_by_axes,
    needs_of,
)
from dfcompile.dfmodel_backend.machine.machine import Collective
from dfcompile.dfmodel_backend.workload.design import Design, DesignKernel, Dim, WorkloadKind
from dfcompile.dfmodel_backend.workload.kernel_work import KernelWork
from dfcompile.dfmodel_backend.workload.topological_order import topological_numbers
from dfcompile.records import replace


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
    rows, k, n = extents[Dim.M], extents[Dim.K], extents[Dim.N]
    output = rows * n * word
    return Share(
        kernel=kernel,
        sharding=sharding,
        work=KernelWork(kernel.name, kernel.systolic, rows, k, n, stages_per_core=_stages(design, kernel)),
        output_bytes=output,
        weight_bytes=rows * k * word if kernel.has_weight else 0,
        exchange=tuple(_exchange(design, degrees, kernel, sharding, output, micro_batches)),
    )


def _stages(design: Design, kernel: DesignKernel) -> int:
    """Return the stages that a kernel has to itself; 0: those of the chip."""
    is_staged = kernel.systolic and kernel.use_effective_stage
    return max(1, design.execution.effective_stage) if is_staged else 0


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
    position = {kernel.id: number for number, kernel in enumerate(design.kernels)}
    ends = [(position[edge.source], position[edge.target]) for edge in design.edges]
    levels = topological_numbers(len(design.kernels), ends)
    found = []
    for edge, (source, target), needed in zip(design.edges, ends, needs, strict=True):
        giver, taker = shares[source], shares[target]
        size = 0 if edge.zero_out else giver.output_bytes
        change = Collective.NONE
        if design.shards_kernels:
            change = conversion(given_layout(giver.sharding), needed[taker.sharding])
        exchange = ((change, float(giver.output_bytes)),) if change is not Collective.NONE else ()
        found.append(EdgeShare(source, target, size, levels[target] - levels[source] + 1, exchange))
    return tuple(found)
