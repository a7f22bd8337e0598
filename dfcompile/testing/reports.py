"""Reports of every shape, small and written down: what tests of report formats need."""

from collections.abc import Mapping
from dataclasses import MISSING
from fractions import Fraction
from typing import Any, TypeVar, cast

from dfcompile.report.design.figures import DesignReport, DesignSummary
from dfcompile.report.figure import RecordField, fields_of
from dfcompile.report.figures import (
    AssumptionSummary,
    ExpansionsSummary,
    ModelSummary,
    Report,
    Result,
    ScheduleSummary,
    SimulationSummary,
    VerificationSummary,
)
from dfcompile.report.mapping_figures import MappingSummary
from dfcompile.report.report_format import AnyReport

RecordT = TypeVar("RecordT")
HOSTILE = "conv|1\n\x1b[31m"  # a name that breaks lines and tables, and colours a terminal
_PLAIN: Mapping[type, object] = {bool: True, int: 3, float: 1.5e-6, Fraction: Fraction(5, 4), str: HOSTILE}


def sample_reports() -> tuple[AnyReport, ...]:
    """Return a canonical DAG's report with a deadlock, one of a model with all parts and two results, a design's."""
    stuck = sampled(SimulationSummary, makespan_cycles=None)
    alone = sampled(Result, expansions={}, simulation=stuck, **_cycles(16, 1200))
    parts = {"over_expansions": ExpansionsSummary, "mapping": MappingSummary, "verification": VerificationSummary}
    whole = {"expansions": {f"{HOSTILE}:MatMul": "mv"}, **{name: sampled(part) for name, part in parts.items()}}
    results = tuple(sampled(Result, **whole, **_cycles(pes, cycles)) for pes, cycles in ((16, 1200), (128, 800)))
    said = {"assumptions": (AssumptionSummary("cores", "16", "--pes"),)}
    dag = sampled(Report, model=ModelSummary("dag", 0, 0, 0, 0, 0), results=(alone,), **said)
    model = sampled(Report, results=results, warnings=(f"system {HOSTILE}: 100 GHz",), **said)
    return dag, model, sampled(DesignReport, figures=sampled(DesignSummary, chips=8, time_s=0.5), placements=(), **said)


def _cycles(pes: int, cycles: int) -> dict[str, object]:
    return {"pes": pes, "makespan_cycles": cycles, "schedule": sampled(ScheduleSummary, makespan_cycles=cycles)}


def sampled(described: type[RecordT], **given: object) -> RecordT:
    """Return a record of the report with any figures: those given, defaults, and small ones of each kind.

    Args:
        described: the record.
        given: figures.
    """
    values = dict(given)
    for field in fields_of(cast("Any", described)):
        if field.name not in values and field.default is MISSING:
            values[field.name] = _sample(field)
    return cast("RecordT", cast("Any", described)(**values))


def _sample(field: RecordField) -> object:
    if field.record is not None:
        found: object = sampled(field.record)
    elif field.figure.choices:
        found = field.figure.choices[0]
    else:
        found = _PLAIN.get(field.kind, {})
    return (found,) if field.is_list else found
