"""The report as JSON, whose contract is docs/report-format.md, as CSV, and as tables for people."""

from dfcompile.report.figures import Report
from dfcompile.report.plain_values import to_json
from dfcompile.report.report_format import AnyReport, Page, report_format
from dfcompile.report.rows import report_rows, rows_csv
from dfcompile.report.tables import report_table


@report_format("json", media_type="application/json", source="own")
def json_text(report: AnyReport, _page: Page) -> str:
    """All of the report: the same bytes for the same input, but for ``solver_s``."""
    return to_json(report)


@report_format("csv", media_type="text/csv", source="own")
def csv_text(report: AnyReport, _page: Page) -> str:
    """One line per result; the headings are the JSON names, which carry the units."""
    return rows_csv(report_rows(report))


@report_format("table", media_type="text/plain", source="own")
def table(report: AnyReport, page: Page) -> str:
    """Tables that are never wider than the page, and cut nothing."""
    if isinstance(report, Report):
        return report_table(report, page)
    from dfcompile.report.design.tables import design_table  # a model's run needs nothing of designs

    return design_table(report, page.width, verbose=page.verbose)
