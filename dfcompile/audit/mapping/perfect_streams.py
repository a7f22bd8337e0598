"""The audit of the mapping with perfect streams: each chip's share of kernels and tensors, and what it takes, anew."""

import math
from collections.abc import Sequence

import numpy as np

from dfcompile.audit.comparing import ROUNDING, expect, expect_at_least, expect_bound, expect_figures, expect_rows
from dfcompile.audit.mapping.bounds import require_part
from dfcompile.audit.mapping.exchanges import ShardedGraph
from dfcompile.audit.mapping.times import audit_bound_by
from dfcompile.canonical_dag import Kernel, LoopPart
from dfcompile.dfmodel_backend import Amount, DataflowGraph, Exchange, System, Tensor, TensorKind, check_mapping
from dfcompile.dfmodel_backend.check.array_shares import are_alike, iterations_left, most_elements
from dfcompile.dfmodel_backend.check.machines import PER_S, dram_bytes_per_ns
from dfcompile.dfmodel_backend.check.requirements import joined
from dfcompile.dfmodel_backend.workload.array_layout import Layout
from dfcompile.driver import Point
from dfcompile.records import replace
from dfcompile.report.mapping_figures import PerfectStreamsSummary


def audit_perfect_streams(where: str, summary: PerfectStreamsSummary, point: Point) -> None:
    """Compute the mapping with perfect streams anew, of its assignment of kernels, its split of cores and its sharding.

    ``solver_s`` is taken as it is: it is a time that passed. So is what a search proves: that nothing is faster.

    Raises:
        VerificationError: naming the figure, as found and as recomputed, or the bound that it is below.
    """
    mapping, graph = point.mapping, point.variant.graph
    figures, exchanged = mapping.figures, list[Exchange]()
    require_part(f"{where}.chips", mapping.system, _at_hand(point))
    if mapping.chips > 1:
        sharded = ShardedGraph(graph, mapping.system, dict(mapping.sharding))
        exchanged = sharded.recounted(f"{where}.exchanges", figures.exchanges)
        _audit_exchanges(where, figures.exchanges, exchanged)
        check_mapping(chip_share(graph, sharded, figures.exchanges), mapping.system, mapping, graph)
    expect_figures(where, summary, chips=mapping.system.chips, configs=len(figures.configs), solver=mapping.solver)
    expect_at_least(f"{where}.chips", point.chips, summary.chips, "chips in use")
    moved = 0
    for at, one, config in expect_rows(f"{where}.configurations", summary.configurations, figures.configs):
        parts = config.compute_ns, config.memory_ns, config.network_ns
        time_s = joined(mapping.options.overlap, *parts) / PER_S
        expect_figures(at, one, ROUNDING, kernels=config.kernels, time_s=time_s)
        audit_bound_by(f"{at}.bound_by", one.bound_by, parts)
        moved += config.dram_read_bytes + config.dram_write_bytes
    messages = sum(one.message_bytes for one in exchanged)
    expect_figures(where, summary, dram_bytes=moved * mapping.system.chips, network_bytes=messages)
    expect_figures(where, summary, ROUNDING, time_s=figures.time_s)
    expect_at_least(f"{where}.dram_bytes", summary.dram_bytes, _unavoidable_bytes(graph), "what must be moved")
    _audit_bound(where, summary, point)


def _at_hand(point: Point) -> System:
    """Return the machine; without a limit of SRAM where an assumption says that it has none."""
    chip = point.system.accelerator
    roomy = replace(point.system, accelerator=replace(chip, sram=Amount(0.0)))
    is_said = any(said.name == "SRAM of perfect streams" for said in point.mapping.assumptions)
    return roomy if is_said else point.system


def _audit_exchanges(where: str, exchanges: Sequence[Exchange], recounted: Sequence[Exchange]) -> None:
    """Hold what the mapping charges for exchanges against what they take: its configurations add it up."""
    for number, (exchange, found) in enumerate(zip(exchanges, recounted, strict=True)):
        at = f"{where}: exchange {number} of {exchange.tensor!r}"
        expect(f"{at}: message_bytes", exchange.message_bytes, found.message_bytes)
        expect(f"{at}: moved_bytes", exchange.moved_bytes, found.moved_bytes)
        expect(f"{at}: time_ns", exchange.time_ns, found.time_ns, ROUNDING)


def chip_share(graph: DataflowGraph, sharded: ShardedGraph, exchanges: Sequence[Exchange]) -> DataflowGraph:
    """Return what the chip with most of it has of a graph."""
    return replace(
        graph,
        kernels=tuple(_kernel_share(kernel, sharded) for kernel in graph.kernels),
        tensors=tuple(_tensor_share(tensor, sharded, exchanges) for tensor in graph.tensors),
        exchanges=tuple(exchanges),
    )


