"""Reports of every shape, small and written down."""

from collections.abc import Mapping
from dataclasses import MISSING
from fractions import Fraction
from typing import Any, TypeVar, cast

from dfcompile.report import figures as report
from dfcompile.report.design.figures import AnyReport, DesignReport, DesignSummary
from dfcompile.report.figure import fields_of
from dfcompile.report.mapping_figures import MappingSummary

RecordT = TypeVar("RecordT")
HOSTILE = "conv|1\n\x1b[31m"  # a name that breaks lines and tables, and colours a terminal
_PLAIN: Mapping[type, object] = {bool: True, int: 3, float: 1.5e-6, Fraction: Fraction(5, 4), str: HOSTILE}


def sample_reports() -> tuple[AnyReport, ...]:
    """Return a canonical DAG's report with a deadlock, one of a model with all parts and two results, a design's."""
    stuck = sampled(report.SimulationSummary, makespan_cycles=None)
    alone = sampled(report.Result, expansions={}, simulation=stuck, **_cycles(16, 1200))
    parts = {
        "over_expansions": report.ExpansionsSummary,
        "mapping": MappingSummary,
        "verification": report.VerificationSummary,
    }
    whole = {"expansions": {f"{HOSTILE}:MatMul": "mv"}, **{name: sampled(part) for name, part in parts.items()}}
    results = tuple(sampled(report.Result, **whole, **_cycles(pes, cycles)) for pes, cycles in ((16, 1200), (128, 800)))
    said = {"assumptions": (report.AssumptionSummary("cores", "16", "--pes"),)}
    dag = sampled(report.Report, model=report.ModelSummary("dag", 0, 0, 0, 0, 0), results=(alone,), **said)
    model = sampled(report.Report, results=results, warnings=(f"system {HOSTILE}: 100 GHz",), **said)
    return dag, model, sampled(DesignReport, figures=sampled(DesignSummary, chips=8, time_s=0.5), placements=(), **said)


def _cycles(pes: int, cycles: int) -> dict[str, object]:
    return {"pes": pes, "makespan_cycles": cycles, "schedule": sampled(report.ScheduleSummary, makespan_cycles=cycles)}


def sampled(described: type[RecordT], **given: object) -> RecordT:
    """Return a record of the report with any figures: those given, defaults, and small ones of each kind.

    Args:
        described: the record.
        given: figures.
    """
    values = dict(given)
    for field in fields_of(cast("Any", described)):
        if field.name not in values and field.default is MISSING:
            if field.record is not None:
                found: object = sampled(field.record)
            elif field.figure.choices:
                found = field.figure.choices[0]
            else:
                found = _PLAIN.get(field.kind, {})
            values[field.name] = (found,) if field.is_list else found
    return cast("RecordT", cast("Any", described)(**values))
