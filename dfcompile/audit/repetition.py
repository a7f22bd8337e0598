"""The audit of the part on a repeated schedule: all from the schedule, the interval and how often."""

from dfcompile.audit.comparing import expect, expect_at_least
from dfcompile.audit.graph_figures import GraphFigures
from dfcompile.driver import Point
from dfcompile.report.figures import RepetitionSummary


def audit_repetition(
    where: str, summary: RepetitionSummary | None, point: Point, repeats: int, graph: GraphFigures
) -> None:
    """Compute the figures of a repetition anew.

    Its interval is what was found; the scheduler's checker has counted the tasks that are under way with it.

    Args:
        where: path of the part in the report.
        summary: the part.
        point: with the repetition and the schedule of one iteration on all processing elements.
        repeats: that were asked for.
        graph: what is scheduled.

    Raises:
        VerificationError: naming the figure, as found and as recomputed, or the bound that it is below.
    """
    repetition = point.repetition
    if summary is None or repetition is None:
        expect(f"{where}: whether there is one", summary is not None, repeats > 1)
        return
    schedule, interval = repetition.schedule, repetition.interval_cycles
    once = max(schedule.last_out.tolist(), default=0)
    busy = sum((schedule.last_out - schedule.start)[graph.is_task].tolist())
    least = max(-(-busy // point.pes), 1) if once else 0
    expect(f"{where}.repeats", summary.repeats, repeats)
    expect(f"{where}.pes_each", summary.pes_each, schedule.pes)
    expect(f"{where}.interval_cycles", summary.interval_cycles, interval)
    expect(f"{where}.least_interval_cycles", summary.least_interval_cycles, least)
    expect_at_least(f"{where}.interval_cycles", summary.interval_cycles, least, "least_interval_cycles")
    expect(f"{where}.makespan_cycles", summary.makespan_cycles, once + interval * (repeats - 1))
    alone = max(point.scheduled.schedule.last_out.tolist(), default=0)
    expect(f"{where}.in_sequence_cycles", summary.in_sequence_cycles, repeats * alone)
    begun = range(0, once, interval) if interval else range(1)
    expect(f"{where}.in_flight", summary.in_flight, min(repeats, len(begun)))
    expect(f"{where}.io_elements", summary.io_elements, repeats * graph.io_elements)
