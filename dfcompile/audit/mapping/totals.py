"""The audit of the part on a mapping: what all chips together take, cost and move."""

from collections.abc import Sequence

from dfcompile.audit.comparing import MULTIPLIED, ROUNDING, expect, expect_at_least, expect_text
from dfcompile.audit.machine import audit_roofs, peak_flop_per_s, power_w, price_usd, require_part
from dfcompile.audit.mapping.bounds import audit_bound
from dfcompile.audit.mapping.exchanges import ExchangeFigures, ShardedGraph
from dfcompile.audit.mapping.kernels import audit_kernels
from dfcompile.audit.mapping.operations import model_flop
from dfcompile.audit.mapping.perfect_streams import audit_perfect_streams
from dfcompile.audit.mapping.sharding import audit_sharding
from dfcompile.audit.mapping.times import TaskTimes, audit_configurations, audit_parts, audit_phases
from dfcompile.dfmodel_backend.workload.exchange import Exchange
from dfcompile.driver import Point
from dfcompile.errors import VerificationError
from dfcompile.report.mapping_figures import ExchangeSummary, MappingSummary

PER_S = 1e9  # ns


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
    expect(f"{where}.chips", summary.chips, attained.chips)
    expect(f"{where}.chips: of the machine in use", summary.chips, system.chips)
    expect(f"{where}.chips_available", summary.chips_available, point.chips)
    expect_at_least(f"{where}.chips_available", summary.chips_available, summary.chips, "chips in use")
    in_use = tuple(dimension.chips for dimension in system.network.dimensions)
    expect_text(f"{where}.network_chips", summary.network_chips, in_use)
    exchanged = _audit_exchanges(f"{where}.exchanges", summary.exchanges, point)
    times = TaskTimes(attained, point.mapping.options.overlap, exchanged)
    audit_configurations(f"{where}.configurations", summary.configurations, times)
    audit_phases(f"{where}.phases", summary.phases, times)
    audit_parts(f"{where}.parts", summary.parts, times)
    audit_kernels(f"{where}.kernels", summary.kernels, times)
    audit_roofs(f"{where}.roofs", summary.roofs, system)
    audit_sharding(f"{where}.sharding", summary.sharding, point, times)
    _audit_totals(where, summary, point, times)
    audit_bound(where, summary, point, times)
    audit_perfect_streams(f"{where}.perfect_streams", summary.perfect_streams, point)


def _audit_totals(where: str, summary: MappingSummary, point: Point, times: TaskTimes) -> None:
    attained, system = point.attained, point.attained.system
    dram_bytes = system.chips * sum(times.dram_bytes)
    expect(f"{where}.configs", summary.configs, len(attained.configurations))
    expect(f"{where}.time_s", summary.time_s, times.time_ns / PER_S, ROUNDING)
    expect(f"{where}.dram_bytes", summary.dram_bytes, dram_bytes)
    expect(
        f"{where}.sram_bytes", summary.sram_bytes, max((one.sram_bytes for one in attained.configurations), default=0)
    )
    expect(f"{where}.network_bytes", summary.network_bytes, sum(one.message_bytes for one in times.exchanged))
    expect(f"{where}.moved_bytes", summary.moved_bytes, sum(one.moved_bytes for one in times.exchanged))
    power = power_w(system)
    expect(f"{where}.cost_usd", summary.cost_usd, price_usd(system), MULTIPLIED)
    expect(f"{where}.power_w", summary.power_w, power, MULTIPLIED)
    expect(f"{where}.energy_j", summary.energy_j, power * times.time_ns / PER_S, ROUNDING)
    peak = peak_flop_per_s(system) * system.chips * times.time_ns / PER_S
    used = model_flop(point.variant.dag) / peak if peak else 0.0
    expect(f"{where}.utilization", summary.utilization, used, ROUNDING)


def _audit_exchanges(where: str, summaries: Sequence[ExchangeSummary], point: Point) -> list[ExchangeFigures]:
    """Compute the exchanges anew; return their figures."""
    attained = point.attained
    expect(f"{where}: their number", len(summaries), len(attained.exchanges))
    if attained.chips == 1:
        if attained.exchanges:
            raise VerificationError(f"{where}: found {len(attained.exchanges)} against none on one chip")
        return []
    graph = ShardedGraph(point.variant.graph, attained.system, dict(attained.sharding))
    found = graph.figures(where, attained.exchanges)
    for number, (summary, exchange, figures) in enumerate(zip(summaries, attained.exchanges, found, strict=True)):
        at = f"{where}[{number}]"
        _audit_ends(at, summary, exchange)
        expect(f"{at}.message_bytes", summary.message_bytes, figures.message_bytes)
        expect(f"{at}.moved_bytes", summary.moved_bytes, figures.moved_bytes)
        expect(f"{at}.time_s", summary.time_s, figures.time_ns / PER_S, ROUNDING)
    return found


def _audit_ends(where: str, summary: ExchangeSummary, exchange: Exchange) -> None:
    expect_text(f"{where}.tensor", summary.tensor, exchange.tensor)
    expect_text(f"{where}.source", summary.source, exchange.source)
    expect_text(f"{where}.readers", summary.readers, exchange.readers)
    expect_text(f"{where}.collective", summary.collective, exchange.kind.value)
    expect_text(f"{where}.dimensions", summary.dimensions, exchange.dimensions)
