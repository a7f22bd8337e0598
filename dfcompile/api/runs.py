"""What calls give back: a report in every form, and the schedules behind it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from dfcompile.api.pages import Paged, PageSource
from dfcompile.api.pictures import Picture
from dfcompile.canonical_dag import CanonicalDag
from dfcompile.errors import UserError
from dfcompile.report.figures import Report, Result
from dfcompile.report.plain_values import Json, to_record
from dfcompile.report.report_format import WIDTH, AnyReport, Page, registered_formats
from dfcompile.report.rows import report_rows
from dfcompile.scheduler import Schedule, ScheduleFigures

if TYPE_CHECKING:
    import pandas as pd

    from dfcompile.driver import Exploration


class ScheduleResult(Struct, frozen=True, eq=False):
    """One schedule of a run.

    Attributes:
        result: its figures as the report has them.
        dag: the canonical DAG that it schedules.
        schedule: where and when each task runs, as columns; of a model on one chip that of the mapping, replayed.
        figures: of the contention-free streaming schedule, exact.
    """

    result: Result
    dag: CanonicalDag
    schedule: Schedule
    figures: ScheduleFigures

    def gantt(self) -> Picture:
        """Return the schedule as a Gantt chart.

        Raises:
            UserError: it has too many tasks to be looked at.
        """
        from dfcompile.visualization.gantt.chart import check_drawable, schedule_to_svg  # most runs draw nothing

        check_drawable(self.dag)
        return Picture(schedule_to_svg(self.dag, self.schedule))

    def trace(self) -> str:
        """Return the schedule as a trace for Perfetto or chrome://tracing."""
        from dfcompile.visualization.trace import schedule_to_trace

        return schedule_to_trace(self.dag, self.schedule)


class Reported(Paged):
    """Something with a report, in the forms in which it can be looked at."""

    __slots__ = ()

    report: AnyReport

    @property
    def table(self) -> str:
        """The report as text, as the command line prints it."""
        return self.render("table", verbose=False)

    def render(self, name: str, *, width: int = WIDTH, verbose: bool = True) -> str:
        """Return the report in a format, one of our own (``table``, ``json``, ``csv``) or of a plug-in.

        Raises:
            UserError: there is no format of that name.
        """
        return registered_formats().find(name, "format").text_of(self.report, Page(width, verbose))

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

    @property
    def page_source(self) -> PageSource:
        """What a page shows beside the report."""
        return PageSource()

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
        return min(found, key=_cost)


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


def _cost(found: ScheduleResult) -> tuple[bool, int, int]:
    figures = found.figures
    return figures.makespan_cycles is None, figures.makespan_cycles or 0, figures.fifo_elements


def _described(result: Result) -> str:
    pairs = (f"{key}={name}" for key, name in result.expansions.items())
    return " ".join((f"pes={result.pes}", f"partition={result.schedule.partition}", *pairs))


def schedule_results(
    report: Report, scheduled: Iterator[tuple[CanonicalDag, Schedule, ScheduleFigures]]
) -> tuple[ScheduleResult, ...]:
    """Return the schedules of a run, each with its result in the report; both are in one order."""
    return tuple(
        ScheduleResult(result, dag, schedule, figures)
        for result, (dag, schedule, figures) in zip(report.results, scheduled, strict=True)
    )
