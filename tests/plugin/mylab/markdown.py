"""A report format: a table for a page in Markdown, one line per figure."""

from dfcompile.report.report_format import AnyReport, Page, report_format
from dfcompile.report.rows import report_rows


@report_format("markdown", media_type="text/markdown", source="mylab24")
def markdown(report: AnyReport, _page: Page) -> str:
    """One column per result, headed by its number of processing elements; of a design by its name."""
    rows = report_rows(report)
    heading = next(iter(rows[0]))  # pes, or the name
    lines = [(heading, *(row[heading] for row in rows)), ("---", *("---:" for _ in rows))]
    lines += [(name, *(row[name] for row in rows)) for name in rows[0] if name != heading]
    return "".join(f"| {' | '.join(_cell(value) for value in line)} |\n" for line in lines)


def _cell(value: object) -> str:
    return "" if value is None else str(value).replace("|", r"\|")
