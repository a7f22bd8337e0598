"""The audit of the part on a repeated schedule: all from the schedule, the interval and how often."""

import numpy as np

from dfcompile.audit.comparing import expect, expect_at_least, expect_figures
from dfcompile.audit.graph_figures import GraphFigures
from dfcompile.canonical_dag.dag import Int64
from dfcompile.distinct import distinct
from dfcompile.driver import Point
from dfcompile.report.figures import RepetitionSummary


def audit_repetition(
    where: str, summary: RepetitionSummary | None, point: Point, repeats: int, graph: GraphFigures
) -> None:
    """Compute the figures of a repetition anew.

    Its interval is what was found: with it no more tasks may be under way than there are processing elements.

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
    alone = max(point.scheduled.schedule.last_out.tolist(), default=0)
    begun = range(0, once, interval) if interval else range(1)
    makespan = once + interval * (repeats - 1)
    expect_figures(where, summary, repeats=repeats, pes_each=schedule.pes, in_flight=min(repeats, len(begun)))
    expect_figures(where, summary, interval_cycles=interval, least_interval_cycles=least)
    expect_figures(where, summary, makespan_cycles=makespan, in_sequence_cycles=repeats * alone)
    expect_figures(where, summary, io_elements=repeats * graph.io_elements)
    most = most_under_way(schedule.start[graph.is_task], schedule.last_out[graph.is_task], interval)
    expect_at_least(f"{where}.interval_cycles: processing elements", point.pes, most, "tasks under way at once")
    expect_at_least(f"{where}.interval_cycles", summary.interval_cycles, least, "least_interval_cycles")


def most_under_way(start: Int64, end: Int64, interval: int) -> int:
    """Return how many tasks are under way at once, at most, if iterations follow one another without end.

    Then every cycle of an interval is like the same cycle of any other: a task is under way in it once for each of its
    iterations that has begun by then and has not ended.
    """
    if not interval:
        return 0
    cycles = distinct(start % interval)  # in no other are there more than in the one before
    begun, ended = (np.searchsorted(np.sort(times % interval), cycles, "right") for times in (start, end))
    return int((begun - ended).max(initial=0) + (end // interval).sum() - (start // interval).sum())
