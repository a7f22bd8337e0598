"""The audit of the mapping with perfect streams: each chip's share of kernels and tensors, and what it takes, anew."""

import numpy as np

from dfcompile.audit.comparing import ROUNDING, expect_at_least, expect_bound, expect_figures, expect_rows
from dfcompile.audit.mapping.bounds import require_part
from dfcompile.audit.mapping.exchanges import ShardedGraph
from dfcompile.audit.mapping.times import audit_bound_by
from dfcompile.dfmodel_backend import Amount, DataflowGraph, Exchange, TensorKind, check_mapping
from dfcompile.dfmodel_backend.check.machines import PER_S, dram_bytes_per_ns
from dfcompile.dfmodel_backend.check.requirements import joined
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
    # Without a limit of SRAM where an assumption says that it has none.
    is_roomy = any(said.name == "SRAM of perfect streams" for said in mapping.assumptions)
    roomy = replace(point.system, accelerator=replace(point.system.accelerator, sram=Amount(0.0)))
    require_part(f"{where}.chips", mapping.system, roomy if is_roomy else point.system)
    if mapping.chips > 1:
        sharded = ShardedGraph(graph, mapping.system, dict(mapping.sharding))
        exchanged = sharded.recounted(f"{where}.exchanges", figures.exchanges)
        for number, (exchange, found) in enumerate(zip(figures.exchanges, exchanged, strict=True)):
            at = f"{where}: exchange {number} of {exchange.tensor!r}"  # its configurations add it up
            expect_figures(at, exchange, message_bytes=found.message_bytes, moved_bytes=found.moved_bytes)
            expect_figures(at, exchange, ROUNDING, time_ns=found.time_ns)
        check_mapping(sharded.share(figures.exchanges), mapping.system, mapping, graph)
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
