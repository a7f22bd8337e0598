"""A report as a plain table, one row per result: what CSV holds, and what other forms can be made of."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from dfcompile.host.printable import printable
from dfcompile.report.figure import RecordField, fields_of
from dfcompile.report.plain_values import Json, held_at, leaves, plain

if TYPE_CHECKING:  # bounds and language models have rows as well, without what a model's report needs
    from dfcompile.report.design.figures import DesignReport
    from dfcompile.report.figures import Report

AnyReport: TypeAlias = "Report | DesignReport"


def report_rows(report: AnyReport) -> list[dict[str, Json]]:
    """Return a row per result, or the one of a design, all with the same names in the same order; no lists.

    The names are those of JSON, which carry the units. A name that an earlier part of the result has as well has the
    part's name before it, as in ``simulated_makespan_cycles``.
    """
    return rows_of(getattr(report, "results", [report]))


def rows_of(records: Sequence[object]) -> list[dict[str, Json]]:
    """Return a row per record of one type; a part that no record has is left out."""
    columns = [
        (name, path, field)
        for name, path, field in _named(type(records[0]))
        if any(held_at(record, path[:-1]) is not None for record in records)
    ]
    return [{name: _plain(held_at(record, path), field) for name, path, field in columns} for record in records]


def text_names(record: type) -> tuple[str, ...]:
    """Return the names of the columns of records of a type that hold texts."""
    return tuple(name for name, _, field in _named(record) if field.kind in (str, Mapping))


def rows_csv(rows: Sequence[Mapping[str, Json]], names: Sequence[str] = ()) -> str:
    """Return rows as CSV, under names or those of the first row."""
    text = io.StringIO()
    writer = csv.DictWriter(text, names or (list(rows[0]) if rows else []), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: printable(value) if isinstance(value, str) else value for name, value in row.items()})
    return text.getvalue()


def _named(record: type) -> Iterator[tuple[str, tuple[str, ...], RecordField]]:
    """Yield the name, the path and the field of each column."""
    prefixes = {field.name: field.figure.prefix or field.name for field in fields_of(record)}
    taken: set[str] = set()
    for path, field in leaves(record):
        if field.is_list or len(field.figure.choices) == 1:  # what is always the same says nothing
            continue
        name = field.figure.csv or field.name
        if name in taken:
            name = f"{prefixes[path[0]]}_{name}"
        taken.add(name)
        yield name, path, field


def _plain(value: object, field: RecordField) -> Json:
    if isinstance(value, Mapping):
        return printable(" ".join(f"{key}={name}" for key, name in value.items()))
    return printable(value) if isinstance(value, str) else plain(value, field.figure)
