"""Ski slopes: traffic over buffer size on logarithmic axes."""

from collections.abc import Iterator, Sequence
from math import ceil, floor, log2
from typing import Final

from dfcompile.bounds.curve import Curve
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


def slopes_to_svg(title: str, curves: Sequence[tuple[str, Curve]], sram_bytes: int | None = None) -> str:
    """Return a picture of curves in bytes: steps, the maximal effectual buffer of each, and a chip's SRAM.

    Args:
        title: above it.
        curves: by name.
        sram_bytes: of the chip; ``None``: it is not marked.
    """
    sizes = [int(size) for _, curve in curves for size in (curve.sizes[0], curve.sizes[-1])]
    sizes += [sram_bytes] if sram_bytes else []
    traffic = [int(words) for _, curve in curves for words in (curve.traffic[0], curve.traffic[-1])]
    axes = _Axes(_range(sizes), _range(traffic))
    height = HEIGHT + _LINE * len(curves)
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="100%" '
        f'preserveAspectRatio="xMinYMin" style="max-width:{2 * WIDTH}px" '
        'font-family="Helvetica, Arial, sans-serif" font-size="11">'
    )
    parts = [
        opening,
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        f'<text x="8" y="18" font-size="13">{escape(title)}</text>',
        *axes.drawn(),
    ]
    for number, (name, curve) in enumerate(curves):
        parts += _slope(number, name, curve, axes)
    if sram_bytes:
        x = axes.x(sram_bytes)
        anchor, beside = ("start", x + 4) if x < WIDTH / 2 else ("end", x - 4)
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{HEIGHT - _BOTTOM}" stroke="#555"/>')
        parts.append(f'<text x="{beside:.1f}" y="{_TOP + 12}" text-anchor="{anchor}">SRAM {_label(sram_bytes)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _slope(number: int, name: str, curve: Curve, axes: "_Axes") -> Iterator[str]:
    """Yield a curve, its maximal effectual buffer, and its line of the legend."""
    colour, dashes = _COLOURS[number % len(_COLOURS)], _DASHES[number % len(_DASHES)]
    points = [(axes.x(int(curve.sizes[0])), axes.y(int(curve.traffic[0])))]
    for size, words in zip(curve.sizes[1:].tolist(), curve.traffic[1:].tolist(), strict=True):
        points += [(axes.x(size), points[-1][1]), (axes.x(size), axes.y(words))]
    end = points[-1]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in [*points, (WIDTH - _RIGHT, end[1])])
    line = f'fill="none" stroke="{colour}" stroke-width="1.5" stroke-dasharray="{dashes}"'
    yield f'<polyline points="{path}" {line}/>'
    yield f'<circle cx="{end[0]:.1f}" cy="{end[1]:.1f}" r="4" fill="{colour}"><title>{escape(name)}</title></circle>'
    y = HEIGHT + _LINE * number
    yield f'<polyline points="8,{y - 4} 36,{y - 4}" {line}/>'
    yield f'<circle cx="22" cy="{y - 4}" r="4" fill="{colour}"/>'
    text = f"{name}: maximal effectual buffer {_label(curve.maximal_effectual_size)}"
    yield f'<text x="42" y="{y}">{escape(text)}</text>'


class _Axes:
    """Both axes: ranges of powers of two."""

    def __init__(self, sizes: tuple[int, int], traffic: tuple[int, int]) -> None:
        self.sizes, self.traffic = sizes, traffic

    def x(self, size: float) -> float:
        low, high = self.sizes
        return _LEFT + (log2(size) - low) / (high - low) * (WIDTH - _LEFT - _RIGHT)

    def y(self, traffic: float) -> float:
        low, high = self.traffic
        return HEIGHT - _BOTTOM - (log2(max(traffic, 1)) - low) / (high - low) * (HEIGHT - _TOP - _BOTTOM)

    def drawn(self) -> Iterator[str]:
        bottom, right = HEIGHT - _BOTTOM, WIDTH - _RIGHT
        for power in _ticks(self.sizes):
            x = self.x(2.0**power)
            yield f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{bottom}" stroke="#ddd"/>'
            yield f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{_label(2**power)}</text>'
        for power in _ticks(self.traffic):
            y = self.y(2.0**power)
            yield f'<line x1="{_LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
            yield f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{_label(2**power)}</text>'
        yield f'<text x="{(_LEFT + right) / 2:.0f}" y="{bottom + 31}" text-anchor="middle">buffer</text>'
        yield f'<text x="8" y="{_TOP - 10}">bytes moved</text>'


def _range(values: Sequence[int]) -> tuple[int, int]:
    low, high = floor(log2(max(min(values), 1))), ceil(log2(max(*values, 2)))
    return low, max(high, low + 1)


def _ticks(powers: tuple[int, int]) -> range:
    low, high = powers
    return range(low, high + 1, max(1, ceil((high - low) / _MOST_LABELS)))


def _label(size: int) -> str:
    power = min(max(size.bit_length() - 1, 0) // 10, len(_PREFIXES) - 1)
    value = size / 2 ** (10 * power)
    return f"{value:.0f} {_PREFIXES[power]}B" if value == int(value) else f"{value:.3g} {_PREFIXES[power]}B"
