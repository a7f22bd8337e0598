"""What calls give back: a report in every form, the schedules behind it, and pages, as ``--html`` writes them."""

from __future__ import annotations

import tempfile
import webbrowser
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from msgspec import Struct

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.errors import UserError
from dfcompile.host.outputs import check_target, write_text
from dfcompile.host.printable import json_text
from dfcompile.options.readers import one_of
from dfcompile.options.shared import ROW_FORMATS
from dfcompile.report.figures import Report, Result
from dfcompile.report.plain_values import Json, report_rows, rows_csv, text_names, to_record
from dfcompile.report.tables import report_table
from dfcompile.report.text_tables import WIDTH
from dfcompile.scheduler import Schedule, ScheduleFigures
from dfcompile.version import __version__

if TYPE_CHECKING:
    import pandas as pd

    from dfcompile.driver import Exploration
    from dfcompile.options.readers import File
    from dfcompile.page.provenance import Link
    from dfcompile.report.design.figures import AnyReport
    from dfcompile.visualization.dataflow import Dataflow

FROM_PYTHON: Final = "made by a Python program: import dfcompile"  # in the place of a command
_MOST_FAMILIES = 20_000  # of a graph in a page: some 2 MB


class Picture(Struct, frozen=True):
    """A drawing as SVG text."""

    svg: str

    def save(self, file: str | PathLike[str]) -> None:
        """Write it to a file.

        Raises:
            UserError: the file cannot be written.
        """
        write_text(self.svg, Path(file))

    def __repr__(self) -> str:
        return f"<Picture: SVG of {len(self.svg.encode()):,} bytes>"

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

    def __repr__(self) -> str:
        return f"<ScheduleResult: {_described(self.result)}, {len(self.dag.scopes):,} groups of tasks>"

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


class PageSource(Struct, frozen=True, eq=False):
    """What a page shows beside its report.

    Attributes:
        files: that were read, or may have been: a page has their hashes.
        schedules: that the report is about; one that ends in a deadlock has no times to show.
        dags: of these schedules, where they are not their own: of several chips, a schedule has the part of one.
        graph: to be shown; by default that of the shortest schedule.
    """

    files: Sequence[Path] = ()
    schedules: Sequence[ScheduleResult] = ()
    dags: Sequence[CanonicalDag] = ()
    graph: Dataflow | None = None


class Shown(ABC):
    """Something with a report, in the forms in which it can be looked at.

    Attributes:
        files: that were read, or may have been.
        row_names: of the columns of rows, where there may be no rows to show them.
    """

    __slots__ = ()

    files: tuple[Path, ...]
    row_names: ClassVar[Sequence[str]] = ()

    @property
    def page_source(self) -> PageSource:
        """What a page shows beside the report."""
        return PageSource(self.files)

    def text(self, form: str = "table", width: int = WIDTH, *, verbose: bool = True) -> str:
        """Return the report as ``table``, ``json`` or ``csv``.

        Raises:
            UserError: there is no format of that name.
        """
        match one_of("format", form, ROW_FORMATS):
            case "json":
                return json_text(self.to_record(), indent=2) + "\n"
            case "csv":
                return rows_csv(self.to_rows(), self.row_names)
        return self.tables(width, verbose=verbose)

    @abstractmethod
    def tables(self, width: int, *, verbose: bool) -> str:
        """Return the report as tables for people, with ``verbose`` also what it rests on."""

    @abstractmethod
    def to_record(self) -> dict[str, Json]:
        """Return the report as the plain values of its JSON contract."""

    @abstractmethod
    def to_rows(self) -> list[dict[str, Json]]:
        """Return one row of figures per result, as CSV has them."""

    @property
    def text_columns(self) -> Collection[str]:
        """Names of columns of texts, as far as their values may not show it."""
        return ()

    @property
    def table(self) -> str:
        """The report as text, as the command line prints it."""
        return self.text(verbose=False)

    @property
    def report_json(self) -> str:
        """The report as ``--format json`` writes it."""
        return self.text("json")

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows as a data frame; numbers are ``Float64`` and texts ``string``, be they all missing.

        Raises:
            UserError: pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise UserError("to_pandas: needs pandas, which is not installed (pip install pandas)") from error
        frame = pd.DataFrame(self.to_rows())
        frame = frame.astype({name: "string" for name in self.text_columns if name in frame}).convert_dtypes()
        return frame.astype(dict.fromkeys(frame.select_dtypes(["Int64", "object"]), "Float64"))

    def html(self, file: str | PathLike[str], *, command: str = FROM_PYTHON) -> None:
        """Write the report as a page with charts and tables: one file that needs no network, as ``--html`` does.

        Args:
            file: to write.
            command: what the page says of how it is made again.

        Raises:
            UserError: the file cannot be written.
        """
        check_target(Path(file))
        write_text(self.page(command), Path(file))

    def page(self, command: str, links: tuple[Link, ...] = ()) -> str:
        """Return the report as a page that says which command makes it again, with links to files beside it."""
        from dfcompile.page.document import Content, html_page
        from dfcompile.page.provenance import provenance_of, subject_of
        from dfcompile.visualization.trace import timeline_of

        source = self.page_source
        ordered = sorted(source.schedules, key=makespan_order)
        ending = [each for each in ordered if each.result.makespan_cycles is not None]
        timelines = [(_name(each), timeline_of(each.dag, each.schedule)) for each in ending]
        provenance = provenance_of(command, __version__, source.files)
        graph, left_out = source.graph, 0
        if graph is None and ordered:
            best = ordered[0]
            graph = _graph(best, source.dags[source.schedules.index(best)] if source.dags else best.dag)
            left_out = len(best.dag.scopes) if graph is None else 0
        subject = subject_of(source.files)
        return html_page(Content(self.to_record(), provenance, timelines, graph, subject, links, left_out))

    def __str__(self) -> str:
        return self.table

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.answer}>"

    @property
    def answer(self) -> str:
        """The report in one line."""
        return self.table.partition("\n")[0]

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.table)}</pre>"


