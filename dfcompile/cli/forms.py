"""The forms in which commands write a report: its format, the page that it is written on, pictures of a schedule."""

from collections.abc import Mapping
from pathlib import Path

from dfcompile.api.runs import ScheduleResult
from dfcompile.cli.endings import warn
from dfcompile.host.outputs import output_width
from dfcompile.options import Pictures
from dfcompile.report.report_format import Page, ReportFormat, registered_formats


def find_format(name: str) -> ReportFormat:
    """Return the report format of a name; formats that cannot be imported are warned of.

    Raises:
        UserError: there is none of that name.
    """
    known = registered_formats()
    form = known.find(name, "--format")
    warn(*known.warnings)
    return form


def page_of(*, verbose: bool, show: tuple[str, ...] = ()) -> Page:
    """Return the page that standard output is."""
    return Page(output_width(), verbose, show)


def schedule_pictures(found: ScheduleResult, asked: Pictures) -> Mapping[Path, str]:
    """Return the trace and the Gantt chart of a schedule, by file, as far as they are asked for."""
    pictures = ((asked.trace, found.trace), (asked.gantt, lambda: found.gantt().svg))
    return {target: draw() for target, draw in pictures if target is not None}
