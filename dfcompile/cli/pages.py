"""The page that --html writes."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

import dfcompile
from dfcompile.errors import InternalError
from dfcompile.host.outputs import write_text

if TYPE_CHECKING:  # the commands are looked at without what they run
    from dfcompile.api.runs import ScheduleResult
    from dfcompile.canonical_dag import CanonicalDag
    from dfcompile.visualization.dataflow import Dataflow

MOST_FAMILIES = 20_000  # of a graph in a page: some 2 MB
HTML = click.option(
    "--html", type=click.Path(path_type=Path), metavar="FILE",
    help="Write the report as a page with charts and tables: one file that needs no network.",
)  # fmt: skip


def said_command(prefix: str, words: Sequence[str]) -> str:
    """Return the command that was given, as a shell reads it."""
    return shlex.join((*prefix.split(), *words))


def write_page(
    target: Path | None,
    report_json: Callable[[], str],
    *,
    inputs: Sequence[str | Path | None],
    schedules: Sequence[ScheduleResult] = (),
    dags: Sequence[CanonicalDag] = (),
    graph: Dataflow | None = None,
    written: Sequence[Path] = (),
) -> None:
    """Write the page of a report, if one is asked for.

    Args:
        target: the file; ``None``: nobody asked.
        report_json: gives the report as ``--format json`` writes it.
        inputs: what was named on the command line as a file, or may have been.
        schedules: that the report is about; one that ends in a deadlock has no times to show.
        dags: of these schedules, where they are not their own: of several chips, a schedule has the part of one.
        graph: to be shown; by default that of the shortest schedule.
        written: other files of this run.
    """
    if target is None:
        return
    from dfcompile.page.document import Content, html_page
    from dfcompile.page.links import links_of
    from dfcompile.page.provenance import provenance_of
    from dfcompile.visualization.timeline import timeline_of

    command: object = click.get_current_context().obj
    if not isinstance(command, str):
        raise InternalError(f"page: found a {type(command).__name__} against the command that was given")
    files = [Path(name) for name in inputs if name is not None]
    ending = [each for each in _shortest_first(schedules) if each.figures.makespan_cycles is not None]
    timelines = [(_name(each), timeline_of(each.dag, each.schedule)) for each in ending]
    provenance = provenance_of(command, dfcompile.__version__, files)
    content = Content(
        json.loads(report_json()),
        provenance,
        timelines,
        graph or _graph(schedules, dags),
        _subject(files),
        links_of(tuple(written), target),
    )
    write_text(html_page(content), target)


def _subject(files: Sequence[Path]) -> str:
    """Return the folder of a model whose file is called as all of them are; else the report's name is as good."""
    return files[0].resolve().parent.name if files and files[0].stem == "model" else ""


def _shortest_first(schedules: Sequence[ScheduleResult]) -> list[ScheduleResult]:
    return sorted(schedules, key=lambda each: (each.figures.makespan_cycles is None, each.figures.makespan_cycles or 0))


def _name(found: ScheduleResult) -> str:
    lowering = " ".join(f"{key}={name}" for key, name in found.result.expansions.items())
    return f"{found.result.pes} PEs, {found.result.schedule.partition} {lowering}".strip()


def _graph(schedules: Sequence[ScheduleResult], dags: Sequence[CanonicalDag]) -> Dataflow | None:
    """Return the graph of the shortest schedule, in its configurations, if a page has room for it."""
    from dfcompile.visualization.dataflow import dataflow_of

    for best in _shortest_first(schedules)[:1]:
        dag = dags[schedules.index(best)] if dags else best.dag
        if len(dag.scopes) <= MOST_FAMILIES:
            mapping = best.result.mapping
            sets = () if mapping is None else mapping.configurations
            return dataflow_of(dag, {name: at for at, each in enumerate(sets) for name in each.kernels})
    return None
