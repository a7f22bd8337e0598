"""The report as JSON: its contract is docs/report-format.md."""

from dfcompile.report.plain_values import to_json
from dfcompile.report.report_format import AnyReport, Page, report_format


@report_format("json", media_type="application/json", source="own")
def json_text(report: AnyReport, _page: Page) -> str:
    """All of the report: the same bytes for the same input, but for ``solver_s``."""
    return to_json(report)
