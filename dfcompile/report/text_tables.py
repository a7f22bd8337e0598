"""Tables as text: nothing in them is ever cut; what does not fit beside each other stands below each other.

Amounts have SI prefixes for work, binary ones for bytes.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar

from msgspec import Struct

from dfcompile.host.printable import printable

WIDTH: Final = 120  # columns of a page where nobody says how many there are
PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"), (1e-12, "p"))
DIGITS = 4
NO_TIME_S = 1e-21  # a time below it is that of traffic that takes none
FOLDED = 20  # columns that a text of several words gets at least
READABLE = 40  # columns that a description beside names gets at least
GAP = 2
INDENT = "   "
_BLANK: Final = re.compile(" (?!%)")

Row = TypeVar("Row")


class Column(Struct, frozen=True):
    """A column of a table: a text is folded at blanks where it does not fit, a number is not."""

    heading: str
    cells: tuple[str, ...]
    is_text: bool = False

    @property
    def shown(self) -> tuple[str, ...]:
        """The cells as they may be shown."""
        return tuple(map(printable, self.cells))

    @property
    def natural_width(self) -> int:
        """Columns of the screen if nothing is folded."""
        return max(map(columns_of, (*self.heading.split("\n"), *self.shown)))

    def least_width(self, folded: int = FOLDED) -> int:
        """Columns of the screen if a text is folded to ``folded`` columns, and names in it are whole."""
        if not self.is_text:
            return self.natural_width
        words = (word for text in (self.heading, *self.shown) for word in text.split())
        return max(min(self.natural_width, folded), *map(columns_of, words), 0)


class Table(Struct, frozen=True):
    """A table: what tells its rows apart, and the columns beside."""

    title: str
    labels: tuple[Column, ...]
    columns: tuple[Column, ...]

    def lines(self, width: int) -> list[str]:
        """Return its lines; columns that do not fit beside the labels follow in further tables.

        Where not even the labels and one column fit, each row becomes lines ``heading: value``.
        """
        taken = sum(column.least_width() + GAP for column in self.labels)
        if self.columns and any(taken + 1 + column.least_width() > width for column in self.columns):
            return _stacked(self.title, [*self.labels, *self.columns], width)
        parts: list[list[Column]] = [[]]
        for column in self.columns:
            if parts[-1] and taken + _least_width([*parts[-1], column]) > width:
                parts.append([])
            parts[-1].append(column)
        lines: list[str] = []
        for number, part in enumerate(parts):
            title = f"{self.title}, continued" if number else self.title
            grid = (line for row in _grid_rows([*self.labels, *part], width) for line in row)
            lines += [*folded(title, width), "", *grid, ""]
        return lines


def columns_of(text: str) -> int:
    """Return how many columns of a terminal a text takes; some scripts take two for a character."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def folded(text: str, width: int, indent: str = "") -> list[str]:
    """Return a text in lines of at most ``width`` columns, cut at blanks alone; lines but the first are indented.

    No line begins with a percent sign.

    >>> folded("conv1.bias … relu", 12), folded("conv1.matmul", 4)
    (['conv1.bias …', 'relu'], ['conv1.matmul'])
    """
    lines: list[str] = []
    for word in _BLANK.split(text):
        if lines and columns_of(f"{lines[-1]} {word}") <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(f"{indent}{word}" if lines else word)
    return lines


def listing_lines(columns: Sequence[Column], width: int) -> list[str]:
    """Return a table of names and what they are; columns that do not fit stand below each row, indented.

    The columns that are kept beside each other are the first ones.
    """
    kept = len(columns)
    while kept > 1 and _least_width(columns[:kept], READABLE) > width:
        kept -= 1
    head, *grid = _grid_rows(columns[:kept], width)
    lines = list(head)
    for row, beside in enumerate(grid):
        lines += beside
        for column in columns[kept:]:
            if column.shown[row]:
                text = f"{column.heading}: {column.shown[row]}" if column.heading else column.shown[row]
                lines += folded(f"{INDENT}{text}", width, INDENT * 2)
    return lines


def listed(title: str, texts: Sequence[str], width: int) -> list[str]:
    """Return texts under a title, folded with an indent; nothing if there are none."""
    if not texts:
        return []
    return ["", title, *(line for text in texts for line in folded(f" {printable(text)}", width, INDENT))]


def ends_of(names: Sequence[str], most: int) -> str:
    """Return names, of more than so many the first and the last alone.

    >>> ends_of(("conv", "relu"), 2), ends_of(("conv", "relu", "pool"), 2)
    ('conv, relu', 'conv … pool (3)')
    """
    return ", ".join(names) if len(names) <= most else f"{names[0]} … {names[-1]} ({len(names)})"


def first_of(rows: Sequence[Row], most: int, key: Callable[[Row], float]) -> list[Row]:
    """Return those of so many rows at most that come first by a key, in their own order."""
    kept = sorted(range(len(rows)), key=lambda at: key(rows[at]))[:most]
    return [rows[at] for at in sorted(kept)]


