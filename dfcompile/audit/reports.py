"""The audit of a whole report, just before it leaves."""

from collections.abc import Sequence

from dfcompile.audit.comparing import expect
from dfcompile.audit.graph_figures import GraphFigures
from dfcompile.audit.model import audit_model
from dfcompile.audit.schedule import audit_schedule
from dfcompile.canonical_dag import CanonicalDag
from dfcompile.driver import Exploration
from dfcompile.report.figures import Report
from dfcompile.scheduler.checked_schedule import CheckedSchedule


def audit_report(report: Report, exploration: Exploration) -> None:
    """Compute every number of a model's report anew from what the stages handed over.

    Raises:
        VerificationError: naming the figure, as found and as recomputed, or the bound that it is below.
    """
    audit_model("model", report.model, exploration.variants[0].maps.nodes)
    _expect_count(report, exploration.points)
    graphs: dict[CanonicalDag, GraphFigures] = {}
    for number, (result, point) in enumerate(zip(report.results, exploration.points, strict=True)):
        where = f"results[{number}]"
        graph = graphs.setdefault(point.variant.dag, GraphFigures(point.variant.dag))
        expect(f"{where}.pes", result.pes, point.pes)
        audit_schedule(f"{where}.schedule", result.schedule, point.scheduled, graph)


def audit_schedules(report: Report, dag: CanonicalDag, schedules: Sequence[CheckedSchedule]) -> None:
    """Compute every number of a report on schedules of one graph anew.

    Raises:
        VerificationError: naming the figure, as found and as recomputed, or the bound that it is below.
    """
    audit_model("model", report.model, ())
    _expect_count(report, schedules)
    graph = GraphFigures(dag)
    for number, (result, checked) in enumerate(zip(report.results, schedules, strict=True)):
        where = f"results[{number}]"
        expect(f"{where}.pes", result.pes, checked.schedule.pes)
        audit_schedule(f"{where}.schedule", result.schedule, checked, graph)


def _expect_count(report: Report, made: Sequence[object]) -> None:
    expect("results: their number", len(report.results), len(made))
