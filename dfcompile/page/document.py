"""The page: one HTML file with everything in it, and a policy that lets nothing else in.

What it holds: JSON that cannot end its element, columns of numbers as base64, hashes for the policy.
"""

import hashlib
import json
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cache
from importlib.resources import files

import numpy as np
from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup
from msgspec import Struct
from numpy.typing import NDArray

from dfcompile.host.printable import printable
from dfcompile.page.provenance import Link, Provenance
from dfcompile.page.records import Record
from dfcompile.page.view import View
from dfcompile.page.views import view_of
from dfcompile.report.plain_values import Json
from dfcompile.visualization.dataflow import Dataflow, DataflowEdge, DataflowNode
from dfcompile.visualization.trace import Timeline

# What could end the element, begin another or end a line of a script; JSON reads the escapes as the characters.
_ESCAPED = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})
LARGEST_INT32 = 2**31 - 1


def script_json(value: Json) -> str:
    r"""Return a value as JSON for a ``<script type="application/json">``.

    Raises:
        ValueError: a number that JSON has not: infinite or undefined.

    >>> script_json({"name": "</script>"})
    '{"name":"\\u003c/script\\u003e"}'
    """
    # Only ASCII: no character of a name turns the text around it, whatever shows the page's source.
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":")).translate(_ESCAPED)


def column(values: NDArray[np.int32] | NDArray[np.int64]) -> dict[str, Json]:
    """Return integers as a typed column: 4 bytes each, or 8 (as float64, exact up to 2^53) where they need it."""
    fits = not values.size or int(np.abs(values).max()) <= LARGEST_INT32
    held = values.astype("<i4" if fits else "<f8")
    return {"type": "i4" if fits else "f8", "base64": b64encode(held.tobytes()).decode("ascii")}


def policy_hash(text: str) -> str:
    """Return what a content security policy says of an inline script or style.

    >>> policy_hash("")
    "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
    """
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}'"


VENDORED = ("vendor/d3.min.js", "vendor/plot.min.js")
SCRIPTS = (
    *("texts.js", "values.js", "colours.js", "labels.js", "charts.js", "timeline.js"),
    *("layout.js", "boxes.js", "graph.js", "tables.js", "main.js"),
)
_OF_GRAPHS = frozenset({"layout.js", "boxes.js", "graph.js"})
_OF_SCHEDULES = frozenset({"timeline.js"})
# Of the style that Observable Plot puts beside each drawing, for the class name that charts.js gives.
STYLE_OF_PLOT = "'sha256-+TfQir1nvDucAdvE6XUQBt4ayUjpAWkbw2kCdSfekHM='"
_NODE_COLUMNS = tuple(field.name for field in fields(DataflowNode))
_EDGE_COLUMNS = tuple(field.name for field in fields(DataflowEdge))
MOST_TASKS = 150_000  # of all timelines of a page: some 3 MB


class Content(Struct, frozen=True, eq=False):
    """What a page is made of.

    Attributes:
        report: its JSON.
        provenance: what repeats the run.
        timelines: pairs of a name and the schedule's tasks; the first that fit are shown.
        graph: of the result that the answer is about, if there is one.
        subject: what people call the model, where the report's own name for it says nothing; else empty.
        links: to files that were written beside the page.
        families_left_out: of a graph that is too large to be shown.
    """

    report: Mapping[str, Json]
    provenance: Provenance
    timelines: Sequence[tuple[str, Timeline]] = ()
    graph: Dataflow | None = None
    subject: str = ""
    links: Sequence[Link] = ()
    families_left_out: int = 0


