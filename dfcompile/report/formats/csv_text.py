"""The report as CSV."""

import csv
import io

from dfcompile.report.report_format import AnyReport, Page, report_format
from dfcompile.report.rows import report_rows


@report_format("csv", media_type="text/csv", source="own")
def csv_text(report: AnyReport, _page: Page) -> str:
    """One line per result; the headings are the JSON names, which carry the units."""
    rows = report_rows(report)
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
