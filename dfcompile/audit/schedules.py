"""The audit of schedules, and of the report on those of one graph: every figure from graph and columns."""

from collections.abc import Sequence
from fractions import Fraction

from dfcompile.audit.comparing import expect, expect_at_least, expect_figures, expect_rows
from dfcompile.audit.graph_figures import GraphFigures
from dfcompile.audit.times import audit_simulation, audit_times
from dfcompile.canonical_dag import CanonicalDag
from dfcompile.errors import VerificationError
from dfcompile.options import Timing
from dfcompile.report.figures import Report, ScheduleSummary
from dfcompile.scheduler.checked_schedule import CheckedSchedule

_BOUND = "lower_bound_cycles"


def audit_schedule(where: str, summary: ScheduleSummary, checked: CheckedSchedule, graph: GraphFigures) -> None:
    """Compute the figures of a schedule anew.

    Args:
        where: path of the part in the report.
        summary: the part.
        checked: the schedule, accepted by the checker, its baseline and its replay.
        graph: what is scheduled.

    Raises:
        VerificationError: naming the figure, as found and as recomputed, or the bound that it is below.
    """
    schedule, dag = checked.schedule, graph.dag
    is_exact = schedule.timing is Timing.EXACT
    blocks = {block for block, is_task in zip(schedule.block.tolist(), graph.is_task.tolist(), strict=True) if is_task}
    spilled = dag.edge_volume[graph.is_stream & ~schedule.streamed]
    makespan = _makespan(where, checked)
    if is_exact and makespan is not None:
        audit_times(where, schedule, graph)
    speedup = _ratio(graph.total_work_cycles, makespan)
    utilization = None if speedup is None else speedup / schedule.pes
    without_streams = max(checked.baseline.end.tolist(), default=0)
    fifo_elements = sum(schedule.fifo_capacity[schedule.streamed].tolist())
    work, path, depth = graph.total_work_cycles, graph.critical_path_cycles, graph.streaming_depth_cycles
    expect_figures(where, summary, makespan_cycles=makespan, non_streaming_makespan_cycles=without_streams)
    expect_figures(where, summary, total_work_cycles=work, critical_path_cycles=path, streaming_depth_cycles=depth)
    expect_figures(where, summary, io_elements=graph.io_elements, io_bytes=graph.io_bytes)
    expect_figures(where, summary, spilled_elements=sum(spilled.tolist()), fifo_elements=fifo_elements)
    expect_figures(where, summary, barriers=schedule.barrier, blocks=len(blocks), tasks=graph.tasks)
    expect_figures(where, summary, sslr=_ratio(makespan, depth), speedup=speedup, pe_utilization=utilization)
    expect_figures(where, summary, steady_error=_steady_error(checked))
    _audit_bound(where, summary, checked, makespan, graph)
    expect(f"{where}.gap", summary.gap, gap_above(summary.lower_bound_cycles, makespan, is_exact=is_exact))


def _ratio(dividend: int | None, divisor: int | None) -> Fraction | None:
    """Return a ratio of cycles; ``None`` without one of them, 1 where there are none to divide by."""
    if dividend is None or divisor is None:
        return None
    return Fraction(dividend, divisor) if divisor else Fraction(1)


def gap_above(bound: int, makespan: int | None, *, is_exact: bool) -> Fraction | None:
    """Return a makespan's part above a bound; ``None`` in a deadlock and where a mean makespan is not above it."""
    if makespan is None:
        return None
    gap = Fraction(makespan, bound) - 1 if bound else Fraction(0)
    return None if gap <= 0 and not is_exact else gap


def _makespan(where: str, checked: CheckedSchedule) -> int | None:
    """Return when the last node ends; ``None`` if the replay shows that nobody goes on."""
    replay = checked.simulation
    if not checked.ends:
        if replay is None or not replay.deadlock:
            raise VerificationError(f"{where}.makespan_cycles: found a deadlock against a replay that ends")
        return None
    return max(checked.schedule.last_out.tolist(), default=0)


def _steady_error(checked: CheckedSchedule) -> Fraction | None:
    """Return what a sample takes in a replay beyond its plan; none of exact times."""
    if checked.sample is None:
        return None
    return Fraction(checked.sample.taken_cycles, checked.sample.planned_cycles) - 1


def _audit_bound(
    where: str, summary: ScheduleSummary, checked: CheckedSchedule, makespan: int | None, graph: GraphFigures
) -> None:
    """Hold the lower bound against what was proved, a bound of the audit's own, and schedules, that cannot be below.

    The baseline is one of them: nothing has to stream. Times that are steady may be too short.
    """
    bound, pes = summary.lower_bound_cycles, checked.schedule.pes
    expect(f"{where}.lower_bound_cycles", bound, checked.figures.lower_bound_cycles)
    expect_at_least(
        f"{where}.lower_bound_cycles", bound, graph.least_makespan_cycles(pes), "paths, and work shared by all"
    )
    expect_at_least(f"{where}.non_streaming_makespan_cycles", summary.non_streaming_makespan_cycles, bound, _BOUND)
    if makespan is not None and checked.schedule.timing is Timing.EXACT:
        expect_at_least(f"{where}.makespan_cycles", makespan, bound, _BOUND)


def audit_schedules(report: Report, dag: CanonicalDag, schedules: Sequence[CheckedSchedule]) -> None:
    """Compute every number of a report on schedules of one graph anew.

    Raises:
        VerificationError: naming the figure, as found and as recomputed, or the bound that it is below.
    """
    expect_figures("model", report.model, nodes=0, nodes_costed=0, nodes_as_tasks=0, nodes_as_views=0, nodes_folded=0)
    graph = GraphFigures(dag)
    for where, result, checked in expect_rows("results", report.results, schedules):
        expect_figures(where, result, pes=checked.schedule.pes, makespan_cycles=result.schedule.makespan_cycles)
        audit_schedule(f"{where}.schedule", result.schedule, checked, graph)
        audit_simulation(f"{where}.simulation", result.simulation, checked, graph)
