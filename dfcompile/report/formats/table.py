"""The report as tables for people."""

from dfcompile.report.figures import Report
from dfcompile.report.report_format import AnyReport, Page, report_format
from dfcompile.report.tables import report_table


@report_format("table", media_type="text/plain", source="own")
def table(report: AnyReport, page: Page) -> str:
    """Tables that are never wider than the page, and cut nothing."""
    if isinstance(report, Report):
        return report_table(report, page)
    from dfcompile.report.design.tables import design_table  # a model's run needs nothing of designs

    return design_table(report, page.width, verbose=page.verbose)
