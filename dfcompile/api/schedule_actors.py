"""From a graph of actors to the sizes of its channels: what ``dfcompile schedule`` does with foreign designs."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dfcompile.actor_graphs.graph import ActorGraph
from dfcompile.actor_graphs.reading import graph_of_text
from dfcompile.actor_graphs.sizes import Sized, minimal_sizes, sized_as_stated
from dfcompile.api.runs import Shown
from dfcompile.audit.actor_graphs import audit_actors
from dfcompile.canonical_dag.forms.json_form import graph_text
from dfcompile.errors import UserError
from dfcompile.options import DagOptions, Fifos, options_of
from dfcompile.options.readers import File
from dfcompile.report.actor_graphs import ActorsReport, actors_table, answer, summarize_actors
from dfcompile.report.plain_values import Json, to_record


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
