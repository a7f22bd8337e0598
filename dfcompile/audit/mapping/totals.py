"""The audit of the part on a mapping: its kernels, and what all chips together take, cost and move."""

from collections.abc import Iterator, Sequence

import numpy as np

from dfcompile.audit.comparing import (
    NEAR_EXACT,
    ROUNDING,
    expect,
    expect_at_least,
    expect_bound,
    expect_figures,
    expect_rows,
)
from dfcompile.audit.mapping.bounds import audit_bound, audit_roofs, require_part
from dfcompile.audit.mapping.exchanges import ShardedGraph
from dfcompile.audit.mapping.times import audit_bound_by, audit_configurations, audit_parts, audit_time, spatial_blocks
from dfcompile.canonical_dag import CanonicalDag, Kernel, KernelTensor, TensorRole
from dfcompile.dfmodel_backend import Amount, DataflowGraph, Exchange, TensorKind, check_mapping
from dfcompile.dfmodel_backend.check.array_shares import layout_of, most_elements
from dfcompile.dfmodel_backend.check.machines import (
    PER_S,
    dram_bytes_per_ns,
    on_chip,
    peak_flop_per_s,
    power_w,
    price_usd,
)
from dfcompile.dfmodel_backend.check.requirements import combined_ns
from dfcompile.dfmodel_backend.check.task_mappings import flop_of
from dfcompile.dfmodel_backend.check.task_times import TaskTimes
from dfcompile.errors import VerificationError
from dfcompile.records import replace
from dfcompile.report.mapping_figures import ExchangeSummary, KernelGroupSummary, MappingSummary, PerfectStreamsSummary
from dfcompile.study import Point


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
        time_s = combined_ns(mapping.options.overlap, *parts) / PER_S
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
    return combined_ns(point.mapping.options.overlap, cycles / chip.frequency_ghz, memory_ns, 0.0) / PER_S


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


def audit_mapping(where: str, summary: MappingSummary, point: Point) -> None:
    """Compute the figures of a mapping anew.

    Taken as they are: what was decided (which kernels share a configuration, the schedule of each, what lies on the
    chip meanwhile, how kernels are split over chips), accepted by the checkers of the back end, which count its bytes;
    and what is proved by a search (that nothing is faster).

    Args:
        where: path of the part in the report.
        summary: the part.
        point: what it is of.

    Raises:
        VerificationError: naming the figure, as found and as recomputed, or the bound that it is below.
    """
    attained, system = point.attained, point.attained.system
    require_part(f"{where}.chips", system, point.system)
    in_use = tuple(dimension.chips for dimension in system.network.dimensions)
    expect_figures(where, summary, chips=attained.chips, chips_available=point.chips, network_chips=in_use)
    expect(f"{where}.chips: of the machine in use", summary.chips, system.chips)
    expect_at_least(f"{where}.chips_available", summary.chips_available, summary.chips, "chips in use")
    exchanged = _audit_exchanges(f"{where}.exchanges", summary.exchanges, point)
    times = TaskTimes(attained.dag, attained, system, point.mapping.options.overlap, exchanged)
    blocks = list(spatial_blocks(times))
    audit_configurations(f"{where}.configurations", summary.configurations, times)
    for at, phase, (number, begin, end, tasks) in expect_rows(f"{where}.phases", summary.phases, blocks):
        expect_figures(at, phase, configuration=number, start_cycle=begin, end_cycle=end, tasks=len(tasks))
    audit_parts(f"{where}.parts", summary.parts, point, times, blocks)
    audit_kernels(f"{where}.kernels", summary.kernels, times)
    audit_roofs(f"{where}.roofs", summary.roofs, system)
    layouts = sorted(_layouts(point, times), key=lambda held: held[0])
    for at, held, (place, kernel, array, access, most) in expect_rows(f"{where}.sharding", summary.sharding, layouts):
        expect_figures(at, held, configuration=place, kernel=kernel, tensor=array.name, access=access)
        expect_figures(at, held, elements=array.elements, chip_elements=most)
        expect(f"{at}.held: dimensions", len(held.held), len(in_use))
    _audit_totals(where, summary, point, times)
    audit_bound(where, summary, point, times)
    audit_perfect_streams(f"{where}.perfect_streams", summary.perfect_streams, point)


