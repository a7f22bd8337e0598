"""What ``dfcompile schedule`` does: a canonical DAG gets schedules, a graph of actors the sizes of its channels."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dfcompile.actor_graphs.graph import ActorGraph
from dfcompile.actor_graphs.reading import graph_of_text
from dfcompile.actor_graphs.sizes import Sized, minimal_sizes, sized_as_stated
from dfcompile.api.runs import Run, Shown, schedule_results
from dfcompile.audit.actor_graphs import audit_actors
from dfcompile.audit.schedules import audit_schedules
from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.forms.json_form import graph_text, read_dag_file
from dfcompile.dfmodel_backend import load_system
from dfcompile.dfmodel_backend.machine.plausibility import require_types
from dfcompile.dfmodel_backend.machine.system import OnChipStreams
from dfcompile.errors import UserError
from dfcompile.host.garbage import collected_seldom
from dfcompile.host.stages import counted
from dfcompile.options import (
    DEFAULT_SLACK,
    DagOptions,
    Effort,
    Fifos,
    ShowStage,
    of_stage,
    options_of,
    read_options,
    show_nothing,
    takes,
)
from dfcompile.options.readers import File
from dfcompile.report.actor_graphs import ActorsReport, actors_table, answer, summarize_actors
from dfcompile.report.plain_values import Json, to_record
from dfcompile.report.schedule_summary import summarize_schedules
from dfcompile.scheduler import ScheduleOptions, registered_partitioners
from dfcompile.scheduler.checked_schedule import CheckedSchedule, Scheduling
from dfcompile.scheduler.front import SHORTEST, Selection, grouped, options_text, selected
from dfcompile.scheduler.listing.cp_sat import NOT_PROVED, is_installed


@takes(DagOptions)
def schedule(dag: CanonicalDag | File, *, show: ShowStage = show_nothing, **options: Any) -> Run:
    """Schedule a canonical DAG on numbers of processing elements.

    The options are those of ``dfcompile schedule``, as Python values or as its texts.

    Args:
        dag: the graph, or its file, as text or JSON.
        show: gives a context that lasts as long as a stage, for showing progress.
        options: by name.

    Raises:
        UserError: the file cannot be read, or an option is none.
        InternalError: a bug of dfcompile.
    """
    if isinstance(dag, CanonicalDag):
        return run_of(read_options(DagOptions, {"dag": Path(), **options}), dag, show)
    asked = read_options(DagOptions, {"dag": dag, **options})
    schedule_choices(asked)  # what is wrong with them is said before the file is read
    with show(f"reading {dag}"):
        graph = read_dag_file(asked.dag)
    return run_of(asked, graph, show, (asked.dag,))


def schedule_choices(asked: DagOptions) -> tuple[tuple[ScheduleOptions, ...], tuple[str, ...]]:
    """Return the options of each schedule, and warnings: plug-ins that cannot be imported, proofs that are not tried.

    Raises:
        UserError: there is no such partitioner.
    """
    known = registered_partitioners()
    for name in asked.partition:
        known.find(name, "--partition")
    streams = _streams(asked)
    choices = tuple(
        ScheduleOptions(
            count,
            name,
            fifos=asked.fifo,
            simulated=asked.simulate,
            hardware=streams.hardware,
            what_if=streams.others(asked.what_if),
            **of_stage(asked, "scheduling"),
        )
        for count in asked.pes
        for name in asked.partition
    )
    untried = (NOT_PROVED,) if asked.effort is Effort.HIGH and not is_installed() else ()
    return choices, (*known.warnings, *untried)


def _streams(asked: DagOptions) -> OnChipStreams:
    return OnChipStreams() if asked.system is None else load_system(asked.system).streams


@collected_seldom()
def run_of(asked: DagOptions, dag: CanonicalDag, show: ShowStage = show_nothing, files: tuple[Path, ...] = ()) -> Run:
    """Schedule a canonical DAG, which may come from files, with options that were read already; see `schedule`."""
    choices, warnings = schedule_choices(asked)
    streams = _streams(asked)
    if streams.operator_pipeline_cycles:
        from dfcompile.frontend import CANONICAL  # most machines state nothing of operators
        from dfcompile.lowering.expansion import registered_expansions

        kernels = (kernel.op for kernel in dag.kernels)
        require_types(streams, (*registered_expansions().op_types(CANONICAL), *kernels))
    selection = Selection(asked.objective, DEFAULT_SLACK if asked.slack is None else asked.slack, front=asked.front)
    scheduling = Scheduling(dag)
    found: list[CheckedSchedule] = []
    said: list[str | None] = []
    for group in counted(grouped(choices, selection)):
        names = ", ".join(options.partition for options in group)
        with show(f"scheduling on {group[0].pes} processing elements with {names}"):
            for one in selected(scheduling, group, selection):
                found.append(one.found)
                said.append(None if selection == SHORTEST else options_text(one.options))
    report = summarize_schedules(scheduling, found, warnings, said)
    audit_schedules(report, dag, found)
    return Run(report, schedule_results(report, ((dag, one.schedule, one.figures) for one in found)), files=files)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ActorsRun(Shown):
    """A graph of actors with sizes of its channels.

    Attributes:
        report: all figures.
        files: that were read.
    """

    report: ActorsReport
    files: tuple[Path, ...] = ()

    def tables(self, width: int, *, verbose: bool) -> str:
        """Return the report as tables."""
        return actors_table(self.report, width, verbose=verbose)

    def to_record(self) -> dict[str, Json]:
        """Return the report as the plain values of its JSON contract."""
        return to_record(self.report)

    def to_rows(self) -> list[dict[str, Json]]:
        """Return a row per channel."""
        return [to_record(channel) for channel in self.report.channels]

    @property
    def answer(self) -> str:
        """The report in one line."""
        return answer(self.report)


def actors_of_text(text: str, path: Path) -> ActorGraph | None:
    """Return the graph of actors that the text of a file is; ``None`` if it is something else.

    Raises:
        UserError: it is one, and is not right.
    """
    try:
        return graph_of_text(text)
    except UserError as error:
        raise UserError(f"{path}: {error}") from error


def schedule_actors(design: ActorGraph | File, *, fifo: Fifos | None = None) -> ActorsRun:
    """Find the sizes of channels of a foreign design, or what it takes with those that are stated.

    Args:
        design: a file: XML of SDF3, or a list of nodes; or its graph.
        fifo: ``minimal``, or the size of all channels; without, sizes are those of the file if it has them.

    Raises:
        UserError: the design cannot be read, has no schedule, only some channels have a size, or ``fifo`` is another
            way.
        InternalError: a bug of dfcompile.
    """
    if isinstance(design, ActorGraph):
        return _run(design, fifo)
    path = Path(design)
    graph = actors_of_text(graph_text(path), path)
    if graph is None:
        raise UserError(
            f"{path}: found neither XML of SDF3 nor a list of nodes (dfcompile.schedule reads other graphs)"
        )
    return _run(graph, fifo, (path,))


def _run(graph: ActorGraph, fifo: Fifos | None, files: tuple[Path, ...] = ()) -> ActorsRun:
    sized = _sized(graph, fifo)
    report = summarize_actors(graph, sized)
    audit_actors(report, graph)
    return ActorsRun(report, files)


def _sized(graph: ActorGraph, fifo: Fifos | None) -> Sized:
    if fifo in ("rule", "in-flight"):
        raise UserError(f"--fifo: found {fifo!r} against minimal or a number, for a graph of actors")
    own = [channel for channel in graph.channels if not channel.is_state]
    stated = [channel for channel in own if channel.size is not None]
    if isinstance(fifo, int):
        return sized_as_stated(graph, tuple(None if one.is_state else fifo for one in graph.channels))
    if fifo == "minimal" or not stated:
        return minimal_sizes(graph)
    for channel in own:
        if channel.size is None:
            raise UserError(f"channel {channel.name!r}: found no size against one, as others have (or --fifo minimal)")
    return sized_as_stated(graph, tuple(None if one.is_state else one.size for one in graph.channels))


def actors_run(options: DagOptions, graph: ActorGraph, others: Sequence[str], files: tuple[Path, ...]) -> ActorsRun:
    """Find them with options that were read already.

    Args:
        options: of the command.
        graph: of actors.
        others: further options that were given.
        files: that were read.

    Raises:
        UserError: as `schedule_actors`, or an option is for canonical DAGs alone.
    """
    known = {name: said for name, said in options_of(DagOptions).items() if name not in ("dag", "pes", "fifo")}
    given = [said.flags[0] for name, said in known.items() if getattr(options, name) != said.default]
    for flag in (*given, *others):
        raise UserError(f"{flag}: found with a graph of actors, against --pes, --fifo and where the report goes")
    if len(options.pes) != 1 or options.pes[0] < len(graph.actors):
        raise UserError(
            f"--pes: found {', '.join(map(str, options.pes))} against one number, {len(graph.actors)} or more (an "
            "element for each actor)"
        )
    return _run(graph, options.fifo, files)
