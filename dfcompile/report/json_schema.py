"""The JSON Schema of a record, made from what is said of its fields."""

import re
from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Final

from dfcompile.errors import InternalError
from dfcompile.report.figure import RecordField, fields_of
from dfcompile.report.plain_values import Json

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
NAMES: Final[Mapping[type, str]] = MappingProxyType(
    {bool: "boolean", int: "integer", float: "number", Fraction: "number", str: "string", Mapping: "object"}
)
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