def _audit_totals(where: str, summary: MappingSummary, point: Point, times: TaskTimes) -> None:
    attained, system, whole = point.attained, point.attained.system, point.whole_system
    runs, groups = (1, 1) if point.micro_batches is None else (point.micro_batches.count, point.micro_batches.at_once)
    dram_bytes = runs * system.chips * sum(times.dram_bytes)
    sram_bytes = groups * max((one.sram_bytes for one in attained.configurations), default=0)
    capacity = on_chip(whole.accelerator.sram, whole)
    if capacity:
        expect_at_least(f"{where}.sram_bytes: of the chip", capacity, sram_bytes, "what all groups hold")
    messages = runs * sum(one.message_bytes for one in times.exchanges)
    moved = runs * sum(one.moved_bytes for one in times.exchanges)
    in_use = replace(whole, chips=system.chips, network=system.network)
    time_s, power = -(-runs // groups) * times.time_ns / PER_S, power_w(in_use)
    peak = peak_flop_per_s(in_use) * in_use.chips * time_s
    used = runs * model_flop(point.variant.dag) / peak if peak else 0.0
    expect_figures(where, summary, configs=len(attained.configurations), dram_bytes=dram_bytes, sram_bytes=sram_bytes)
    expect_figures(where, summary, network_bytes=messages, moved_bytes=moved)
    expect_figures(where, summary, NEAR_EXACT, cost_usd=price_usd(in_use), power_w=power)
    expect_figures(where, summary, ROUNDING, time_s=time_s, energy_j=power * time_s, utilization=used)


def _audit_exchanges(where: str, summaries: Sequence[ExchangeSummary], point: Point) -> list[Exchange]:
    """Compute the exchanges anew, and return them."""
    attained = point.attained
    expect(f"{where}: their number", len(summaries), len(attained.exchanges))
    if attained.chips == 1:
        if attained.exchanges:
            raise VerificationError(f"{where}: found {len(attained.exchanges)} against none on one chip")
        return []
    graph = ShardedGraph(point.variant.graph, attained.system, dict(attained.sharding))
    found = graph.recounted(where, attained.exchanges)
    for (at, summary, exchange), figures in zip(expect_rows(where, summaries, attained.exchanges), found, strict=True):
        expect_figures(at, summary, tensor=exchange.tensor, source=exchange.source, readers=exchange.readers)
        expect_figures(at, summary, collective=exchange.kind.value, dimensions=exchange.dimensions)
        expect_figures(at, summary, message_bytes=figures.message_bytes, moved_bytes=figures.moved_bytes)
        expect_figures(at, summary, ROUNDING, time_s=figures.time_ns / PER_S)
    return found


def _layouts(point: Point, times: TaskTimes) -> Iterator[tuple[int, str, KernelTensor, str, int]]:
    """Yield the configuration and name of each kernel, what it reads or writes, and elements on the fullest chip."""
    attained, dag = point.attained, point.variant.dag
    if attained.chips == 1:
        return
    chips = tuple(dimension.chips for dimension in attained.system.network.dimensions)
    sharding, tensors = dict(attained.sharding), {tensor.name: tensor for tensor in dag.tensors}
    with_tasks = set(times.names).intersection(sharding)
    for kernel in (kernel for kernel in dag.kernels if kernel.name in with_tasks):
        place = times.place[kernel.name]
        for access, is_result, arrays in (("read", False, kernel.inputs), ("written", True, kernel.outputs)):
            for number, name in enumerate(arrays):
                layout = layout_of(kernel, number, sharding[kernel.name], chips, is_result=is_result)
                yield place, kernel.name, tensors[name], access, most_elements(layout, tensors[name].elements)


def audit_kernels(where: str, summaries: Sequence[KernelGroupSummary], times: TaskTimes) -> None:
    """Hold each group against every one of its kernels, which `check_kernels` recounts task by task.

    Raises:
        VerificationError: naming the figure, as found and as recomputed, or the bound that it is below.
    """
    known = {one.name: one for one in times.attained.kernels}
    named = [name for summary in summaries for name in summary.kernels]
    if sorted(named) != sorted(known):
        raise VerificationError(f"{where}: found {len(named)} kernels against the {len(known)} with tasks")
    for number, summary in enumerate(summaries):
        expect_figures(f"{where}[{number}]", summary, count=len(summary.kernels))
        for name in summary.kernels:
            at, one = f"{where}[{number}] ({name})", known[name]
            expect_figures(at, summary, op=one.op, flop=one.flop, dram_bytes=one.dram_bytes, chip_bytes=one.chip_bytes)
            expect_figures(at, summary, ROUNDING, network_bytes=one.received_bytes / times.system.chips)
            audit_time(at, summary, (one.compute_ns, one.memory_ns, one.network_ns), one.time_ns)


def _prepared_kernels(dag: CanonicalDag) -> set[str]:
    """Return the names of kernels that depend on parameters alone: they run when weights are loaded."""
    constant = {tensor.name for tensor in dag.tensors if tensor.role is TensorRole.PARAMETER}
    makers: dict[str, list[Kernel]] = {}
    for kernel in dag.kernels:
        for name in kernel.outputs:
            makers.setdefault(name, []).append(kernel)
    prepared: set[str] = set()
    open_kernels = list(dag.kernels)
    while True:
        found = [kernel for kernel in open_kernels if constant.issuperset(kernel.inputs)]
        if not found:
            return prepared
        prepared.update(kernel.name for kernel in found)
        open_kernels = [kernel for kernel in open_kernels if kernel.name not in prepared]
        for kernel in found:
            constant.update(name for name in kernel.outputs if all(one.name in prepared for one in makers[name]))


def model_flop(dag: CanonicalDag) -> int:
    """Return the operations of a model, each once, however many chips repeat them."""
    prepared = _prepared_kernels(dag)
    return sum(flop_of(kernel) for kernel in dag.kernels if kernel.name not in prepared)
