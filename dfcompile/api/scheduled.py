"""The schedules behind a report, each with its result there, and pictures as notebooks show them."""

from collections.abc import Iterator
from os import PathLike
from pathlib import Path

from msgspec import Struct

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.host.outputs import write_text
from dfcompile.report.figures import Report, Result
from dfcompile.scheduler import Schedule, ScheduleFigures


class Picture(Struct, frozen=True):
    """A drawing as SVG text."""

    svg: str

    def save(self, file: str | PathLike[str]) -> None:
        """Write it to a file.

        Raises:
            UserError: the file cannot be written.
        """
        write_text(self.svg, Path(file))

    def _repr_svg_(self) -> str:
        return self.svg


class ScheduleResult(Struct, frozen=True, eq=False):
    """One schedule of a run.

    Attributes:
        result: its figures as the report has them.
        dag: the canonical DAG that it schedules.
        schedule: where and when each task runs, as columns; of a model on one chip that of the mapping, replayed.
        figures: of the schedule on the contention-free machine, exact.
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


def schedule_results(
    report: Report, scheduled: Iterator[tuple[CanonicalDag, Schedule, ScheduleFigures]]
) -> tuple[ScheduleResult, ...]:
    """Return the schedules of a run, each with its result in the report; both are in one order."""
    return tuple(
        ScheduleResult(result, dag, schedule, figures)
        for result, (dag, schedule, figures) in zip(report.results, scheduled, strict=True)
    )