def _kernel_share(kernel: Kernel, sharded: ShardedGraph) -> Kernel:
    """Return a kernel of the iterations of one chip; elements of one that contracts nothing in any order."""
    sizes = {LoopPart.OUTER: kernel.outer, LoopPart.M: kernel.m, LoopPart.K: kernel.k, LoopPart.N: kernel.n}
    part, whole = _iterations(kernel, sharded)
    if kernel.variant.is_gemm:
        for number, left in iterations_left(kernel, sharded.sharding[kernel.name], sharded.chips):
            loop = kernel.loops[number]
            sizes[loop.part] = sizes[loop.part] * left // loop.extent
    elif part < whole:
        elements = -(-kernel.outer * kernel.m * kernel.n * part // whole)
        sizes = {LoopPart.OUTER: 1, LoopPart.M: elements, LoopPart.K: 1, LoopPart.N: 1}
    return replace(kernel, outer=sizes[LoopPart.OUTER], m=sizes[LoopPart.M], k=sizes[LoopPart.K], n=sizes[LoopPart.N])


def _iterations(kernel: Kernel, sharded: ShardedGraph) -> tuple[int, int]:
    """Return how many iterations of loops that are split one chip has, and how many there are."""
    left = list(iterations_left(kernel, sharded.sharding[kernel.name], sharded.chips))
    return math.prod(part for _, part in left), math.prod(kernel.loops[number].extent for number, _ in left)


def _tensor_share(tensor: Tensor, sharded: ShardedGraph, exchanges: Sequence[Exchange]) -> Tensor:
    """Return a tensor as the chip with most of it holds it; of the world's, in each layout that kernels need."""
    if tensor.is_looked_up:
        part, whole = _iterations(sharded.kernels[tensor.uses[0].kernel], sharded)
        return replace(tensor, size_bytes=-(-tensor.size_bytes * part // whole))
    layouts = [layout for use in tensor.uses for layout in sharded.needed(tensor, use.kernel)]
    if tensor.source:
        layouts.append(sharded.made(tensor))
        made = [one.layouts[1] for one in exchanges if one.tensor == tensor.name]
        layouts += made[-1:] if not tensor.uses else []  # an output that is completed
        held = max(most_elements(layout, tensor.elements) for layout in layouts)
    else:
        held = sum(most_elements(layout, tensor.elements) for layout in _different(layouts, tensor.elements))
        held = held if layouts else tensor.elements
    return replace(tensor, size_bytes=min(tensor.size_bytes, held * tensor.element_bytes))


def _different(layouts: Sequence[Layout], elements: int) -> Sequence[Layout]:
    found: list[Layout] = []
    for layout in layouts:
        if not any(all(map(are_alike, layout, other, [elements] * len(layout))) for other in found):
            found.append(layout)
    return found


def _audit_bound(where: str, summary: PerfectStreamsSummary, point: Point) -> None:
    mapping = point.mapping
    time_s, floor_s = mapping.figures.time_s, _floor_s(point)
    bound_s = mapping.bound_time_s
    if mapping.optimal:
        bound_s = time_s
    elif point.chips == 1:
        bound_s = min(time_s, floor_s)
    expect_bound(where, summary, time_s, bound_s, is_optimal=mapping.optimal)
    expect_at_least(f"{where}.bound_time_s", summary.bound_time_s, min(floor_s, time_s), "work and bytes", ROUNDING)


def _floor_s(point: Point) -> float:
    """Return a time that no assignment and no sharding beats: no core is idle, each byte that must move does once.

    On one chip no kernel is faster than alone on all cores.
    """
    system, graph = point.system, point.variant.graph
    chip = system.accelerator
    area, slowest = 0, 0
    for kernel in graph.kernels:
        is_gemm = kernel.variant.is_gemm
        rows = -(-kernel.outer * kernel.m * (1 if is_gemm else kernel.n) // chip.lanes_per_core)
        columns, steps = (-(-kernel.n // chip.stages_per_core), kernel.k) if is_gemm else (1, 1)
        area += rows * columns * steps
        slowest = max(slowest, _alone(rows, columns, chip.cores) * steps)
    cycles = max(-(-area // chip.cores), slowest) if point.chips == 1 else area / chip.cores / point.chips
    memory_ns = _unavoidable_bytes(graph) / dram_bytes_per_ns(system) / point.chips
    return joined(point.mapping.options.overlap, cycles / chip.frequency_ghz, memory_ns, 0.0) / PER_S


def _unavoidable_bytes(graph: DataflowGraph) -> int:
    """Return the bytes of what kernels need and nobody makes, and of outputs: each moves once at least."""
    return sum(
        tensor.size_bytes
        for tensor in graph.tensors
        if (tensor.uses and not tensor.source) or (tensor.kind is TensorKind.OUTPUT and tensor.source)
    )


def _alone(rows: int, columns: int, cores: int) -> int:
    """Return the fewest steps of rows and columns of cores, as many of them as there are."""
    lanes = np.arange(1, min(rows, cores) + 1, dtype=np.int64)
    stages = np.minimum(cores // lanes, columns)
    return int((-(-rows // lanes) * -(-columns // stages)).min())
