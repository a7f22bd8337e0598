"""The report as CSV."""

from dfcompile.report.report_format import AnyReport, Page, report_format
from dfcompile.report.rows import report_rows, rows_csv


@report_format("csv", media_type="text/csv", source="own")
def csv_text(report: AnyReport, _page: Page) -> str:
    """One line per result; the headings are the JSON names, which carry the units."""
    return rows_csv(report_rows(report))
