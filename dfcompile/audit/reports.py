"""The audit of the whole report on a model, just before it leaves."""

from collections import Counter
from collections.abc import Sequence
from math import floor

from dfcompile.audit.automatic import audit_automatic
from dfcompile.audit.comparing import expect, expect_figures
from dfcompile.audit.expansions import ExpansionsAudit
from dfcompile.audit.graph_figures import GraphFigures
from dfcompile.audit.mapping import IdealAudit, audit_mapping
from dfcompile.audit.mapping.times import PER_S
from dfcompile.audit.repetition import audit_repetition
from dfcompile.audit.schedule import audit_schedule
from dfcompile.audit.traffic import TrafficAudit
from dfcompile.audit.verification import audit_verification
from dfcompile.canonical_dag import CanonicalDag
from dfcompile.driver import Exploration
from dfcompile.frontend import Coverage, ModelNode
from dfcompile.report.figures import ModelSummary, Report

_LOST = 5e-13  # of a number with twelve digits
_TWELVE_DIGITS = 1e-11  # as far apart as two of them are that are rounded once each


def audit_report(report: Report, exploration: Exploration) -> None:
    """Compute every number of a model's report anew from what the stages handed over.

    Raises:
        VerificationError: naming the figure, as found and as recomputed, or the bound that it is below.
    """
    _audit_model(report.model, exploration.variants[0].lowered.nodes)
    expect("results: their number", len(report.results), len(exploration.points))
    expansions = ExpansionsAudit(exploration.alternatives)
    traffic = TrafficAudit(exploration.model.program, exploration.plans)
    ideals = IdealAudit(exploration.alternatives, traffic.proved_bytes)
    graphs: dict[CanonicalDag, GraphFigures] = {}
    for number, (result, point) in enumerate(zip(report.results, exploration.points, strict=True)):
        where = f"results[{number}]"
        graph = graphs.setdefault(point.variant.dag, GraphFigures(point.variant.dag))
        expect(f"{where}.pes", result.pes, point.pes)
        audit_schedule(f"{where}.schedule", result.schedule, point.scheduled, graph)
        expansions.audit(f"{where}.over_expansions", result.over_expansions, point, graph)
        audit_automatic(f"{where}.automatic", result.automatic, point)
        traffic.audit(f"{where}.traffic", result.traffic, point, graph)
        audit_verification(f"{where}.verification", result.verification, point.variant)
        audit_repetition(f"{where}.repetition", result.repetition, point, exploration.options.repeat, graph)
        if result.mapping is not None:
            cycles = result.mapping.time_s * point.system.accelerator.frequency_ghz * PER_S
            is_told = cycles * _LOST < 1  # which of the cycles it is
            expect(f"{where}.makespan_cycles", result.makespan_cycles, _whole(cycles), 0 if is_told else _TWELVE_DIGITS)
            audit_mapping(f"{where}.mapping", result.mapping, point)
            ideals.audit(f"{where}.mapping", result.mapping, point)


def _audit_model(summary: ModelSummary, nodes: Sequence[ModelNode]) -> None:
    """Count the nodes of a model anew; every one has to be accounted for."""
    ways = Counter(node.coverage for node in nodes)
    expect_figures("model", summary, nodes=len(nodes), nodes_costed=len(nodes), nodes_folded=ways[Coverage.FOLDED])
    expect_figures("model", summary, nodes_as_tasks=ways[Coverage.COSTED], nodes_as_views=ways[Coverage.VIEW])


def _whole(cycles: float) -> int:
    """Return cycles rounded up, unless they are above a whole number by what is lost in twelve digits."""
    return floor(cycles * (1 - _LOST)) + 1 if cycles else 0
