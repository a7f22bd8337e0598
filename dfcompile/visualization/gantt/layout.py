"""Where things are in a Gantt chart, and in which colour."""

import html
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct

from dfcompile.host.printable import printable

_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

# Neighbours in this list differ in hue; all are light enough for dark letters. Used in turn.
PALETTE = (
    "#77aadd", "#ee9955", "#77bb66", "#ee7788", "#99ddee", "#bb9966", "#bb88cc", "#eedd77", "#55aaaa", "#ffaabb",
    "#aaaaaa", "#bbcc44",
)  # fmt: skip

WIDTH = 1280
LEFT, RIGHT, TOP = 72, 24, 92
GUTTER = 18  # pixels between the names of rows and the rows: streams bend into it
PLOT_WIDTH = WIDTH - LEFT - RIGHT
PLOT_HEIGHT = 720  # that many rows share, if they are many
ROW_HEIGHTS = (5.0, 24.0)  # pixels, least and most
LABELLED_ROW = 11.0  # pixels that a name beside a row needs
CHARACTER = 6.2  # pixels, of small letters
MOST_TICKS = 10


class Layout(Struct, frozen=True):
    """Where things are, in pixels."""

    cycles: int
    rows: int

    @property
    def row_height(self) -> float:
        """Of one processing element."""
        return min(max(PLOT_HEIGHT / self.rows, ROW_HEIGHTS[0]), ROW_HEIGHTS[1])

    @property
    def bar_height(self) -> float:
        """Of a task."""
        return self.row_height - (2 if self.row_height > LABELLED_ROW else 0.6)

    @property
    def bottom(self) -> float:
        """Of the rows."""
        return TOP + self.rows * self.row_height

    def x(self, cycle: int) -> float:
        """Return where a cycle is."""
        return LEFT + cycle / max(self.cycles, 1) * PLOT_WIDTH

    def bar_top(self, pe: int) -> float:
        """Return where the bars of a row begin."""
        return TOP + pe * self.row_height + (self.row_height - self.bar_height) / 2

    def row_top(self, pe: int) -> float:
        """Return where a row begins."""
        return TOP + pe * self.row_height

    def middle(self, pe: int) -> float:
        """Return where the middle of a row is."""
        return TOP + (pe + 0.5) * self.row_height


def escape(text: str) -> str:
    r"""Return a text as XML has it; most control characters have no place there, not even escaped.

    >>> escape("a < b\x00")
    'a &lt; b�'
    """
    return html.escape(printable(_NO_XML.sub("\ufffd", text)), quote=False)


def colour(number: int) -> str:
    """Return the colour of the operator of a number."""
    return PALETTE[number % len(PALETTE)]


def grid(layout: Layout) -> Iterator[str]:
    """Yield the rows and their names, then the axis."""
    shown_every = 1
    while shown_every * layout.row_height < LABELLED_ROW:
        shown_every *= 2
    for pe in range(layout.rows):
        y = layout.row_top(pe)
        if pe % 2 == 0:
            size = f'width="{PLOT_WIDTH}" height="{layout.row_height:.2f}"'
            yield f'<rect x="{LEFT}" y="{y:.2f}" {size} fill="#f4f4f4"/>'
        if pe % shown_every == 0:
            yield _row_name("wide", f"PE {pe}", layout.middle(pe) + 4)
        if pe % (4 * shown_every) == 0:
            yield _row_name("narrow", str(pe), layout.middle(pe) + 10)
    bottom = layout.bottom
    for cycle in ticks(layout.cycles):
        x = layout.x(cycle)
        yield f'<path d="M{x:.2f} {TOP}V{bottom + 5:.2f}" stroke="#cccccc" stroke-width="0.6"/>'
        place = f'x="{x:.2f}" y="{bottom + 18:.2f}" text-anchor="middle"'
        yield f'<text class="tick" {place} fill="#333333">{cycle:,}</text>'
    yield f'<path d="M{LEFT} {bottom:.2f}H{LEFT + PLOT_WIDTH}" stroke="#333333"/>'
    place = f'x="{LEFT + PLOT_WIDTH / 2}" y="{bottom + 34:.2f}"'
    yield f'<text {place} class="wide" text-anchor="middle" fill="#333333">cycles</text>'


def _row_name(window: str, name: str, y: float) -> str:
    return f'<text class="{window}" x="{LEFT - GUTTER}" y="{y:.2f}" text-anchor="end" fill="#333333">{name}</text>'


def ticks(cycles: int) -> list[int]:
    """Return the places of marks from 0 on: 1, 2 or 5 times a power of ten apart, at most ten steps.

    >>> ticks(52_710)
    [0, 10000, 20000, 30000, 40000, 50000]
    """
    power = 1
    while power * 10 * MOST_TICKS < cycles:
        power *= 10
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power * MOST_TICKS >= cycles)
    return list(range(0, cycles + 1, step))


def points(corners: Sequence[tuple[float, float]]) -> str:
    """Return a path from corner to corner: ``M1.00 2.00L…``."""
    return "L".join(f"{x:.2f} {y:.2f}" for x, y in corners).join(("M", ""))


def runs(items: Iterable[int], is_next: Callable[[int, int], bool]) -> Iterator[list[int]]:
    """Yield items in their order, together as long as each is next to the one before."""
    together: list[int] = []
    for item in items:
        if together and not is_next(together[-1], item):
            yield together
            together = []
        together.append(item)
    if together:
        yield together
