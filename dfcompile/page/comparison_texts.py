"""A comparison for a terminal, as JSON and as CSV."""

from collections.abc import Sequence
from typing import Final

from dfcompile.errors import UserError
from dfcompile.host.printable import json_text, printable
from dfcompile.page.comparison import Change, Comparison, Leaf
from dfcompile.report.plain_values import Json
from dfcompile.report.rows import rows_csv
from dfcompile.report.text_tables import Column, Table, folded, page

FORMATS: Final = ("table", "json", "csv")
MOST_ROWS: Final = 40  # of the table; the other forms have all
_NAMES: Final = ("report", "where", "figure", "base", "value", "change")


def comparison_text(comparison: Comparison, form: str, width: int) -> str:
    """Return a comparison in one of the `FORMATS`.

    Raises:
        UserError: there is no such form.
    """
    match form:
        case "json":
            return json_text(comparison.record(), indent=2) + "\n"
        case "csv":
            return rows_csv(comparison_rows(comparison), _NAMES)
        case "table":
            return _table(comparison, width)
    raise UserError(f"--format {form!r}: unknown for comparisons (one of {', '.join(FORMATS)})")


def comparison_rows(comparison: Comparison) -> list[dict[str, Json]]:
    """Return a row per change."""
    return [{name: getattr(change, name) for name in _NAMES} for change in comparison.changes]


def _table(comparison: Comparison, width: int) -> str:
    changes = comparison.changes
    if not changes:
        return page(folded(f"no difference: all {comparison.figures:,} figures are the same", width))
    shown = sorted(changes, key=_weight)[:MOST_ROWS]
    several = len(comparison.names) > 2
    labels = (Column("where", tuple(change.where or "-" for change in shown), is_text=True),)
    columns = (
        *([Column("report", tuple(change.report for change in shown), is_text=True)] if several else []),
        Column("figure", tuple(change.figure for change in shown), is_text=True),
        Column("before", tuple(_cell(change.base) for change in shown), is_text=_has_texts(shown)),
        Column("after", tuple(_cell(change.value) for change in shown), is_text=_has_texts(shown)),
        Column("change\n%", tuple("-" if one.change is None else f"{100 * one.change:+.2f}" for one in shown)),
    )
    lines = Table(f"against {comparison.names[0]}, results and largest changes first", labels, columns).lines(width)
    rest = len(changes) - len(shown)
    told = f"{len(changes):,} differences among {comparison.figures:,} figures"
    told += f"; {rest:,} smaller ones are left out (--format csv, json or --html has them)" if rest else ""
    return page([*lines, *folded(told, width)])


def _weight(change: Change) -> tuple[bool, bool, float]:
    """Order changes: what one asks for first, then by their share, then those that have none."""
    return not change.is_headline, change.change is None, -abs(change.change or 0.0)


def _has_texts(changes: Sequence[Change]) -> bool:
    return any(isinstance(value, str) for change in changes for value in (change.base, change.value))


def _cell(value: Leaf) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.6g}"
    return f"{value:,}" if isinstance(value, int) else printable(value)
