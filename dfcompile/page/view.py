"""What a page shows of a report: the answer, and charts as plain values that the page's scripts draw."""

from dataclasses import asdict, dataclass
from enum import StrEnum
from math import inf

from dfcompile.report.plain_values import Json
from dfcompile.report.text_tables import Column

_SHORT = 24  # letters that stay in one line
_LEAST_PLACES = 3  # of lines
_LEAST_MARKS = {"lines": 4, "dots": 4, "bars": 3, "rows": 3, "grid": 3, "bracket": 3}


class ChartKind(StrEnum):
    """How marks are drawn."""

    LINES = "lines"  # a line per series, a dot per mark
    DOTS = "dots"
    BARS = "bars"  # a bar per x, its series stacked
    ROWS = "rows"  # the same lying down: a row per x
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
        name: what stands beside it where there is room.
    """

    x: float | str
    y: float
    series: str = ""
    label: str = ""
    is_chosen: bool = False
    row: str = ""
    name: str = ""


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


class Colouring(StrEnum):
    """What the colours of a chart mean."""

    SERIES = "series"  # of this chart; it has a legend of its own
    OPERATOR = "operator"  # each series is an operator, which has this colour on the whole page
    STRENGTH = "strength"  # each x is an operator, which has this colour on the whole page; its series are lighter


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
        colouring: what colours mean.
        is_beside: whether it stands beside the schedule: it says where the time goes.
        dashed: of lines, pairs of a series and the one whose colour it has: a bound, and what attains it.
        has_steps: whether lines that are not dashed keep their height up to the next mark.
    """

    kind: ChartKind
    title: str
    caption: str
    x: Axis
    y: Axis
    marks: tuple[Mark, ...]
    guides: tuple[Guide, ...] = ()
    colouring: Colouring = Colouring.SERIES
    is_beside: bool = False
    dashed: tuple[tuple[str, str], ...] = ()
    has_steps: bool = False

    @property
    def is_worth_drawing(self) -> bool:
        """Whether it shows more than a small table: four points, a line over three places, three bars or rows."""
        if self.kind in (ChartKind.BARS, ChartKind.ROWS):
            drawn = len([mark for mark in self.marks if mark.y])
        elif self.kind is ChartKind.BRACKET:
            drawn = len({mark.x for mark in self.marks})
        elif self.kind is ChartKind.GRID:
            drawn = len(self.marks)
        else:
            drawn = len({(mark.x, mark.y) for mark in self.marks})
        is_line = self.kind is not ChartKind.LINES or len({mark.x for mark in self.marks}) >= _LEAST_PLACES
        return is_line and drawn >= _LEAST_MARKS[self.kind]

    def plain(self) -> dict[str, Json]:
        """Return the chart as the page's scripts read it; marks as columns, which take half of the room."""
        optional = [name for name in ("label", "row", "name") if any(getattr(mark, name) for mark in self.marks)]
        marks: dict[str, Json] = {name: [getattr(mark, name) for mark in self.marks] for name in ("y", *optional)}
        series = list(dict.fromkeys(mark.series for mark in self.marks))
        place = {name: at for at, name in enumerate(series)}
        return {
            "kind": self.kind.value,
            "title": self.title,
            "x": asdict(self.x),
            "y": asdict(self.y),
            "colouring": self.colouring.value,
            "dashed": dict(self.dashed),
            "has_steps": self.has_steps,
            "series": list(series),
            "marks": {
                **marks,
                "x": [None if mark.x == inf else mark.x for mark in self.marks],
                "series": [place[mark.series] for mark in self.marks],
                "is_chosen": [at for at, mark in enumerate(self.marks) if mark.is_chosen],
            },
            "guides": [
                {"label": guide.label, "x": list(guide.x), "y": list(guide.y), "at": int(not guide.is_named_first)}
                for guide in self.guides
            ],
        }


@dataclass(frozen=True, slots=True)
class SmallTable:
    """Some figures that are read at a glance; all of them, exact, are in the tables of the report.

    Attributes:
        title: of the table.
        columns: all of the same length.
        best: the row that the answer is about.
    """

    title: str
    columns: tuple[Column, ...]
    best: int | None = None

    @property
    def rows(self) -> tuple[tuple[str, ...], ...]:
        """Cells by row."""
        return tuple(zip(*(column.cells for column in self.columns), strict=True))

    @property
    def classes(self) -> tuple[str, ...]:
        """How the cells of each column are set: numbers on the right, short words in one line."""
        widths = (max(map(len, column.cells), default=0) for column in self.columns)
        words = ("short" if width <= _SHORT else "words" for width in widths)
        return tuple(name if column.is_text else "number" for column, name in zip(self.columns, words, strict=True))


@dataclass(frozen=True, slots=True)
class View:
    """What stands on the first screens of a page.

    Attributes:
        title: of the page.
        question: that was asked.
        answer: in one sentence.
        reasons: what limits it, what would make it better; a line each.
        tables: small ones, beneath the answer.
        options: to paste: what they choose, and the options as a shell reads them.
        charts: that show more than a table.
        operators: those that have a colour of their own, the largest first.
        assumptions: what the figures rest on: name, value, source.
        warnings: what is probably not as it was meant.
    """

    title: str
    question: str
    answer: str
    reasons: tuple[str, ...] = ()
    tables: tuple[SmallTable, ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    charts: tuple[Chart, ...] = ()
    operators: tuple[str, ...] = ()
    assumptions: tuple[tuple[str, str, str], ...] = ()
    warnings: tuple[str, ...] = ()


def spread(
    kind: ChartKind, title: str, caption: str, x: tuple[str, str], y: tuple[str, str], marks: tuple[Mark, ...]
) -> Chart:
    """Return a chart with axes of equal factors where the marks span much; axes are given by label and unit."""
    across = Axis(*x, is_log=is_wide(tuple(float(mark.x) for mark in marks)))
    up = Axis(*y, is_log=is_wide(tuple(mark.y for mark in marks)))
    return Chart(kind, title, caption, across, up, marks)


def is_wide(numbers: tuple[float, ...]) -> bool:
    """Return whether positive numbers span so much that an axis of equal factors shows more."""
    return bool(numbers) and min(numbers) > 0 and max(numbers) > 5 * min(numbers)