def page(lines: Sequence[str]) -> str:
    """Return lines as a text without blanks at their ends."""
    return "".join(f"{line.rstrip()}\n" for line in "\n".join(lines).rstrip().split("\n"))


def _least_width(columns: Sequence[Column], folded: int = FOLDED) -> int:
    return 1 + sum(column.least_width(folded) for column in columns) + GAP * (len(columns) - 1)


def _grid_rows(columns: Sequence[Column], width: int) -> Iterator[list[str]]:
    """Yield the lines of the headings with a rule below, then those of each row."""
    widths = _widths(columns, width)
    headings = [column.heading.split("\n") for column in columns]
    height = max(map(len, headings))
    # Short headings stand at the bottom, beside the rule.
    yield [
        *_row([[""] * (height - len(heading)) + heading for heading in headings], columns, widths),
        " " + "─" * (sum(widths) + GAP * (len(widths) - 1)),
    ]
    for cells in zip(*(column.shown for column in columns), strict=True):
        placed = zip(cells, columns, widths, strict=True)
        texts = [folded(cell, size) if column.is_text else [cell] for cell, column, size in placed]
        yield _row(texts, columns, widths)


def _widths(columns: Sequence[Column], width: int) -> list[int]:
    """Return the columns' widths: what room is left goes to the texts, from left to right."""
    widths = [column.least_width() for column in columns]
    room = width - _least_width(columns)
    for number, column in enumerate(columns):
        more = max(0, min(room, column.natural_width - widths[number]))
        widths[number] += more
        room -= more
    return widths


def _row(texts: Sequence[Sequence[str]], columns: Sequence[Column], widths: Sequence[int]) -> list[str]:
    lines = []
    for number in range(max(map(len, texts))):
        line = []
        for cell, column, size in zip(texts, columns, widths, strict=True):
            text = cell[number] if number < len(cell) else ""
            blanks = " " * (size - columns_of(text))
            line.append(text + blanks if column.is_text else blanks + text)
        lines.append(" " + (" " * GAP).join(line))
    return lines


def _stacked(title: str, columns: Sequence[Column], width: int) -> list[str]:
    lines = [*folded(title, width), ""]
    for cells in zip(*(column.shown for column in columns), strict=True):
        for column, cell in zip(columns, cells, strict=True):
            heading = " ".join(column.heading.split())
            if cell:
                lines += folded(f" {heading}: {cell}" if heading else f" {cell}", width, INDENT)
        lines.append("")
    return lines


def scaled(heading: str, values: Sequence[float], beside: float = 0.0) -> Column:
    """Write values in the unit prefix of the largest, which gets four digits; smaller ones as many decimals.

    Args:
        heading: of the column; ``{}`` stands for the prefix.
        values: of its cells.
        beside: the largest value of other columns in the same unit.
    """
    values = [0.0 if abs(value) < NO_TIME_S else value for value in values]
    largest = max(*map(abs, values), abs(beside), 0.0)
    factor, prefix = next((pair for pair in PREFIXES if largest >= pair[0]), (1.0, ""))
    decimals = max(0, DIGITS - len(str(int(largest / factor))))
    cells = []
    for value in values:
        cell = f"{value / factor:,.{decimals}f}"
        cells.append(f"{value / factor:.1g}" if value and float(cell.replace(",", "")) == 0 else cell)
    return Column(heading.format(prefix), tuple(cells))


def binary(amount: float) -> str:
    """Write bytes with a binary prefix.

    >>> binary(1023), binary(2**30)
    ('1023 B', '1.0 GiB')
    """
    scaled, prefix = _prefixed(amount, 1024, ("", "Ki", "Mi", "Gi", "Ti", "Pi"))
    return f"{scaled:.1f} {prefix}B" if prefix else f"{scaled:.0f} B"


def decimal(amount: float) -> str:
    """Write an amount with a decimal prefix.

    >>> decimal(8_030_261_248), decimal(999)
    ('8.03 G', '999')
    """
    scaled, prefix = _prefixed(amount, 1000, ("", "k", "M", "G", "T", "P", "E"))
    return f"{scaled:.2f} {prefix}" if prefix else f"{scaled:.0f}"


def _prefixed(amount: float, factor: int, prefixes: Sequence[str]) -> tuple[float, str]:
    """Return what is left of an amount with the largest prefix that leaves 1 or more, and that."""
    at = 0
    while at + 1 < len(prefixes) and amount >= factor:
        amount, at = amount / factor, at + 1
    return amount, prefixes[at]


def milliseconds(seconds: float) -> str:
    """Write a time of seconds in milliseconds.

    >>> milliseconds(0.0012345)
    '1.234'
    """
    return f"{seconds * 1e3:,.4g}"
