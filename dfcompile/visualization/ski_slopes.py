"""Ski slopes: traffic over buffer size on logarithmic axes.

And how large a buffer still saves traffic, beside the bytes of all operands: a bar per shape.
"""

from collections.abc import Iterator, Sequence
from math import ceil, floor, log2
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from dfcompile.io_bounds.curve import Int64, Slope
from dfcompile.visualization.gantt.layout import escape

# In the units of the picture, which is as wide as the page up to twice this: letters of 11 are legible on a narrow one.
WIDTH: Final = 480
HEIGHT: Final = 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 16, 44, 46
_LINE: Final = 15  # of the legend
_COLOURS: Final = ("#4477aa", "#cc6677", "#228833", "#aa3377", "#997700", "#332288")
_DASHES: Final = ("none", "7 3", "2 2", "9 3 2 3", "4 4", "1 3")  # curves that lie on each other are seen
_PREFIXES: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_MOST_LABELS = 7
_LEAST: Final = 2.0**-20  # of a value that has a logarithm here

Float64: TypeAlias = npt.NDArray[np.float64]
Number: TypeAlias = Any  # a number or an array of them


def slopes_to_svg(
    title: str, slopes: Sequence[Slope], sram_bytes: int | None = None, *, is_intensity: bool = False
) -> str:
    """Return a picture of curves: steps, the maximal effectual buffer of each, tilings as dots, and a chip's SRAM.

    Args:
        title: above it.
        slopes: in their order.
        sram_bytes: of the chip; ``None``: it is not marked.
        is_intensity: whether operations per byte are drawn instead of bytes.
    """
    held = [np.concatenate((slope.curve.sizes, slope.cloud[0])) for slope in slopes]
    sizes = [int(end) for each in held for end in (each.min(), each.max())] + ([sram_bytes] if sram_bytes else [])
    moved = [np.concatenate((slope.curve.traffic, slope.cloud[1])) for slope in slopes]
    heights = [_height(slope, words, is_intensity=is_intensity) for slope, words in zip(slopes, moved, strict=True)]
    ends = [float(end) for each in heights for end in (each.min(), each.max())]
    axes = _Axes(_range(sizes), _range(ends), is_intensity=is_intensity)
    parts = [*axes.drawn()]
    for number, (slope, values) in enumerate(zip(slopes, heights, strict=True)):
        parts += _dots(number, slope, values[len(slope.curve.sizes) :], axes)
    for number, (slope, values) in enumerate(zip(slopes, heights, strict=True)):
        parts += _slope(number, slope, values[: len(slope.curve.sizes)], axes)
    if sram_bytes:
        x = axes.x(sram_bytes)
        anchor, beside = ("start", x + 4) if x < WIDTH / 2 else ("end", x - 4)
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{HEIGHT - _BOTTOM}" stroke="#555"/>')
        parts.append(
            f'<text x="{beside:.1f}" y="{_TOP + 12}" text-anchor="{anchor}">SRAM {size_label(sram_bytes)}B</text>'
        )
    return picture(title, HEIGHT + _LINE * len(slopes), parts)


