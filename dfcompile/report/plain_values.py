"""The plain values of a report: what JSON holds, and every other form is made of."""

from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from fractions import Fraction
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import asdict

from dfcompile.errors import InternalError
from dfcompile.host.printable import json_text
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
        if not (field.is_optional and (value is None or value == ())):
            record[field.name] = plain(value, field.figure)
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
