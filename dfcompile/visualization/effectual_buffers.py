"""How large a buffer still saves traffic, beside the bytes of all operands: a bar per shape."""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from dfcompile.visualization.gantt.layout import escape
from dfcompile.visualization.ski_slopes import WIDTH, picture, size_label

_LEFT, _RIGHT, _TOP, _AXIS = 12, 28, 52, 22
_ROW, _BAR = 36, 14
_COLOUR: Final = "#4477aa"
_STEPS: Final = (25, 50, 100, 250, 500, 1000, 2500, 5000)  # percent between two lines
_MOST_LINES: Final = 8


class EffectualBuffer(Struct, frozen=True):
    """The largest buffer that still saves traffic.

    Attributes:
        name: of what moves.
        effectual_bytes: of the smallest buffer with which no larger one saves traffic.
        operand_bytes: of all inputs and outputs, each once.
    """

    name: str
    effectual_bytes: int
    operand_bytes: int

    @property
    def percent(self) -> float:
        """Of the operands that fit into the buffer."""
        return 100 * self.effectual_bytes / self.operand_bytes if self.operand_bytes else 0.0


def effectual_to_svg(title: str, buffers: Sequence[EffectualBuffer]) -> str:
    """Return a picture of effectual buffers over bytes of operands, in percent from 0 to 100 or more.

    Args:
        title: above it.
        buffers: in their order, a bar each.
    """
    most = max((one.percent for one in buffers), default=0.0)
    step = next((step for step in _STEPS if most <= step * _MOST_LINES), _STEPS[-1])
    end = max(100, -(-most // step) * step)
    bottom = _TOP + _ROW * len(buffers)
    parts = [
        '<text x="8" y="36">maximal effectual buffer, % of the bytes of all operands</text>',
        *_lines(int(step), int(end), bottom),
        *(line for number, one in enumerate(buffers) for line in _bar(number, one, end)),
    ]
    return picture(title, bottom + _AXIS, parts)


def _x(percent: float, end: float) -> float:
    return _LEFT + percent / end * (WIDTH - _LEFT - _RIGHT)


def _lines(step: int, end: int, bottom: int) -> Iterator[str]:
    for percent in range(0, end + 1, step):
        x = _x(percent, end)
        yield f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP - 8}" y2="{bottom}" stroke="#ddd"/>'
        yield f'<text x="{x:.1f}" y="{bottom + 15}" text-anchor="middle">{percent} %</text>'


def _bar(number: int, one: EffectualBuffer, end: float) -> Iterator[str]:
    """Yield what is drawn, in words, and the bar below."""
    y = _TOP + _ROW * number + 10
    sizes = f"{size_label(one.effectual_bytes)}B of {size_label(one.operand_bytes)}B"
    yield f'<text x="{_LEFT}" y="{y}">{escape(one.name)}: {one.percent:.3g} % ({sizes})</text>'
    width = _x(one.percent, end) - _LEFT
    yield f'<rect x="{_LEFT}" y="{y + 4}" width="{width:.2f}" height="{_BAR}" fill="{_COLOUR}"/>'
