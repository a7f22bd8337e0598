"""Tables as the notebook prints them: columns to the right, wrapped at 80 characters, floats of six digits."""

import math
from collections.abc import Sequence

from msgspec import Struct

WIDTH = 80
DIGITS = 6
LARGE = 1e6


class FrameColumn(Struct, frozen=True):
    """A column: of floats, where none is NaN, or of texts and whole numbers."""

    heading: str
    cells: Sequence[object]
    is_float: bool = False

    def lines(self) -> list[str]:
        """Heading and cells, to the right in the column's width."""
        if self.is_float:
            numbers = [float(cell) if isinstance(cell, int | float) else math.nan for cell in self.cells]
            texts = [f" {self.heading}", *(f" {text}" for text in float_texts(numbers))]
        else:
            texts = [self.heading, *(f" {cell}" for cell in self.cells)]
        width = max(map(len, texts))
        return [text.rjust(width) for text in texts]


def float_texts(numbers: Sequence[float]) -> list[str]:
    """Write a column of numbers: with an exponent if some are large and all six digits make them long.

    >>> float_texts([16777216.0, math.nan]), float_texts([2.061584e11])
    (['16777216.0', 'NaN'], ['2.061584e+11'])
    """
    fixed = _without_zeros([_shown(number, "f") for number in numbers])
    finite = [abs(number) for number in numbers if not math.isnan(number)]
    is_long = max(len(text) + 1 for text in fixed) > DIGITS + 6  # a blank for the sign
    is_small = any(0 < number < 10.0**-DIGITS for number in finite)
    if is_small or (is_long and any(number > LARGE for number in finite)):
        return [_shown(number, "e") for number in numbers]
    return fixed


def _shown(number: float, form: str) -> str:
    return "NaN" if math.isnan(number) else f"{number:.{DIGITS}{form}}"


def _without_zeros(texts: list[str]) -> list[str]:
    """Take off zeros that all decimals end with, but for the first one."""
    numbers = [text for text in texts if text != "NaN"]
    kept = max((len(text.rstrip("0").partition(".")[2]) for text in numbers), default=1)
    cut = DIGITS - max(kept, 1)
    return [text if text == "NaN" or not cut else text[:-cut] for text in texts]


def frame_text(columns: Sequence[FrameColumn]) -> str:
    """Return a table with row numbers; columns that do not fit stand below."""
    rows = len(columns[0].cells)
    index = ["", *map(str, range(rows))]
    size = max(map(len, index))
    index = [text.ljust(size) for text in index]
    made = [column.lines() for column in columns]
    parts = _parts([len(lines[0]) for lines in made], WIDTH - size - 1)
    blocks = []
    for number, (start, end) in enumerate(parts):
        pieces = [index, *made[start:end]]
        if len(parts) > 1:
            is_last = number == len(parts) - 1
            pieces.append([" "] * (rows + 1) if is_last else [" \\", *["  "] * rows])
        blocks.append("\n".join(" ".join(line) for line in zip(*pieces, strict=True)))
    return "\n\n".join(blocks)


def _parts(widths: Sequence[int], room: int) -> list[tuple[int, int]]:
    parts, start, taken = [], 0, 0
    for number, width in enumerate(widths):
        taken += width + 1
        mark = 1 if number == len(widths) - 1 else 2
        if taken + mark > room and number > 0:
            parts.append((start, number))
            start, taken = number, width + 1
    return [*parts, (start, len(widths))]
