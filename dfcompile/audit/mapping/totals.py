"""The audit of the part on a mapping: its kernels, and what all chips together take, cost and move."""

from collections.abc import Iterator, Sequence

from dfcompile.audit.comparing import MULTIPLIED, ROUNDING, expect, expect_at_least, expect_figures, expect_rows
from dfcompile.audit.mapping.bounds import audit_bound, audit_roofs, require_part
from dfcompile.audit.mapping.exchanges import ShardedGraph
from dfcompile.audit.mapping.perfect_streams import audit_perfect_streams
from dfcompile.audit.mapping.times import audit_configurations, audit_parts, audit_phases, audit_time, spatial_blocks
from dfcompile.canonical_dag import CanonicalDag, Kernel, KernelTensor, TensorRole
from dfcompile.dfmodel_backend.check.array_shares import layout_of, most_elements
from dfcompile.dfmodel_backend.check.machines import PER_S, peak_flop_per_s, power_w, price_usd
from dfcompile.dfmodel_backend.check.task_mappings import check_kernels, flop_of
from dfcompile.dfmodel_backend.check.task_times import TaskTimes
from dfcompile.dfmodel_backend.workload.exchange import Exchange
from dfcompile.driver import Point
from dfcompile.errors import VerificationError
from dfcompile.report.mapping_figures import ExchangeSummary, KernelGroupSummary, MappingSummary


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
    audit_phases(f"{where}.phases", summary.phases, blocks)
    audit_parts(f"{where}.parts", summary.parts, times, blocks)
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
    attained, system = point.attained, point.attained.system
    dram_bytes = system.chips * sum(times.dram_bytes)
    sram_bytes = max((one.sram_bytes for one in attained.configurations), default=0)
    messages, moved = sum(one.message_bytes for one in times.exchanges), sum(one.moved_bytes for one in times.exchanges)
    time_s, power = times.time_ns / PER_S, power_w(system)
    peak = peak_flop_per_s(system) * system.chips * time_s
    used = model_flop(point.variant.dag) / peak if peak else 0.0
    expect_figures(where, summary, configs=len(attained.configurations), dram_bytes=dram_bytes, sram_bytes=sram_bytes)
    expect_figures(where, summary, network_bytes=messages, moved_bytes=moved)
    expect_figures(where, summary, MULTIPLIED, cost_usd=price_usd(system), power_w=power)
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
    """Check the kernels of a mapping task by task, and hold each group against every one of its kernels.

    Raises:
        VerificationError: naming the figure, as found and as recomputed, or the bound that it is below.
    """
    check_kernels(times)
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