class Reported(Shown):
    """What has a report of figures."""

    __slots__ = ()

    report: AnyReport

    def tables(self, width: int, *, verbose: bool, show: tuple[str, ...] = ()) -> str:
        """Return the report as tables for people; ``show`` names those below the first screen."""
        if isinstance(self.report, Report):
            return report_table(self.report, width, verbose=verbose, show=show)
        from dfcompile.report.design.tables import design_table  # a model's run needs nothing of designs

        return design_table(self.report, width, verbose=verbose)

    def render(self, name: str, *, width: int = WIDTH, verbose: bool = True, show: tuple[str, ...] = ()) -> str:
        """Return the report as `text` does, tables with those that ``show`` names below the first screen."""
        return self.tables(width, verbose=verbose, show=show) if name == "table" else self.text(name)

    def to_record(self) -> dict[str, Json]:
        """Return the report as the plain values of its JSON contract."""
        return to_record(self.report)

    def to_rows(self) -> list[dict[str, Json]]:
        """Return one row of figures per result, as CSV has them."""
        return report_rows(self.report)

    @property
    def text_columns(self) -> Collection[str]:
        """Names of columns of texts, as far as their values may not show it."""
        return text_names(Result if isinstance(self.report, Report) else type(self.report))

    def _repr_html_(self) -> str:
        from dfcompile.report.html_page import report_html  # for notebooks alone

        return report_html(self.report)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
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
    def answer(self) -> str:
        """The report in one line."""
        best = min(self.schedules, key=makespan_order).result
        cycles = "a deadlock" if best.makespan_cycles is None else f"{best.makespan_cycles:,} cycles on {best.pes} PEs"
        return f"{self.report.model.name}: {cycles}, the shortest of {len(self.schedules)} schedules"

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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ModelRun(Run):
    """What a model gives, from its lowerings on.

    Attributes:
        exploration: what every stage handed over.
    """

    exploration: Exploration

    @property
    def answer(self) -> str:
        """The report in one line: the first of the screen."""
        return self.table.partition("\n")[0]

    @property
    def page_source(self) -> PageSource:
        """What a page shows beside the report: the schedules, and the tasks of all chips."""
        return PageSource(self.files, self.schedules, [point.variant.dag for point in self.exploration.points])


def makespan_order(found: ScheduleResult) -> tuple[bool, int]:
    """Return what orders schedules by their makespan; one that ends in a deadlock is last."""
    cycles = found.result.makespan_cycles
    return cycles is None, cycles or 0


def _name(found: ScheduleResult) -> str:
    lowering = " ".join(f"{key}={name}" for key, name in found.result.expansions.items())
    return f"{found.result.pes} PEs, {found.result.schedule.partition} {lowering}".strip()


def _graph(found: ScheduleResult, dag: CanonicalDag) -> Dataflow | None:
    """Return the graph of a schedule, in its configurations, if a page has room for it."""
    from dfcompile.visualization.dataflow import dataflow_of

    if len(dag.scopes) > _MOST_FAMILIES:
        return None
    sets = () if found.result.mapping is None else found.result.mapping.configurations
    return dataflow_of(dag, {name: at for at, each in enumerate(sets) for name in each.kernels})


def _described(result: Result) -> str:
    pairs = (f"{key}={name}" for key, name in result.expansions.items())
    return " ".join((f"pes={result.pes}", f"partition={result.schedule.partition}", *pairs))


def open_page(found: Shown, file: File | None = None) -> Path:
    """Write the page of what a call gave back, and open it in the browser.

    Args:
        found: what `compile`, `explore`, `bounds`, `llm`, `schedule`, `solve` or `compare` gave back.
        file: to write; by default one of its own in the folder of temporary files.

    Returns:
        The file.

    Raises:
        UserError: the file cannot be written.
    """
    target = Path(tempfile.mkdtemp(prefix="dfcompile-")) / "page.html" if file is None else Path(file)
    found.html(target)
    webbrowser.open(target.resolve().as_uri())
    return target