def picture(title: str, height: int, parts: Sequence[str]) -> str:
    """Return a picture with a title, as wide as the page up to twice its own width."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="100%" '
        f'preserveAspectRatio="xMinYMin" style="max-width:{2 * WIDTH}px" '
        'font-family="Helvetica, Arial, sans-serif" font-size="11">'
    )
    ground = f'<rect width="{WIDTH}" height="{height}" fill="white"/>'
    return "\n".join([head, ground, f'<text x="8" y="18" font-size="13">{escape(title)}</text>', *parts, "</svg>", ""])


def _height(slope: Slope, moved: Int64, *, is_intensity: bool) -> Float64:
    return slope.operations / np.maximum(moved, 1) if is_intensity else moved.astype(np.float64)


def _style(number: int) -> tuple[str, str]:
    """Return colour and dashes of a curve; no two of the first 36 have both alike."""
    return _COLOURS[number % len(_COLOURS)], _DASHES[(number + number // len(_COLOURS)) % len(_DASHES)]


def _dots(number: int, slope: Slope, heights: Float64, axes: "_Axes") -> Iterator[str]:
    """Yield all tilings as dots; those that would lie on each other are one."""
    if not slope.cloud.size:
        return
    xs, ys = np.round(axes.x(slope.cloud[0])), np.round(axes.y(heights))
    places = np.unique(np.stack((xs, ys)).astype(np.int64), axis=1).T.tolist()
    path = "".join(f"M{x} {y}h0" for x, y in places)
    colour, _ = _style(number)
    yield f'<path d="{path}" stroke="{colour}" stroke-opacity="0.35" stroke-width="1.4" stroke-linecap="round"/>'


def _slope(number: int, slope: Slope, heights: Float64, axes: "_Axes") -> Iterator[str]:
    """Yield a curve, its maximal effectual buffer, and its line of the legend."""
    colour, dashes = _style(number)
    xs, ys = axes.x(slope.curve.sizes).tolist(), axes.y(heights).tolist()
    points = [(xs[0], ys[0])]
    for x, y in zip(xs[1:], ys[1:], strict=True):
        points += [(x, points[-1][1]), (x, y)]
    end = points[-1]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in [*points, (WIDTH - _RIGHT, end[1])])
    line = f'fill="none" stroke="{colour}" stroke-width="1.5" stroke-dasharray="{dashes}"'
    name = escape(slope.name)
    yield f'<polyline points="{path}" {line}/>'
    yield f'<circle cx="{end[0]:.1f}" cy="{end[1]:.1f}" r="4" fill="{colour}"><title>{name}</title></circle>'
    y = HEIGHT + _LINE * number
    yield f'<polyline points="8,{y - 4} 36,{y - 4}" {line}/>'
    yield f'<circle cx="22" cy="{y - 4}" r="4" fill="{colour}"/>'
    text = f"{name}: maximal effectual buffer {size_label(slope.curve.maximal_effectual_size)}B"
    yield f'<text x="42" y="{y}">{text}</text>'


class _Axes:
    """Both axes: ranges of powers of two."""

    def __init__(self, sizes: tuple[int, int], heights: tuple[int, int], *, is_intensity: bool) -> None:
        self.sizes, self.heights, self.is_intensity = sizes, heights, is_intensity

    def x(self, sizes: Number) -> Number:
        low, high = self.sizes
        return _LEFT + (np.log2(sizes) - low) / (high - low) * (WIDTH - _LEFT - _RIGHT)

    def y(self, values: Number) -> Number:
        low, high = self.heights
        return HEIGHT - _BOTTOM - (np.log2(np.maximum(values, _LEAST)) - low) / (high - low) * (HEIGHT - _TOP - _BOTTOM)

    def drawn(self) -> Iterator[str]:
        bottom, right = HEIGHT - _BOTTOM, WIDTH - _RIGHT
        for power in _ticks(self.sizes):
            x = self.x(2.0**power)
            yield f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{bottom}" stroke="#ddd"/>'
            anchor = "end" if x > right - _RIGHT else "middle"
            text = f"{size_label(2**power)}B"
            yield f'<text x="{min(x, WIDTH - 4):.1f}" y="{bottom + 16}" text-anchor="{anchor}">{text}</text>'
        unit = "" if self.is_intensity else "B"
        for power in _ticks(self.heights):
            y = self.y(2.0**power)
            yield f'<line x1="{_LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
            yield f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{size_label(2.0**power)}{unit}</text>'
        yield f'<text x="{(_LEFT + right) / 2:.0f}" y="{bottom + 31}" text-anchor="middle">buffer</text>'
        yield f'<text x="8" y="{_TOP - 10}">{"operations per byte" if self.is_intensity else "bytes moved"}</text>'


def _range(values: Sequence[float]) -> tuple[int, int]:
    low, high = floor(log2(max(min(values), _LEAST))), ceil(log2(max(*values, 2)))
    return low, max(high, low + 1)


def _ticks(powers: tuple[int, int]) -> range:
    low, high = powers
    return range(low, high + 1, max(1, ceil((high - low) / _MOST_LABELS)))


def size_label(size: float) -> str:
    """Return a positive number with the prefix of a power of 1,024, to which a unit may be added."""
    power = min(max(floor(log2(size)), 0) // 10, len(_PREFIXES) - 1)
    value = size / 2 ** (10 * power)
    return f"{value:.0f} {_PREFIXES[power]}" if value == int(value) else f"{value:.3g} {_PREFIXES[power]}"


_BARS_LEFT, _BARS_RIGHT, _BARS_TOP, _AXIS = 12, 28, 52, 22
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
    bottom = _BARS_TOP + _ROW * len(buffers)
    parts = [
        '<text x="8" y="36">maximal effectual buffer, % of the bytes of all operands</text>',
        *_lines(int(step), int(end), bottom),
        *(line for number, one in enumerate(buffers) for line in _bar(number, one, end)),
    ]
    return picture(title, bottom + _AXIS, parts)


def _x(percent: float, end: float) -> float:
    return _BARS_LEFT + percent / end * (WIDTH - _BARS_LEFT - _BARS_RIGHT)


def _lines(step: int, end: int, bottom: int) -> Iterator[str]:
    for percent in range(0, end + 1, step):
        x = _x(percent, end)
        yield f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_BARS_TOP - 8}" y2="{bottom}" stroke="#ddd"/>'
        yield f'<text x="{x:.1f}" y="{bottom + 15}" text-anchor="middle">{percent} %</text>'


def _bar(number: int, one: EffectualBuffer, end: float) -> Iterator[str]:
    """Yield what is drawn, in words, and the bar below."""
    y = _BARS_TOP + _ROW * number + 10
    sizes = f"{size_label(one.effectual_bytes)}B of {size_label(one.operand_bytes)}B"
    yield f'<text x="{_BARS_LEFT}" y="{y}">{escape(one.name)}: {one.percent:.3g} % ({sizes})</text>'
    width = _x(one.percent, end) - _BARS_LEFT
    yield f'<rect x="{_BARS_LEFT}" y="{y + 4}" width="{width:.2f}" height="{_BAR}" fill="{_COLOUR}"/>'
