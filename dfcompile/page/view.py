"""What a page shows of a report: the answer, and charts as plain values that the page's scripts draw."""

from dataclasses import asdict, dataclass
from enum import StrEnum
from math import inf

from dfcompile.report.plain_values import Json


class ChartKind(StrEnum):
    """How marks are drawn."""

    LINES = "lines"  # a line per series, a dot per mark
    DOTS = "dots"
    BARS = "bars"  # a bar per x, its series stacked
    GRID = "grid"  # a row per place, a column per x, coloured by series, with the label in it
    BRACKET = "bracket"  # a row per x, a dot per series and what lies between them


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis of a chart.

    Attributes:
        label: what it shows.
        unit: of its figures; empty: names, or a ratio.
        is_log: whether equal steps are equal factors.
        beyond: what it means that a mark is beyond all numbers.
    """

    label: str
    unit: str = ""
    is_log: bool = False
    beyond: str = ""


@dataclass(frozen=True, slots=True)
class Mark:
    """A figure in a chart.

    Attributes:
        x: a number, or a name; infinite: beyond all numbers, of an axis that says what that means.
        y: a number; of no meaning in a grid.
        series: what it belongs to: a line, a part of a bar.
        label: what the tooltip says beside the figures.
        is_chosen: whether it is marked as the best.
        row: of a grid.
    """

    x: float | str
    y: float
    series: str = ""
    label: str = ""
    is_chosen: bool = False
    row: str = ""


@dataclass(frozen=True, slots=True)
class Guide:
    """A line that is no data: a roof, a diagonal, a size of memory.

    Attributes:
        label: what it is.
        x: first and last place.
        y: first and last place.
        is_named_first: whether the label stands at the first place.
    """

    label: str
    x: tuple[float, float]
    y: tuple[float, float]
    is_named_first: bool = False


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart.

    Attributes:
        kind: how marks are drawn.
        title: of the chart.
        caption: what one sees, and how to read it.
        x: axis.
        y: axis.
        marks: the figures.
        guides: lines beside them.
    """

    kind: ChartKind
    title: str
    caption: str
    x: Axis
    y: Axis
    marks: tuple[Mark, ...]
    guides: tuple[Guide, ...] = ()

    def plain(self) -> dict[str, Json]:
        """Return the chart as the page's scripts read it; marks as columns, which take half of the room."""
        names = ("x", "y", "series", "label", "is_chosen", *(["row"] if self.kind is ChartKind.GRID else []))
        marks = {name: [getattr(mark, name) for mark in self.marks] for name in names}
        return {
            "kind": self.kind.value,
            "title": self.title,
            "x": asdict(self.x),
            "y": asdict(self.y),
            "marks": {**marks, "x": [None if mark.x == inf else mark.x for mark in self.marks]},
            "guides": [
                {"label": guide.label, "x": list(guide.x), "y": list(guide.y), "at": int(not guide.is_named_first)}
                for guide in self.guides
            ],
        }


@dataclass(frozen=True, slots=True)
class View:
    """What stands on the first screens of a page.

    Attributes:
        title: of the page.
        question: that was asked.
        answer: in one sentence.
        reasons: what limits it, what would make it better; a line each.
        charts: without those that have no marks.
        assumptions: what the figures rest on: name, value, source.
        warnings: what is probably not as it was meant.
    """

    title: str
    question: str
    answer: str
    reasons: tuple[str, ...] = ()
    charts: tuple[Chart, ...] = ()
    assumptions: tuple[tuple[str, str, str], ...] = ()
    warnings: tuple[str, ...] = ()


def spread(
    kind: ChartKind,
    title: str,
    caption: str,
    x: tuple[str, str],
    y: tuple[str, str],
    marks: tuple[Mark, ...],
    guides: tuple[Guide, ...] = (),
) -> Chart:
    """Return a chart with axes of equal factors where the marks span much; axes are given by label and unit."""
    across = Axis(*x, is_log=is_wide(tuple(float(mark.x) for mark in marks)))
    up = Axis(*y, is_log=is_wide(tuple(mark.y for mark in marks)))
    return Chart(kind, title, caption, across, up, marks, guides)


def is_wide(numbers: tuple[float, ...]) -> bool:
    """Return whether positive numbers span so much that an axis of equal factors shows more."""
    return bool(numbers) and min(numbers) > 0 and max(numbers) > 5 * min(numbers)
