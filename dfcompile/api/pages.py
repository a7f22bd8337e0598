"""A report as a page: what ``--html`` writes, and ``html`` of a run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct

from dfcompile.host.outputs import check_target, write_text
from dfcompile.version import __version__

if TYPE_CHECKING:  # what makes runs comes by its types alone: commands are looked at without it
    from dfcompile.api.scheduled import ScheduleResult
    from dfcompile.canonical_dag import CanonicalDag
    from dfcompile.page.provenance import Link
    from dfcompile.visualization.dataflow import Dataflow

FROM_PYTHON: Final = "made by a Python program: import dfcompile"  # in the place of a command
_MOST_FAMILIES = 20_000  # of a graph in a page: some 2 MB


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


class Paged(Protocol):
    """Something with a report that is written as a page."""

    __slots__ = ()

    @property
    def report_json(self) -> str:
        """The report as ``--format json`` writes it."""

    @property
    def page_source(self) -> PageSource:
        """What a page shows beside the report."""

    def html(self, file: str | PathLike[str], *, command: str = FROM_PYTHON) -> None:
        """Write the report as a page with charts and tables: one file that needs no network, as ``--html`` does.

        Args:
            file: to write.
            command: what the page says of how it is made again.

        Raises:
            UserError: the file cannot be written.
        """
        check_target(Path(file))
        write_text(page_html(self.report_json, command, self.page_source), Path(file))


def page_html(report_json: str, command: str, source: PageSource, links: tuple[Link, ...] = ()) -> str:
    """Return the page of a report.

    Args:
        report_json: the report as ``--format json`` writes it.
        command: that makes the page again.
        source: what else it shows.
        links: to files that were written beside it.

    Raises:
        UserError: the report is of no kind that pages show.
    """
    from dfcompile.page.document import Content, html_page
    from dfcompile.page.provenance import provenance_of
    from dfcompile.visualization.timeline import timeline_of

    ordered = sorted(source.schedules, key=makespan_order)
    ending = [each for each in ordered if each.result.makespan_cycles is not None]
    timelines = [(_name(each), timeline_of(each.dag, each.schedule)) for each in ending]
    provenance = provenance_of(command, __version__, source.files)
    graph, left_out = source.graph, 0
    if graph is None and ordered:
        best = ordered[0]
        graph = _graph(best, source.dags[source.schedules.index(best)] if source.dags else best.dag)
        left_out = len(best.dag.scopes) if graph is None else 0
    report, subject = json.loads(report_json), subject_of(source.files)
    return html_page(Content(report, provenance, timelines, graph, subject, links, left_out))


def subject_of(files: Sequence[Path]) -> str:
    """Return the folder of a model whose file is called as all of them are; else the report's name is as good."""
    return files[0].resolve().parent.name if files and files[0].stem == "model" else ""


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
