"""Records: immutable values with named fields, and how to change a field of one.

Records are `msgspec.Struct` classes with ``frozen=True``: they behave as frozen dataclasses do, but are made in a
twentieth of the time when a module is imported, and in a fifth of it per value. Where the fields themselves are read
(reports, operators, settings of plug-ins), or are more than `msgspec` offers, records are dataclasses.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct, structs

if TYPE_CHECKING:
    from dataclasses import replace as replace  # noqa: PLC0414  # its fields are known to type checkers
else:

    def replace(record, /, **changes):
        """Return a record with other values in some fields, as Python 3.13's ``copy.replace``."""
        change = structs.replace if isinstance(record, Struct) else dataclasses.replace
        return change(record, **changes)


Record = TypeVar("Record", bound=Struct)
Derived = TypeVar("Derived")


def once(record: Record, derive: Callable[[Record], Derived]) -> Derived:
    """Return what a function makes of a record, which is kept beside its fields (the class has ``dict=True``)."""
    key, known = f"{derive.__module__}.{derive.__qualname__}", vars(record)
    if key not in known:
        known[key] = derive(record)
    found: Derived = known[key]
    return found


def fields_of(value: object) -> Mapping[str, object] | None:
    """Return the fields of a record by name, in their order; ``None`` for what is no record."""
    if isinstance(value, Struct):
        return {name: getattr(value, name) for name in value.__struct_fields__}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return None
