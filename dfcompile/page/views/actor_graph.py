"""The page of a graph of actors: how fast it is, and how large its channels are."""

from dfcompile.page.phrases import column
from dfcompile.page.records import Record
from dfcompile.page.view import Axis, Chart, ChartKind, Mark, SmallTable, View
from dfcompile.report.text_tables import Column

_ROWS = 24  # of channels, and of actors
_TEXTS = (("channel", "name"), ("from", "source"), ("writes", "written"), ("reads", "read"), ("to", "target"))


def actor_graph_view(report: Record) -> View:
    """Return the view of a ``dfcompile-actors``."""
    subject, period = report.text("subject") or "graph", report.number("period_cycles")
    channels = sorted(report.parts("channels"), key=lambda each: -(each.number("size_tokens") or 0))[:_ROWS]
    texts = (Column(title, tuple(each.text(key) for each in channels), is_text=True) for title, key in _TEXTS)
    sizes = column("size", [each.number("size_tokens") for each in channels], "")
    busiest = sorted(report.parts("actors"), key=lambda each: -(each.number("busy_cycles") or 0))[:_ROWS]
    marks = tuple(Mark(each.text("name"), each.number("busy_cycles") or 0) for each in busiest)
    answer = "It ends in a deadlock."
    if period is not None:
        tokens = report.number("size_tokens") or 0
        answer = f"{period:,} cycles an iteration in the long run, with {tokens:,} tokens in its channels."
    return View(
        subject,
        f"How fast is {subject}, and how large are its channels?",
        answer,
        report.texts("deadlock"),
        (SmallTable("Channels, the largest first", (*texts, sizes)),),
        charts=(
            Chart(ChartKind.ROWS, "Where the cycles go", "Of an iteration.", Axis("actor"), Axis("cycles"), marks),
        ),
    )
