"""Tables of figures as text: columns that keep their numbers whole and split where they do not fit."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Literal

from rich import box
from rich.console import Console
from rich.table import Table

PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"), (1e-12, "p"))
DIGITS = 4
FOLDED = 20
GAP = 2


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: text is folded where it does not fit, numbers are not."""

    heading: str
    cells: tuple[str, ...]
    is_text: bool = False

    @property
    def width(self) -> int:
        """Columns of the screen with the gap to the next; a text can be folded to ``FOLDED`` columns."""
        lines = [line for cell in (self.heading, *self.cells) for line in cell.split("\n")]
        widest = max(map(len, lines))
        return (min(widest, FOLDED) if self.is_text else widest) + GAP


def console_of(width: int) -> Console:
    """Return a console that collects plain text of at most ``width`` columns."""
    return Console(file=io.StringIO(), width=width, color_system=None, highlight=False, markup=False, emoji=False)


def text_of(console: Console) -> str:
    """Return what a console of `console_of` has collected."""
    assert isinstance(console.file, io.StringIO)
    return "".join(f"{line.rstrip()}\n" for line in console.file.getvalue().rstrip().split("\n"))


def print_listed(console: Console, title: str, lines: Sequence[str]) -> None:
    """Print lines under a title, folded with an indent; nothing if there are none."""
    if lines:
        console.print(f"\n{title}")
    for line in lines:
        console.print(*wrap(f" {line}", console.width, subsequent_indent="   "), sep="\n")


def print_table(console: Console, title: str, labels: Sequence[Column], columns: Sequence[Column]) -> None:
    """Print a table; columns that do not fit beside the labels follow in further tables."""
    room = console.width - sum(column.width for column in labels)
    parts: list[list[Column]] = [[]]
    for column in columns:
        if parts[-1] and sum(other.width for other in parts[-1]) + column.width > room:
            parts.append([])
        parts[-1].append(column)
    for number, part in enumerate(parts):
        console.print(_table(f"{title}, continued" if number else title, [*labels, *part]))


def _table(title: str, columns: Sequence[Column]) -> Table:
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for column in columns:
        # Numbers are never cut; texts take what room is left, over several lines if need be.
        justify: Literal["left", "right"] = "left" if column.is_text else "right"
        table.add_column(column.heading, justify=justify, no_wrap=not column.is_text, overflow="fold")
    for row in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*row)
    return table


def scaled(heading: str, values: Sequence[float]) -> Column:
    """Write values in the unit prefix of the largest, which gets four digits; smaller ones as many decimals."""
    largest = max(map(abs, values))
    factor, prefix = next((pair for pair in PREFIXES if largest >= pair[0]), (1.0, ""))
    decimals = max(0, DIGITS - len(str(int(largest / factor))))
    cells = []
    for value in values:
        cell = f"{value / factor:,.{decimals}f}"
        cells.append(f"{value / factor:.1g}" if value and float(cell.replace(",", "")) == 0 else cell)
    return Column(heading.format(prefix), tuple(cells))
