"""Report formats as values: the decorator that makes them and the kind of plug-in that finds them."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import Struct

from dfcompile.errors import VerificationError
from dfcompile.plugins import Collected, PluginKind, faults_of

if TYPE_CHECKING:
    from dfcompile.report.design.figures import DesignReport
    from dfcompile.report.figures import Report

AnyReport: TypeAlias = "Report | DesignReport"

WIDTH: Final = 120  # columns of a page where nobody says how many there are


class Page(Struct, frozen=True):
    """What a report is written on; formats for programs take no notice of it.

    Attributes:
        width: columns that a reader sees beside each other.
        verbose: whether the reader wants everything, such as the assumptions.
        show: sections that are wanted below the first screen, where not everything is.
    """

    width: int = WIDTH
    verbose: bool = True
    show: tuple[str, ...] = ()


Render: TypeAlias = Callable[[AnyReport, Page], str]


class ReportFormat(Struct, frozen=True):
    """A form in which reports are written.

    Attributes:
        name: under which ``--format`` chooses it.
        media_type: of the text, such as ``text/csv``.
        source: of the form, such as a citation key.
        module: that defines it.
        render: gives the text of a report.
    """

    name: str
    media_type: str
    source: str
    module: str
    render: Render

    def text_of(self, report: AnyReport, page: Page) -> str:
        """Return a report in this format.

        Raises:
            PluginError: the format is a third party's, and fails or gives no text.
        """
        with faults_of("report format", f"{self.module}.{self.render.__name__}"):
            text: object = self.render(report, page)
            if not isinstance(text, str):
                raise VerificationError(f"found a value of type {type(text).__name__} against a text")
        return text


def report_format(name: str, *, media_type: str, source: str) -> Callable[[Render], ReportFormat]:
    """Make a `ReportFormat` of a function ``(report, page) -> str``."""

    def decorate(render: Render) -> ReportFormat:
        return ReportFormat(name, media_type, source, render.__module__, render)

    return decorate


REPORT_FORMATS: Final = PluginKind(
    singular="report format",
    plural="report formats",
    type=ReportFormat,
    package="dfcompile.report.formats",
    group="dfcompile.report_formats",
    key=lambda value: value.name,
)


def registered_formats() -> Collected[ReportFormat]:
    """Return all report formats: our own and those of installed plug-ins.

    Raises:
        RegistrationError: two modules claim one name.
    """
    return REPORT_FORMATS.collect()
