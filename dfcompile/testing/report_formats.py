"""Checks for report formats, ours and those of plug-ins: every shape of report, every page, determinism."""

from collections.abc import Iterable

from dfcompile.host.printable import printable
from dfcompile.report.report_format import AnyReport, Page, ReportFormat, registered_formats
from dfcompile.testing.reports import sample_reports

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
    for report in (*sample_reports(), *reports):
        for page in (Page(width, verbose) for width in WIDTHS for verbose in (True, False)):
            text, again = (found.text_of(report, page) for _ in range(2))
            where = f"{found.name} of {report.format}"
            assert text == again, f"{where}: two calls give two texts"
            assert text.endswith("\n"), f"{where}: no line end at the end"
            hidden = {sign for sign in text if sign != "\n" and printable(sign) != sign}
            assert not hidden, f"{where}: control characters {sorted(hidden)} in the text"
