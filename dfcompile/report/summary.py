"""Sums up what the driver found out as a report."""

from collections.abc import Sequence
from fractions import Fraction

from dfcompile import dfmodel_backend as backend
from dfcompile.driver import Exploration, Point, Variant
from dfcompile.frontend import Coverage, ModelNode
from dfcompile.lowering.alternatives.bound import ExpansionBound, expansion_hints
from dfcompile.options import Options
from dfcompile.report.figures import (
    AssumptionSummary,
    ConfigurationSummary,
    ExchangeSummary,
    ExpansionsSummary,
    HintSummary,
    MappingSummary,
    ModelSummary,
    Report,
    Result,
    VerificationSummary,
)
from dfcompile.report.schedule_summary import PROCESSING_ELEMENT, schedule_assumptions, schedule_summary

NS_PER_S = 1e9


def summarize(exploration: Exploration) -> Report:
    """Return the report of a run."""
    first = exploration.variants[0]
    return Report(
        model=_model(first.maps.name, first.maps.nodes),
        results=tuple(_result(point) for point in exploration.points),
        assumptions=_assumptions(exploration.options, exploration.points),
        warnings=exploration.warnings,
    )


def _model(name: str, nodes: Sequence[ModelNode]) -> ModelSummary:
    def count(coverage: Coverage) -> int:
        return sum(node.coverage is coverage for node in nodes)

    ways = (count(Coverage.COSTED), count(Coverage.VIEW), count(Coverage.FOLDED))
    return ModelSummary(name, len(nodes), sum(ways), *ways)


def _result(point: Point) -> Result:
    variant, bound = point.variant, point.expansion_bound
    return Result(
        pes=point.pes,
        expansions=variant.expansions,
        schedule=schedule_summary(point.scheduled, variant.scheduling.depths),
        over_expansions=None
        if bound is None
        else _over_expansions(bound, variant, point.scheduled.figures.makespan_cycles),
        mapping=_mapping(point.mapping, point.chips),
        verification=None if variant.max_abs_error is None else VerificationSummary(variant.max_abs_error),
    )


def _over_expansions(bound: ExpansionBound, variant: Variant, makespan_cycles: int) -> ExpansionsSummary:
    hints = tuple(
        HintSummary(
            expand=(f"{hint.op_type}={hint.name}",)
            if hint.is_for_all
            else tuple(f"{origin}:{hint.op_type}={hint.name}" for origin in hint.origins),
            operators=len(hint.origins),
            chosen_bound_cycles=hint.chosen_cycles,
            hinted_bound_cycles=hint.hinted_cycles,
        )
        for hint in expansion_hints(bound, variant.maps.chosen, makespan_cycles)
    )
    gap = Fraction(makespan_cycles, bound.cycles) - 1 if bound.cycles else Fraction(0)
    return ExpansionsSummary(bound.cycles, gap, hints)


def _mapping(mapping: backend.Mapping, chips: int) -> MappingSummary:
    return MappingSummary(
        chips=mapping.chips,
        chips_available=chips,
        time_s=mapping.time_s,
        configs=len(mapping.configs),
        dram_bytes=mapping.dram_bytes,
        network_bytes=mapping.network_bytes,
        moved_bytes=mapping.moved_bytes,
        cost_usd=mapping.cost_usd,
        power_w=mapping.power_w,
        energy_j=mapping.energy_j,
        utilization=mapping.utilization,
        optimal=mapping.optimal,
        gap=mapping.gap,
        bound_time_s=mapping.bound_time_s,
        solver=mapping.solver,
        solver_s=mapping.solver_s,
        configurations=tuple(
            ConfigurationSummary(config.kernels, config.time_ns / NS_PER_S, config.bound_by)
            for config in mapping.configs
        ),
        exchanges=tuple(_exchange(exchange) for exchange in mapping.exchanges),
    )


def _exchange(exchange: backend.Exchange) -> ExchangeSummary:
    return ExchangeSummary(
        tensor=exchange.tensor,
        source=exchange.source,
        readers=exchange.readers,
        collective=exchange.kind.value,
        dimensions=exchange.dimensions,
        before=exchange.before,
        after=exchange.after,
        message_bytes=exchange.message_bytes,
        moved_bytes=exchange.moved_bytes,
        time_s=exchange.time_ns / NS_PER_S,
    )


def _assumptions(options: Options, points: Sequence[Point]) -> tuple[AssumptionSummary, ...]:
    """What schedules rest on, then what mappings rest on; what all results share is said once."""
    found = [
        PROCESSING_ELEMENT,
        AssumptionSummary("volumes of edges between tasks", options.volumes, "--volumes"),
        AssumptionSummary("granularity of tasks", options.granularity, "--granularity"),
        *schedule_assumptions(point.scheduled for point in points),
    ]
    found += [
        AssumptionSummary(assumption.name, assumption.value, assumption.source)
        for point in points
        for assumption in point.mapping.assumptions
        if assumption.source != "--pes"  # every result says it
    ]
    return tuple(dict.fromkeys(found))
