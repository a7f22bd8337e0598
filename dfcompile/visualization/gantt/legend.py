"""What the colours and lines of a Gantt chart mean."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from dfcompile.visualization.gantt.connections import CRITICAL, GANG, STREAM
from dfcompile.visualization.gantt.layout import LEFT, PLOT_WIDTH, colour, escape

_APART = 4  # pixels between operators and marks
_MOST_OPERATORS = 30
_LETTERS = 26
_GREY = "#888888"
_SIGNS = {
    "works": f'<rect y="-10" width="12" height="12" fill="{_GREY}"/>',
    "works half of the time": (
        f'<rect y="-10" width="12" height="12" fill="{_GREY}" fill-opacity="0.32"/>'
        f'<rect y="-4" width="12" height="6" fill="{_GREY}"/>'
    ),
    "waits": f'<rect y="-10" width="12" height="12" fill="{_GREY}" fill-opacity="0.32"/>',
    "stream": f'<path d="M-2 1C5 1 7 -9 14 -9" fill="none" stroke="{STREAM}" stroke-width="1.2"/>',
    "gang": f'<rect y="-10" width="12" height="12" fill="none" stroke="{GANG}"/>',
    "critical": f'<path d="M-2 -4H14" stroke="{CRITICAL}" stroke-width="1.8"/>',
}


class Legend(Struct, frozen=True):
    """What a chart explains.

    Attributes:
        operators: in the order of their colours.
        marks: signs, one of ours each, and what they stand for.
    """

    operators: tuple[str, ...]
    marks: tuple[tuple[str, str], ...]

    @property
    def height(self) -> int:
        """Pixels."""
        return _WIDE.line * (_WIDE.rows(len(self._colours)) + _WIDE.rows(len(self.marks))) + _APART

    @property
    def narrow_height(self) -> int:
        """Pixels before scaling, in a narrow window."""
        return _NARROW.line * (_NARROW.rows(len(self._colours)) + _NARROW.rows(len(self.marks))) + _APART

    def drawn(self, top: float) -> Iterator[str]:
        """Yield it in columns, once for a wide window and once for a narrow one: operators, then the other marks."""
        signs = [(text, _SIGNS[sign]) for sign, text in self.marks]
        for name, columns in (("wide", _WIDE), ("narrow", _NARROW)):
            yield f'<g class="{name}">'
            yield from columns.drawn(self._colours, top)
            yield from columns.drawn(signs, top + columns.line * columns.rows(len(self._colours)) + _APART)
            yield "</g>"

    @property
    def _colours(self) -> list[tuple[str, str]]:
        is_whole = len(self.operators) <= _MOST_OPERATORS
        shown = self.operators if is_whole else self.operators[: _MOST_OPERATORS - 1]
        entries = [
            (_short(operator), f'<rect y="-10" width="12" height="12" fill="{colour(number)}"/>')
            for number, operator in enumerate(shown)
        ]
        return entries if is_whole else [*entries, (f"and {len(self.operators) - len(shown)} more", "")]


class _Columns(Struct, frozen=True):
    """How entries stand beside each other: pixels of a line and of a column, and by how much signs are larger."""

    line: int
    width: int
    scale: float

    def rows(self, entries: int) -> int:
        return -(-entries // (PLOT_WIDTH // self.width))

    def drawn(self, entries: Sequence[tuple[str, str]], top: float) -> Iterator[str]:
        for number, (text, sign) in enumerate(entries):
            row, column = divmod(number, PLOT_WIDTH // self.width)
            x, y = LEFT + column * self.width, top + row * self.line
            yield f'<g transform="translate({x} {y:.2f}) scale({self.scale})">{sign}'
            yield f'<text x="18" font-size="11" fill="#333333">{escape(text)}</text></g>'


_WIDE, _NARROW = _Columns(18, 190, 1), _Columns(44, 390, 2.4)


def _short(name: str) -> str:
    return name if len(name) <= _LETTERS else f"{name[: _LETTERS - 1]}…"