def html_page(content: Content) -> str:
    """Return a page as HTML: the same text for the same content.

    Raises:
        UserError: the report is of no kind that pages show.
    """
    view = view_of(Record(_named(content.report, content.subject)))
    shown, left_out = _shown_timelines(content.timelines)
    unused = (frozenset() if shown else _OF_SCHEDULES) | (frozenset() if content.graph else _OF_GRAPHS)
    scripts = tuple(_script(f"scripts/{name}") for name in SCRIPTS if name not in unused)
    style = _text("style.css")
    vendored = tuple(_text(name) for name in VENDORED)
    hashes = " ".join(policy_hash(script) for script in (*vendored, *scripts))
    policy = (
        f"default-src 'none'; script-src {hashes}; style-src {policy_hash(style)} {STYLE_OF_PLOT}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    environment = Environment(
        loader=FunctionLoader(_text), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["printable"] = printable
    return environment.get_template("page.html.j2").render(
        view=view,
        policy=policy,
        style=Markup(style),  # noqa: S704  # our own file
        scripts=tuple(Markup(script) for script in (*vendored, *scripts)),  # noqa: S704  # our own files
        report=Markup(script_json(dict(content.report))),  # noqa: S704  # escaped for scripts
        charts=Markup(script_json(_chart_values(view, shown, content.graph))),  # noqa: S704  # escaped for scripts
        timelines=shown,
        left_out=left_out,
        graph=content.graph,
        graph_name=content.subject or (content.graph.name if content.graph else ""),
        provenance=content.provenance,
        links=content.links,
        families_left_out=content.families_left_out,
    )


def _named(report: Mapping[str, Json], subject: str) -> Mapping[str, Json]:
    """Return the report about a model of another name: for what a page says; the report inside stays as it is."""
    key = "model" if "model" in report else "subject"
    model = report.get(key)
    if not subject or model is None:
        return report
    return {**report, key: {**model, "name": subject} if isinstance(model, dict) else subject}


def _chart_values(view: View, timelines: Sequence[tuple[str, Timeline]], graph: Dataflow | None) -> dict[str, Json]:
    return {
        "charts": [chart.plain() for chart in view.charts],
        "timelines": [_timeline_values(name, timeline) for name, timeline in timelines],
        "graph": None if graph is None else _graph_values(graph),
        "operators": list(dict.fromkeys((*view.operators, *_operators(timelines, graph)))),
    }


def _operators(timelines: Sequence[tuple[str, Timeline]], graph: Dataflow | None) -> Iterator[str]:
    """Yield the operators that have a colour: of the first schedule, those of most work first; else of the graph."""
    if not timelines:
        yield from dict.fromkeys(node.operator for node in graph.nodes if node.kind != "buffer") if graph else ()
        return
    timeline = timelines[0][1]
    work = np.bincount(timeline.family, timeline.end - timeline.start, len(timeline.families))
    held: Counter[str] = Counter()
    for (_, origin), cycles in zip(timeline.families, work.tolist(), strict=True):
        held[origin] += cycles
    yield from (origin for origin, _ in held.most_common())


def _graph_values(graph: Dataflow) -> Json:
    return {
        "name": graph.name,
        "unit": graph.unit,
        "configurations": list(graph.configurations),
        "nodes": {name: [getattr(node, name) for node in graph.nodes] for name in _NODE_COLUMNS},
        "edges": {name: [getattr(edge, name) for edge in graph.edges] for name in _EDGE_COLUMNS},
    }


def _timeline_values(name: str, timeline: Timeline) -> Json:
    return {
        "name": name,
        "pes": timeline.pes,
        "makespan_cycles": timeline.makespan_cycles,
        "families": [[family, origin] for family, origin in timeline.families],
        **{name: column(getattr(timeline, name)) for name in ("family", "member", "pe", "start", "end", "block")},
    }


def _shown_timelines(timelines: Sequence[tuple[str, Timeline]]) -> tuple[list[tuple[str, Timeline]], int]:
    """Return the timelines that fit, in their order, and how many do not."""
    shown: list[tuple[str, Timeline]] = []
    room = MOST_TASKS
    for name, timeline in timelines:
        if timeline.pe.size <= room:
            shown.append((name, timeline))
            room -= timeline.pe.size
    return shown, len(timelines) - len(shown)


@cache
def _text(name: str) -> str:
    return files("dfcompile.page").joinpath(name).read_text(encoding="utf-8")


def _script(name: str) -> str:
    """Return one of our scripts without what a browser does not read: indentation, and lines that are comments."""
    lines = (line.strip() for line in _text(name).splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("//")) + "\n"
