"""Fills a record of the report from the values that have its figures, so that a figure is said in its record alone."""

from dataclasses import MISSING
from enum import Enum
from operator import attrgetter
from typing import Any, TypeVar, cast

from dfcompile.errors import InternalError
from dfcompile.report.figure import RecordField, fields_of

RecordT = TypeVar("RecordT")
NS_PER_S = 1e9
_NONE = object()


def filled(described: type[RecordT], *sources: object, **given: object) -> RecordT:
    """Return a record.

    A field is the attribute of its name, or of the name that its figure has in `Figure.of`; one in seconds (``time_s``)
    may be one in nanoseconds (``time_ns``). Records within it are filled from what that attribute holds.

    Args:
        described: the record.
        sources: that have its figures; of several with one of them the first.
        given: figures that are made of something else.

    Raises:
        InternalError: nothing has a figure that has no default.
    """
    values = dict(given)
    for field in fields_of(cast("Any", described)):
        if field.name not in values:
            found = next(
                (found for found in (_found(field, source) for source in sources) if found is not _NONE), _NONE
            )
            if found is not _NONE:
                values[field.name] = found
            elif field.default is MISSING:
                kinds = ", ".join(type(source).__name__ for source in sources)
                raise InternalError(f"{described.__name__}.{field.name}: found in none of {kinds}")
    return described(**values)


def _found(field: RecordField, source: object) -> object:
    name = field.figure.of or field.name
    found = _attribute(source, name)
    if found is _NONE and name.endswith("_s"):
        nanoseconds = _attribute(source, f"{name.removesuffix('_s')}_ns")
        return nanoseconds / NS_PER_S if isinstance(nanoseconds, int | float) else _NONE
    if found is None or found is _NONE:
        return found
    if field.record is None:
        return found.value if isinstance(found, Enum) else found
    if not field.is_list:
        return filled(field.record, found)
    assert isinstance(found, tuple)
    return tuple(filled(field.record, each) for each in found)


def _attribute(source: object, name: str) -> object:
    try:
        return attrgetter(name)(source)
    except AttributeError:
        return _NONE
