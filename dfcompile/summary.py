"""Sums up what the driver found out as a report."""

from collections.abc import Iterable, Sequence

from dfcompile import dfmodel_backend as backend
from dfcompile.driver import Exploration, Point, ScheduledFile
from dfcompile.frontend import Coverage, ModelNode
from dfcompile.options import Options
from dfcompile.report import (
    AssumptionSummary,
    ConfigurationSummary,
    MappingSummary,
    ModelSummary,
    Report,
    Result,
    ScheduleSummary,
)
from dfcompile.scheduler import ScheduleFigures

NS_PER_S = 1e9

_PROCESSING_ELEMENT = AssumptionSummary(
    "processing element", "one element per edge and cycle, contention-free", "[dematteis23]"
)


def summarize(exploration: Exploration) -> Report:
    """Return the report of a run."""
    first = exploration.variants[0]
    return Report(
        model=_model(first.maps.name, first.maps.nodes),
        results=tuple(_result(point) for point in exploration.points),
        assumptions=_assumptions(exploration.options, exploration.points),
    )


def summarize_schedules(scheduled: ScheduledFile) -> Report:
    """Return the report of a canonical DAG from a file: no model, no mapping."""
    results = tuple(Result(found.pes, {}, _schedule(found), mapping=None) for found in scheduled.figures)
    model = ModelSummary(scheduled.dag.name, nodes=0, nodes_as_tasks=0, nodes_as_views=0, nodes_folded=0)
    return Report(model, results, (_PROCESSING_ELEMENT, _partition(scheduled.partition)))


def _model(name: str, nodes: Sequence[ModelNode]) -> ModelSummary:
    def count(coverage: Coverage) -> int:
        return sum(node.coverage is coverage for node in nodes)

    return ModelSummary(name, len(nodes), count(Coverage.COSTED), count(Coverage.VIEW), count(Coverage.FOLDED))


def _result(point: Point) -> Result:
    variant = point.variant
    return Result(
        pes=point.pes,
        expansions=variant.expansions,
        schedule=_schedule(point.figures),
        mapping=_mapping(point.mapping),
        max_abs_error=variant.max_abs_error,
    )


def _schedule(figures: ScheduleFigures) -> ScheduleSummary:
    """Return the figures of a schedule as the report has them."""
    return ScheduleSummary(
        makespan_cycles=figures.makespan_cycles,
        non_streaming_makespan_cycles=figures.non_streaming_makespan_cycles,
        lower_bound_cycles=figures.lower_bound_cycles,
        gap=figures.gap,
        io_elements=figures.io_elements,
        io_bytes=figures.io_bytes,
        spilled_elements=figures.spilled_elements,
        blocks=figures.blocks,
        speedup=figures.speedup,
        pe_utilization=figures.pe_utilization,
        fifo_elements=figures.fifo_elements,
        tasks=figures.tasks,
    )


def _mapping(mapping: backend.Mapping) -> MappingSummary:
    return MappingSummary(
        time_s=mapping.time_s,
        dram_bytes=mapping.dram_bytes,
        network_bytes=mapping.network_bytes,
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
    )


def _assumptions(options: Options, points: Iterable[Point]) -> tuple[AssumptionSummary, ...]:
    """What schedules rest on, then what mappings rest on; what all results share is said once."""
    found = [
        _PROCESSING_ELEMENT,
        AssumptionSummary("volumes of edges between tasks", options.volumes, "--volumes"),
        AssumptionSummary("granularity of tasks", options.granularity, "--granularity"),
        _partition(options.partition),
    ]
    found += [
        AssumptionSummary(assumption.name, assumption.value, assumption.source)
        for point in points
        for assumption in point.mapping.assumptions
        if assumption.source != "--pes"  # every result says it
    ]
    return tuple(dict.fromkeys(found))


def _partition(name: str) -> AssumptionSummary:
    return AssumptionSummary("spatial blocks", name, "--partition [dematteis23]")
