"""The plain values of a report: what JSON holds, by which schema; every other form is made of them.

As a plain table, one row per result, they are what CSV holds.
"""

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from fractions import Fraction
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import asdict

from dfcompile.errors import InternalError
from dfcompile.host.printable import json_text, printable
from dfcompile.report.figure import Figure, RecordField, fields_of
from dfcompile.report.text_tables import NO_TIME_S

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

SIGNIFICANT_DIGITS = 12  # of every number that is no integer: more would be noise of the order of summation


def to_json(report: object) -> str:
    """Return a report as JSON text: the same bytes for the same input, but for ``solver_s``."""
    return json_text(to_record(report), indent=2) + "\n"


def to_record(report: object) -> dict[str, Json]:
    """Return a record, such as a report, as the plain values of its JSON contract."""
    record: dict[str, Json] = {}
    kind: type = type(report)
    for field in fields_of(kind):
        value = getattr(report, field.name)
        if field.is_optional and (value is None or value == ()):
            continue
        held = plain(value, field.figure)
        record |= held if field.figure.is_spread and isinstance(held, dict) else {field.name: held}
    return record


def plain(value: object, figure: Figure) -> Json:
    """Return the value of a figure as JSON has it.

    Raises:
        InternalError: it is of a type that reports do not have.
    """
    match value:
        case None | bool() | int() | str():
            return value
        case float() if figure.unit == "s" and abs(value) < NO_TIME_S:
            return 0
        case float() | Fraction():
            return rounded(value) if figure.decimals is None else round(float(value), figure.decimals)
        case tuple():
            return [plain(part, figure) for part in value]
        case Mapping():
            return {str(key): plain(part, figure) for key, part in value.items()}
    if is_dataclass(value):
        return to_record(value)
    raise InternalError(f"report: found a {type(value).__name__} against a value that JSON has")


def plain_fields(value: Struct, without: str = "") -> dict[str, Json]:
    """Return the fields of a value that holds texts and numbers alone, but one, as JSON has them."""
    fields = {name: held for name, held in asdict(value).items() if name != without}
    return {name: rounded(held) if isinstance(held, float) else held for name, held in fields.items()}


def rounded(value: float | Fraction) -> float | int:
    """Return a number with 12 significant digits, as an integer if it is one: the one rule for all figures.

    >>> rounded(Fraction(1, 3)), rounded(0.1 + 0.2), rounded(4.0)
    (0.333333333333, 0.3, 4)
    """
    if isinstance(value, int):
        return value
    short = float(f"{float(value):.{SIGNIFICANT_DIGITS}g}")
    return int(short) if short.is_integer() and abs(short) < 2**53 else short


def leaves(record: type, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], RecordField]]:
    """Yield the plain fields of a record and of the records that it holds, with the names that lead to them."""
    for field in fields_of(record):
        if field.part is not None:
            yield from leaves(field.part, (*path, field.name))
        else:
            yield (*path, field.name), field


def held_at(report: object, path: tuple[str, ...]) -> object:
    """Return what stands at the end of a path of names; ``None`` where a record on the way is missing."""
    value = report
    for name in path:
        if value is None:
            return None
        value = getattr(value, name)
    return value


DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
NAMES: Final[Mapping[type, str]] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    Fraction: "number",
    str: "string",
    Mapping: "object",
}
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


def schema_of(report: type, title: str) -> dict[str, Json]:
    """Return the JSON Schema of a report."""
    return {"$schema": DIALECT, "title": title, **_object(report)}


def _object(record: type) -> dict[str, Json]:
    fields = fields_of(record)
    return {
        "type": "object",
        "properties": {field.name: _property(field) for field in fields},
        "required": [field.name for field in fields if not field.is_optional],
        "additionalProperties": False,
    }


def _property(field: RecordField) -> dict[str, Json]:
    described: dict[str, Json] = {"description": described_by(field.figure.meaning)}
    if not field.is_list:
        return {**_value(field), **described}
    least = field.figure.least if field.kind not in (int, float) else None
    return {"type": "array", "items": _value(field), **({"minItems": least} if least else {}), **described}


def _value(field: RecordField) -> dict[str, Json]:
    if field.record is not None:
        return _object(field.record)
    choices = field.figure.choices
    if choices:
        return {"const": choices[0]} if len(choices) == 1 else {"enum": list(choices)}
    if field.kind not in NAMES:
        raise InternalError(f"figure {field.name!r}: found {field.kind.__name__} against a type that JSON has")
    name = NAMES[field.kind]
    schema: dict[str, Json] = {"type": [name, "null"] if field.is_nullable and not field.is_optional else name}
    if field.kind is Mapping:
        schema["additionalProperties"] = {"type": "string"}
    if name in ("integer", "number") and field.figure.least is not None:
        schema["minimum"] = field.figure.least
    return schema


def described_by(meaning: str) -> str:
    """Return a meaning without the marks of documents.

    >>> described_by("`time_s` as the [reference](command-line.md) has it")
    'time_s as the reference has it'
    """
    return LINK.sub(r"\1", meaning).replace("`", "")


def report_rows(report: object) -> list[dict[str, Json]]:
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
