"""The pictures of README.md, as SVG files: what the data is like, and what detection makes of it.

That of a slot with reference signals is drawn where Sionna is installed.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import slot
from data import Setting, channels, correlation, delay_spread, frequency_correlation, has_sionna, received
from physics import detect

WIDTH, HEIGHT, MARGIN = 640, 300, 46
COLOURS = ("#1f6feb", "#d1242f", "#1a7f37", "#9a6700", "#8250df", "#0a7ea4", "#bf3989", "#57606a")
HERE = Path(__file__).parent / "figures"

Points = Sequence[tuple[float, float]]


class Chart:
    """Axes with lines or dots."""

    def __init__(self, title: str, x: tuple[str, float, float], y: tuple[str, float, float], left: int = 0) -> None:
        self._x, self._y, self._left, self._parts = x, y, left, list[str]()
        self._width = WIDTH if left == 0 else WIDTH // 2
        self._text(left + MARGIN, 20, title, "start", 14)

    def frame(self, width: int, steps: int = 4) -> None:
        """Draw the axes, so wide, that along x with so many steps."""
        self._width = width
        left, right, top, bottom = self._left + MARGIN, self._left + width - 12, 32, HEIGHT - 40
        self._parts.append(
            f'<rect x="{left}" y="{top}" width="{right - left}" height="{bottom - top}" fill="none" stroke="#8c959f"/>'
        )
        for at in np.linspace(self._x[1], self._x[2], steps + 1):
            self._text(self._at_x(at), bottom + 15, f"{at:g}", "middle", 11)
        for at in np.linspace(self._y[1], self._y[2], 5):
            self._text(left - 5, self._at_y(at) + 4, f"{at:g}", "end", 11)
        self._text((left + right) / 2, HEIGHT - 8, self._x[0], "middle", 12)
        self._parts.append(
            f'<text transform="translate({self._left + 12},{(top + bottom) / 2}) rotate(-90)" text-anchor="middle" '
            f'font-size="12">{self._y[0]}</text>'
        )

    def line(self, points: Points, colour: str, label: str = "", row: int = 0) -> None:
        """Draw a line."""
        path = " ".join(f"{self._at_x(x):.0f},{self._at_y(y):.1f}" for x, y in points)
        self._parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.4"/>')
        if label:
            self._text(self._left + self._width - 18, 48 + 15 * row, label, "end", 11, colour)

    def dots(self, points: Points, colour: str) -> None:
        """Draw dots; what is outside of the axes stands at their edge."""
        for x, y in points:
            at_x = self._at_x(min(max(x, self._x[1]), self._x[2]))
            at_y = self._at_y(min(max(y, self._y[1]), self._y[2]))
            self._parts.append(f'<circle cx="{at_x:.1f}" cy="{at_y:.1f}" r="1.6" fill="{colour}"/>')

    def cell(self, x: float, y: float, colour: str) -> None:
        """Fill one square of a grid of whole numbers."""
        left, right, top, bottom = self._at_x(x) + 0.5, self._at_x(x + 1) - 0.5, self._at_y(y + 1), self._at_y(y)
        self._parts.append(
            f'<rect x="{left:.1f}" y="{top + 0.5:.1f}" width="{right - left:.1f}" height="{bottom - top - 1:.1f}" '
            f'fill="{colour}"/>'
        )

    @property
    def parts(self) -> str:
        """What was drawn."""
        return "\n".join(self._parts)

    def _at_x(self, value: float) -> float:
        share = (value - self._x[1]) / (self._x[2] - self._x[1])
        return self._left + MARGIN + share * (self._width - 12 - MARGIN)

    def _at_y(self, value: float) -> float:
        share = (value - self._y[1]) / (self._y[2] - self._y[1])
        return HEIGHT - 40 - share * (HEIGHT - 72)

    def _text(self, x: float, y: float, text: str, anchor: str, size: int, colour: str = "#1f2328") -> None:
        self._parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{colour}">{text}</text>'
        )


def save(name: str, *charts: Chart) -> None:
    """Write charts, one beside the other."""
    drawn = "\n".join(chart.parts for chart in charts)
    HERE.mkdir(exist_ok=True)
    (HERE / name).write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'font-family="sans-serif">\n<rect width="100%" height="100%" fill="white"/>\n{drawn}\n</svg>\n'
    )


def magnitude() -> None:
    """Draw the channel's magnitude over subcarriers for three delay spreads."""
    chart = Chart("One antenna, one user: the channel over subcarriers", ("subcarrier", 0, 600), ("dB", -40, 20))
    chart.frame(WIDTH)
    for row, spread in enumerate((30e-9, 100e-9, 300e-9)):
        one = channels(600, 1, 1, seed=5, setting=Setting(delay_spread_s=spread))[:, 0, 0]
        levels = np.maximum(20 * np.log10(np.abs(one)), -40)
        chart.line(list(enumerate(levels)), COLOURS[row], f"delay spread {spread * 1e9:.0f} ns", row)
    save("magnitude.svg", chart)


