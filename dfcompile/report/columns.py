"""The columns of a table, made from what is said of the figures of its rows."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Generic, TypeVar

from msgspec import Struct

from dfcompile.errors import InternalError
from dfcompile.report.figure import Figure, Plain
from dfcompile.report.plain_values import held_at, leaves
from dfcompile.report.text_tables import Column, scaled

Row = TypeVar("Row")

NOTHING = "-"  # in the cell of a row that has no such figure


class Derived(Struct, Generic[Row], frozen=True):
    """A column that is no figure of its own, but says several of them together.

    Attributes:
        heading: of the column, several lines.
        text: of a row.
        after: path of the figure whose column it follows, such as ``schedule.gap``; empty: comes first.
        is_text: whether a cell may be folded at blanks.
    """

    heading: str
    text: Callable[[Row], str]
    after: str = ""
    is_text: bool = False


def table_columns(
    table: str, rows: Sequence[Row], derived: Sequence[Derived[Row]] = (), largest: float = 0.0
) -> tuple[Column, ...]:
    """Return a column for each figure that says it is in a table.

    A column is left out where no row has the figure, or all of them have the value that hides it.

    Args:
        table: its name, as the figures say it.
        rows: records of one type.
        derived: further columns.
        largest: value of all columns with a prefix of their unit, where these are to have one unit.
    """
    own = {path: field.figure for path, field in leaves(type(rows[0])) if table in field.figure.tables} if rows else {}
    made = {path: _column(figure, path, rows, largest) for path, figure in own.items()}
    placed = [(".".join(path), made[path]) for path, figure in own.items() if not figure.after]
    for path, figure in own.items():
        if figure.after:
            after = figure.after if "." in figure.after else ".".join((*path[:-1], figure.after))
            _place(placed, ".".join(path), made[path], after)
    for found in derived:
        column = Column(found.heading, tuple(found.text(row) for row in rows), is_text=found.is_text)
        _place(placed, f"{found.after} {found.heading}", column, found.after)
    return tuple(column for _, column in placed if column is not None)


def _place(columns: list[tuple[str, Column | None]], key: str, column: Column | None, after: str) -> None:
    """Put a column after that of a key, or first where the key is empty.

    Raises:
        InternalError: there is no column of that key.
    """
    keys = [name for name, _ in columns]
    if after and after not in keys:
        raise InternalError(f"column {key!r}: found no column {after!r} to follow")
    position = keys.index(after) + 1 if after else 0
    while position < len(keys) and keys[position].startswith(f"{after} "):
        position += 1  # behind what was derived before
    columns.insert(position, (key, column))


def _column(figure: Figure, path: tuple[str, ...], rows: Sequence[object], largest: float) -> Column | None:
    """Return the column of a figure; none where no row has it, or all of them have the value that hides it."""
    values = [held_at(row, path) for row in rows]
    is_missing = all(held_at(row, path[:-1]) is None for row in rows)
    if is_missing or all(value == figure.hidden for value in values):
        return None
    if "{}" in figure.heading:
        numbers = [float(value) for value in values if isinstance(value, int | float | Fraction)]
        column = scaled(figure.heading, numbers, largest)
        written = iter(column.cells)
        return Column(column.heading, tuple(cell(None, figure) if value is None else next(written) for value in values))
    is_text = any(isinstance(value, str | tuple) for value in values)
    return Column(figure.heading, tuple(cell(value, figure) for value in values), is_text=is_text)


def cell(value: object, figure: Figure) -> str:
    """Return the value of a figure as tables show it."""
    words: dict[Plain, str] = dict(figure.words)
    if (value is None or isinstance(value, bool | int | float | str)) and value in words:
        return words[value]
    match value:
        case None:
            return NOTHING
        case bool():
            return "yes" if value else "no"
        case int() | float() | Fraction():
            number = value if isinstance(value, int) else float(value)
            if not isinstance(figure.cell, str):
                return figure.cell(number)
            is_share = figure.cell.endswith("%")
            return f"{100 * float(value):{figure.cell[:-1]}f}" if is_share else f"{number:{figure.cell}}"
        case tuple():
            return ", ".join(str(part) for part in value)
    return str(value)
