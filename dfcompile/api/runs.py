"""What calls give back: a report in every form, and the schedules behind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from dfcompile.api.pages import Paged, PageSource, makespan_order
from dfcompile.api.scheduled import ScheduleResult
from dfcompile.errors import UserError
from dfcompile.report.figures import Report, Result
from dfcompile.report.plain_values import Json, to_record
from dfcompile.report.report_format import WIDTH, AnyReport, Page, registered_formats
from dfcompile.report.rows import report_rows

if TYPE_CHECKING:
    import pandas as pd

    from dfcompile.driver import Exploration


class Reported(Paged):
    """Something with a report, in the forms in which it can be looked at."""

    __slots__ = ()

    report: AnyReport

    @property
    def table(self) -> str:
        """The report as text, as the command line prints it."""
        return self.render("table", verbose=False)

    def render(self, name: str, *, width: int = WIDTH, verbose: bool = True, show: tuple[str, ...] = ()) -> str:
        """Return the report in a format, one of our own (``table``, ``json``, ``csv``) or of a plug-in.

        Raises:
            UserError: there is no format of that name.
        """
        return registered_formats().find(name, "format").text_of(self.report, Page(width, verbose, show))

    def to_record(self) -> dict[str, Json]:
        """Return the report as the plain values of its JSON contract."""
        return to_record(self.report)

    def to_rows(self) -> list[dict[str, Json]]:
        """Return one row of figures per result, as CSV has them."""
        return report_rows(self.report)

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows as a data frame.

        Raises:
            UserError: pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise UserError("to_pandas: needs pandas, which is not installed (pip install pandas)") from error
        return pd.DataFrame(self.to_rows())

    @property
    def report_json(self) -> str:
        """The report as ``--format json`` writes it."""
        return self.render("json")

    def __str__(self) -> str:
        return self.table

    def _repr_html_(self) -> str:
        from dfcompile.report.html_page import report_html  # for notebooks alone

        return report_html(self.report)


@dataclass(frozen=True, slots=True, eq=False)
class Run(Reported):
    """What a model, or a canonical DAG, gives on numbers of processing elements.

    Attributes:
        report: all figures; ``report.warnings`` says what is probably not as it was meant.
        schedules: one per result of the report, in its order.
        files: that were read.
    """

    report: Report
    schedules: tuple[ScheduleResult, ...]
    files: tuple[Path, ...] = field(default=(), kw_only=True)

    @property
    def page_source(self) -> PageSource:
        """What a page shows beside the report: the schedules."""
        return PageSource(self.files, self.schedules)

    def schedule(
        self, *, pes: int | None = None, partition: str | None = None, expansions: Mapping[str, str] | None = None
    ) -> ScheduleResult:
        """Return the schedule of least makespan among those with these properties, among equals of smallest FIFOs.

        Args:
            pes: number of processing elements.
            partition: name of the partitioner.
            expansions: some of those in effect, such as ``{"MatMul": "mv"}``.

        Raises:
            UserError: there is none.
        """
        found = [
            one
            for one in self.schedules
            if pes in (None, one.result.pes)
            and partition in (None, one.result.schedule.partition)
            and (expansions or {}).items() <= one.result.expansions.items()
        ]
        if not found:
            there = dict.fromkeys(_described(one.result) for one in self.schedules)
            raise UserError(f"schedule: found none like that (there are: {'; '.join(there)})")
        return min(found, key=lambda one: (*makespan_order(one), one.figures.fifo_elements))


@dataclass(frozen=True, slots=True, eq=False)
class ModelRun(Run):
    """What a model gives, from its lowerings on.

    Attributes:
        exploration: what every stage handed over.
    """

    exploration: Exploration

    @property
    def page_source(self) -> PageSource:
        """What a page shows beside the report: the schedules, and the tasks of all chips."""
        dags = [point.variant.dag for point in self.exploration.points]
        return PageSource(self.files, self.schedules, dags)


def _described(result: Result) -> str:
    pairs = (f"{key}={name}" for key, name in result.expansions.items())
    return " ".join((f"pes={result.pes}", f"partition={result.schedule.partition}", *pairs))
