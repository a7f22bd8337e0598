"""The audit of the whole report on schedules of one graph, just before it leaves."""

from collections.abc import Sequence

from dfcompile.audit.comparing import expect_figures, expect_rows
from dfcompile.audit.graph_figures import GraphFigures
from dfcompile.audit.schedule import audit_schedule
from dfcompile.audit.times import audit_simulation
from dfcompile.canonical_dag import CanonicalDag
from dfcompile.report.figures import Report
from dfcompile.scheduler.checked_schedule import CheckedSchedule


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