def alike() -> None:
    """Draw how alike neighbouring subcarriers are: drawn channels against the profile that was asked for."""
    chart = Chart("How alike subcarriers are", ("subcarriers apart", 0, 200), ("correlation", 0, 1))
    chart.frame(WIDTH)
    for row, profile in enumerate("ABC"):
        setting = Setting(profile=profile, antenna_correlation=0.0)
        drawn = channels(201, 64, 64, seed=3, setting=setting)
        found = np.abs(np.mean(drawn * np.conj(drawn[:1]), axis=(1, 2)))
        wanted = [(at, abs(frequency_correlation(setting, at))) for at in range(201)]
        chart.line(wanted, COLOURS[row], f"TDL-{profile}, {delay_spread(setting) * 1e9:.0f} ns", row)
        chart.dots([(at, float(found[at])) for at in range(0, 201, 5)], COLOURS[row])
    save("correlation.svg", chart)


def singular_values() -> None:
    """Draw the singular values of the channels of 8 users, for uncorrelated and correlated antennas."""
    chart = Chart("8 users, 64 antennas: singular values", ("subcarrier", 0, 300), ("dB", 0, 40))
    chart.frame(WIDTH)
    for row, between in enumerate((0.0, 0.9)):
        drawn = channels(300, 64, 8, seed=2, setting=Setting(antenna_correlation=between))
        levels = 20 * np.log10(np.linalg.svd(drawn, compute_uv=False))
        for number in range(8):
            label = f"antenna correlation {between:g}" if number == 0 else ""
            chart.line(list(enumerate(levels[:, number])), COLOURS[row], label, row)
    save("singular_values.svg", chart)


def constellation() -> None:
    """Draw what one antenna receives, and what detection makes of all of them."""
    grid = received(400, 64, 8, seed=1, setting=Setting(model="TDL"))
    estimates = detect(*(value.astype(np.complex128) for value in (grid.channel, grid.covariance, grid.signal)))
    before = Chart("One antenna, before detection", ("in phase", -30, 30), ("quadrature", -30, 30))
    before.frame(WIDTH // 2)
    before.dots([(float(value.real), float(value.imag)) for value in grid.signal[:, 0]], COLOURS[0])
    after = Chart("8 layers, after detection", ("in phase", -1.5, 1.5), ("quadrature", -1.5, 1.5), WIDTH // 2)
    after.frame(WIDTH // 2)
    after.dots([(float(value.real), float(value.imag)) for value in estimates.ravel()[::6]], COLOURS[2])
    save("constellation.svg", before, after)


def slot_with_references() -> None:
    """Draw where reference signals of 8 layers lie, and the channel that is estimated from them beside the true one."""
    sent = slot.sent(24, (1,) * 8, slot.References.of(8), np.random.default_rng(1))
    lie = Chart("Two blocks of a slot", ("OFDM symbol", 0, 14), ("subcarrier", 0, 24))
    lie.frame(WIDTH // 2, steps=7)
    for symbol in range(14):
        for subcarrier in range(24):
            layers = np.flatnonzero(sent.grid[symbol, subcarrier])
            colour = "#d0d7de" if symbol in sent.data_symbols else COLOURS[0 if layers[0] == 0 else 1]
            lie.cell(symbol, subcarrier, colour)
    grid = received(240, 64, 8, seed=2, setting=Setting(model="CDL", reference_signals=True))
    found = Chart("A channel and its estimate", ("subcarrier", 0, 240), ("dB", -10, 30), WIDTH // 2)
    found.frame(WIDTH // 2)
    true, known = (20 * np.log10(np.abs(each[:, 0, 0])) for each in (grid.true_channel, grid.channel))
    found.line(list(enumerate(np.maximum(true, -10))), COLOURS[0], "true", 0)
    found.line([], COLOURS[1], "estimated", 1)
    found.dots(list(enumerate(known)), COLOURS[1])
    save("slot.svg", lie, found)


def main() -> None:
    """Draw all of them."""
    drawn = (magnitude, alike, singular_values, constellation, *((slot_with_references,) if has_sionna() else ()))
    for draw in drawn:
        draw()
    sample = ", ".join(f"{each:g}" for each in correlation(4, 0.3)[0])
    print(f"{len(drawn)} pictures in {HERE}; antennas 0 to 3 of 64 are correlated by {sample}")


if __name__ == "__main__":
    main()
