"""Wrong versions of a finished report: each has another number in one field."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Generic, TypeVar

from dfcompile.report.figure import RecordField, fields_of
from dfcompile.report.figures import Report

KINDS = (bool, int, float, Fraction)
Reported = TypeVar("Reported")


@dataclass(frozen=True, slots=True)
class FieldMutant(Generic[Reported]):
    """A report with one wrong value.

    Attributes:
        field: in the schema, such as ``results[].schedule.io_bytes``.
        place: in the report, such as ``results[0].schedule.io_bytes``.
        change: what was done to the value.
        report: the whole of it.
    """

    field: str
    place: str
    change: str
    report: Reported


def numeric_fields(described: type = Report, path: str = "") -> Iterator[str]:
    """Yield the path of every field that is a number or a truth value, in the schema of a record."""
    for held in fields_of(described):
        here = path + held.name + "[]" * held.is_list
        if held.record is not None:
            yield from numeric_fields(held.record, f"{here}.")
        elif held.kind in KINDS:
            yield here


def field_mutants(report: Reported, *, every: bool = False) -> Iterator[FieldMutant[Reported]]:
    """Yield the report with each of its numbers doubled, halved, one larger and left out, one at a time.

    Args:
        report: as it leaves.
        every: whether all items of lists are changed, or the first and the last alone.
    """
    for field, place, change, changed in _changed(report, "", "", every=every):
        yield FieldMutant(field, place, change, changed)


def _changed(record: Any, field: str, place: str, *, every: bool) -> Iterator[tuple[str, str, str, Any]]:
    described: type = type(record)
    for held in fields_of(described):
        value, name = getattr(record, held.name), held.name + "[]" * held.is_list
        for inner, at, change, changed in _values(held, value, field + name, place + held.name, every=every):
            yield inner, at, change, replace(record, **{held.name: changed})


def _values(
    held: RecordField, value: Any, field: str, place: str, *, every: bool
) -> Iterator[tuple[str, str, str, Any]]:
    if not held.is_list:
        yield from _single(held, value, field, place, every=every)
        return
    chosen = range(len(value)) if every else sorted({0, len(value) - 1} & set(range(len(value))))
    for number in chosen:
        for inner, at, change, changed in _single(held, value[number], field, f"{place}[{number}]", every=every):
            yield inner, at, change, (*value[:number], changed, *value[number + 1 :])


def _single(
    held: RecordField, value: Any, field: str, place: str, *, every: bool
) -> Iterator[tuple[str, str, str, Any]]:
    if held.record is not None:
        if value is not None:
            yield from _changed(value, f"{field}.", f"{place}.", every=every)
    elif held.kind in KINDS:
        seen = [value]
        for change, changed in _numbers(held, value):
            if changed not in seen:
                seen.append(changed)
                yield field, place, change, changed


def _numbers(held: RecordField, value: Any) -> Iterator[tuple[str, Any]]:
    if value is None:
        yield "given", held.kind(1)
        return
    if isinstance(value, bool):
        yield "turned", not value
    else:
        yield "doubled", value * 2
        yield "halved", value // 2 if isinstance(value, int) else value / 2
        yield "one more", value + 1
    if held.is_nullable and not held.is_list:
        yield "left out", None
