"""The form in which a command writes its report, and the page that it is written on."""

from dfcompile.cli.endings import warn
from dfcompile.host.outputs import output_width
from dfcompile.report.report_format import Page, ReportFormat, registered_formats


def find_format(name: str) -> ReportFormat:
    """Return the report format of a name; formats that cannot be imported are warned of.

    Raises:
        UserError: there is none of that name.
    """
    found = registered_formats()
    form = found.find(name, "--format")
    for warning in found.warnings:
        warn(warning)
    return form


def page_of(*, verbose: bool, show: tuple[str, ...] = ()) -> Page:
    """Return the page that standard output is."""
    return Page(output_width(), verbose, show)
