"""The columns of a table, made from the definitions of the figures in its rows."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Generic, TypeVar

from msgspec import Struct

from dfcompile.errors import InternalError
from dfcompile.report.figure import Figure, Plain
from dfcompile.report.plain_values import held_at, leaves
from dfcompile.report.text_tables import Column, scaled

Row = TypeVar("Row")

NOTHING = "-"  # the cell of a row without the figure


class Derived(Struct, Generic[Row], frozen=True):
    """A column that is no single figure, but a text made from a row, such as of several figures.

    Attributes:
        heading: of the column, of one or more lines.
        text: returns the cell of a row.
        after: path of the figure whose column it follows, such as ``schedule.gap``; empty for the first column.
        is_text: whether a cell may be folded at blanks.
    """

    heading: str
    text: Callable[[Row], str]
    after: str = ""
    is_text: bool = False


def table_columns(
    table: str, rows: Sequence[Row], derived: Sequence[Derived[Row]] = (), largest: float = 0.0
) -> tuple[Column, ...]:
    """Return the columns of a table: one for each figure whose definition names the table, and the derived ones.

    A column is left out if no row has the figure, or if all rows have the value that hides it.

    Args:
        table: its name, as in the definitions of figures.
        rows: records of one type.
        derived: further columns.
        largest: value that chooses the prefix (milli, micro …) of all units, to show other tables in the same one.
    """
    shown = leaves(type(rows[0])) if rows else ()
    figures = {path: field.figure for path, field in shown if table in field.figure.tables}
    columns = {path: _column(figure, path, rows, largest) for path, figure in figures.items()}
    placed = [(".".join(path), columns[path]) for path, figure in figures.items() if not figure.after]
    for path, figure in figures.items():
        if figure.after:
            after = figure.after if "." in figure.after else ".".join((*path[:-1], figure.after))
            _place(placed, ".".join(path), columns[path], after)
    for extra in derived:
        column = Column(extra.heading, tuple(extra.text(row) for row in rows), is_text=extra.is_text)
        _place(placed, f"{extra.after} {extra.heading}", column, extra.after)
    return tuple(column for _, column in placed if column is not None)


def _place(columns: list[tuple[str, Column | None]], key: str, column: Column | None, after: str) -> None:
    """Insert a column behind the one with the key ``after`` and those derived from it; first if it is empty.

    Raises:
        InternalError: no column has that key.
    """
    keys = [name for name, _ in columns]
    if after and after not in keys:
        raise InternalError(f"column {key!r}: found no column {after!r} to follow")
    position = keys.index(after) + 1 if after else 0
    while position < len(keys) and keys[position].startswith(f"{after} "):
        position += 1  # behind what was derived before
    columns.insert(position, (key, column))


def _column(figure: Figure, path: tuple[str, ...], rows: Sequence[object], largest: float) -> Column | None:
    """Return the column of a figure; None if no row has it, or all rows have the value that hides it."""
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
            is_percentage = figure.cell.endswith("%")
            return f"{100 * float(value):{figure.cell[:-1]}f}" if is_percentage else f"{number:{figure.cell}}"
        case tuple():
            return ", ".join(str(part) for part in value)
    return str(value)
