"""Checks for report formats, ours and those of plug-ins: every shape of report, every page, determinism.

And reports of every shape, small and written down.
"""

from collections.abc import Iterable, Mapping
from dataclasses import MISSING
from fractions import Fraction
from typing import Any, TypeVar, cast

from dfcompile.host.printable import printable
from dfcompile.report import figures as report
from dfcompile.report.design.figures import DesignReport, DesignSummary
from dfcompile.report.figure import fields_of
from dfcompile.report.mapping_figures import MappingSummary
from dfcompile.report.report_format import AnyReport, Page, ReportFormat, registered_formats

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


WIDTHS = (20, 80, 200)


def check_report_format(form: ReportFormat | str, reports: Iterable[AnyReport] = ()) -> None:
    """Check a report format on `sample_reports`, and on others.

    * Each report gives a text that ends with a line end, on narrow and wide pages, with all details and without.
    * A terminal shows the text as it is: control characters that stand in a user's names are not passed on.
    * Determinism: a second call gives the same text.

    Args:
        form: the value, or its name if it is registered.
        reports: to be taken as well.

    Raises:
        AssertionError: a text is no such text, or two calls differ.
        DfcompileError: there is no such format, or it raises.
    """
    found = registered_formats().find(form, "report format") if isinstance(form, str) else form
    assert "/" in found.media_type, f"{found.name}: media type {found.media_type!r} against one such as text/csv"
    for each in (*sample_reports(), *reports):
        for page in (Page(width, verbose) for width in WIDTHS for verbose in (True, False)):
            text, again = (found.text_of(each, page) for _ in range(2))
            where = f"{found.name} of {each.format}"
            assert text == again, f"{where}: two calls give two texts"
            assert text.endswith("\n"), f"{where}: no line end at the end"
            hidden = {sign for sign in text if sign != "\n" and printable(sign) != sign}
            assert not hidden, f"{where}: control characters {sorted(hidden)} in the text"
