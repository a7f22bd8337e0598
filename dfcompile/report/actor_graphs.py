"""The report on a graph of actors: how fast it is, and how large its channels are."""

from fractions import Fraction
from typing import Final

from dfcompile.actor_graphs.graph import ActorGraph
from dfcompile.actor_graphs.sizes import Sized
from dfcompile.host.printable import printable
from dfcompile.report.columns import table_columns
from dfcompile.report.figure import figure, filled, record
from dfcompile.report.text_tables import Column, Table, folded, page

SCHEMA: Final = "dfcompile-actors/1"
NOTE: Final = (
    "an actor fires once at a time, on a processing element of its own; a firing takes places in channels when it "
    "begins, and frees those of what it has read when it ends [stuijk06]"
)
_FEW = 6  # phases that are shown one by one


@record("actors")
class ActorSummary:
    """An actor."""

    name: str = figure("as the file has it")
    firings: int = figure("in a period", unit="firings", heading="firings")
    busy_cycles: int = figure("of a period", heading="busy\ncycles")


@record("channels")
class ChannelSummary:
    """A channel."""

    name: str = figure("as the file has it")
    source: str = figure("actor that writes", heading="from")
    written: str = figure("tokens that a firing writes, of each phase; of many their sum", heading="writes")
    read: str = figure("tokens that a firing reads, likewise", heading="reads")
    target: str = figure("actor that reads", heading="to")
    tokens: int = figure("in the beginning", unit="tokens", heading="tokens")
    size_tokens: int | None = figure(
        "that it holds; `null` of what an actor hands to itself", unit="tokens", heading="size"
    )


@record("graph")
class ActorsReport:
    """A graph of actors with sizes of its channels."""

    schema: str = figure("name and version of this contract", choices=(SCHEMA,), default=SCHEMA, init=False)
    subject: str = figure("name of the graph")
    sizes: str = figure(
        "`minimal`: a token less in any one channel is slower, or a deadlock; `stated`: by the file, or `--fifo`",
        choices=("minimal", "stated"),
        heading="sizes",
    )
    period_cycles: Fraction | None = figure(
        "of an iteration, or an inference, in the long run; `null` in a deadlock",
        heading="period\ncycles",
        cell="{:,.12g}".format,
        words=((None, "deadlock"),),
    )
    least_period_cycles: Fraction = figure(
        "the same with channels of any size", heading="least\ncycles", cell="{:,.12g}".format
    )
    first_cycles: int | None = figure("until the first of them has ended", heading="first\ncycles")
    size_tokens: int = figure("of all channels", unit="tokens", heading="size\ntokens")
    deadlock: tuple[str, ...] = figure(
        "who waits for whom, the last for the first; empty if nobody waits for ever", of="waits"
    )
    actors: tuple[ActorSummary, ...] = figure("in the order of the file")
    channels: tuple[ChannelSummary, ...] = figure("likewise")
    notes: tuple[str, ...] = figure("what the figures rest on", default=(NOTE,))


def summarize_actors(graph: ActorGraph, sized: Sized) -> ActorsReport:
    """Return the report on a graph."""
    names = [actor.name for actor in graph.actors]
    fired = zip(graph.actors, (count * graph.iterations for count in graph.firings), strict=True)
    return filled(
        ActorsReport,
        sized,
        sized.execution,
        subject=graph.name,
        sizes="minimal" if sized.is_minimal else "stated",
        size_tokens=sum(size or 0 for size in sized.sizes),
        actors=tuple(ActorSummary(one.name, count, count // len(one.cycles) * sum(one.cycles)) for one, count in fired),
        channels=tuple(
            ChannelSummary(
                one.name, names[one.source], _rates(one.written), _rates(one.read), names[one.target], one.tokens, size
            )
            for one, size in zip(graph.channels, sized.sizes, strict=True)
        ),
    )


def _rates(tokens: tuple[int, ...]) -> str:
    if len(tokens) > _FEW:
        return f"{sum(tokens):,} in {len(tokens):,} phases"
    return ",".join(map(str, tokens))


def answer(report: ActorsReport) -> str:
    """Return the report in one sentence."""
    subject = printable(report.subject)
    if report.period_cycles is None:
        return f"{subject} ends in a deadlock: {'; '.join(report.deadlock)}."
    period, least = report.period_cycles, report.least_period_cycles
    slower = ", as with channels of any size"
    if period > least:
        slower = f", {float(period / least):.4g} times the least: full channels stall it"
    minimal = "; no single one of them can be smaller" if report.sizes == "minimal" else ""
    return (
        f"{subject} has a period of {float(period):,.12g} cycles with {report.size_tokens:,} tokens in its "
        f"channels{slower}{minimal}."
    )


def actors_table(report: ActorsReport, width: int, *, verbose: bool) -> str:
    """Return the report as tables for people; ``verbose`` adds the actors and what the figures rest on."""
    channels = Column("channel", tuple(one.name for one in report.channels), is_text=True)
    actors = Column("actor", tuple(one.name for one in report.actors), is_text=True)
    tables = [
        Table(printable(f"graph {report.subject}"), (), table_columns("graph", [report])),
        Table("channels", (channels,), table_columns("channels", report.channels)),
    ]
    if verbose:
        tables.append(Table("actors", (actors,), table_columns("actors", report.actors)))
    lines = [*folded(answer(report), width), "", *(line for table in tables for line in table.lines(width))]
    return page([*lines, *(line for note in report.notes for line in folded(note, width))])
