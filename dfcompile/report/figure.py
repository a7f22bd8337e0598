"""What is said of a figure once, in the dataclass that holds it; JSON, schema, CSV, tables and documents follow.

    @record("schedule")
    class ScheduleSummary:
        makespan_cycles: int = figure("until the last task ends", heading="makespan")

A *record* is a dataclass all of whose fields say what they are; they hold figures or further records. A field with the
default ``None`` or ``()`` is optional: JSON leaves it out where it is that.

`filled` makes a record of the values that have its figures.
"""

import typing
from collections.abc import Callable, Iterator
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass, replace
from enum import Enum
from functools import cache
from operator import attrgetter
from types import MappingProxyType, NoneType, SimpleNamespace, UnionType
from typing import Any, Final, TypeAlias, TypeVar, Union, cast

from dfcompile.errors import InternalError

_KEY: Final = "figure"
_TABLE: Final = "__table__"
_UNITS: Final = MappingProxyType(  # by the last word of a name
    {"cycles": "cycles", "cycle": "cycles", "s": "s", "bytes": "bytes", "elements": "elements", "flop": "FLOP"}
    | {"usd": "USD", "w": "W", "j": "J"}
)

Described = TypeVar("Described")
Plain: TypeAlias = "bool | int | float | str | None"


NEVER: Final = object()  # a value that no figure has


@dataclass(frozen=True, slots=True)
class Figure:
    """What is said of one figure.

    Attributes:
        meaning: for documents and the JSON Schema; code stands between backticks.
        unit: such as ``cycles``; by default as the name of the field says, none for a ratio or a text.
        heading: of its column in tables, several lines; ``{}`` stands for the prefix of its unit, as in ``{}s``.
        tables: that have a column for it; with a heading by default that of its record.
        after: field of the same record that its column follows; by default columns stand as the fields do.
        cell: format of a number in tables, as ``format`` has it, with ``%`` at the end it is multiplied by 100; or what
            writes it.
        words: pairs of a value and what tables show instead of it.
        hidden: the column is left out where all rows have this value; by default never.
        csv: name in CSV, where it is not the field's.
        prefix: of a record: comes before its names in CSV that were taken already; by default the name of the field.
        choices: the texts that are possible.
        least: of a number, or the length of a list; ``None``: no limit.
        decimals: that are kept in JSON; ``None``: as many as the one rule for all figures gives.
        of: what it is called where it comes from, if otherwise; or what makes it of the other figures of its record,
            such as a ratio of two of them. See `filled`.
        is_spread: what it holds, a record or a mapping, stands in JSON among the fields of its own record.
    """

    meaning: str
    unit: str = ""
    heading: str = ""
    tables: tuple[str, ...] = ()
    after: str = ""
    cell: str | Callable[[float], str] = ","
    words: tuple[tuple[Plain, str], ...] = ()
    hidden: object = NEVER
    csv: str = ""
    prefix: str = ""
    choices: tuple[str, ...] = ()
    least: int | None = 0
    decimals: int | None = None
    of: str | Callable[[Any], object] = ""
    is_spread: bool = False


def figure(
    meaning: str, *, table: str | tuple[str, ...] = (), default: object = MISSING, init: bool = True, **said: Any
) -> Any:  # what a field holds is what its annotation says, as for dataclasses.field
    """Return a field of a record.

    Args:
        meaning: as of `Figure`.
        table: that has a column for it, or several.
        default: as of ``dataclasses.field``.
        init: likewise.
        said: further attributes of `Figure`.
    """
    tables = (table,) if isinstance(table, str) else table
    return field(default=default, init=init, metadata={_KEY: Figure(meaning, tables=tables, **said)})


@typing.dataclass_transform(frozen_default=True, field_specifiers=(figure,))
def record(table: str = "") -> Callable[[type[Described]], type[Described]]:
    """Make a record of a class: a frozen dataclass with slots.

    Args:
        table: that has a column for each of its figures with a heading, unless the figure names others.
    """

    def described(fields: type[Described]) -> type[Described]:
        setattr(fields, _TABLE, table)
        return dataclass(frozen=True, slots=True)(fields)

    return described


@dataclass(frozen=True, slots=True)
class RecordField:
    """A field of a record.

    Attributes:
        name: of the field, in JSON as well.
        kind: its type: ``int``, ``str``, ``float``, a record, …; of a list that of its items.
        is_list: whether it is a tuple of them.
        is_nullable: whether it may be ``None``.
        figure: what is said of it.
        default: ``MISSING`` if it has none.
    """

    name: str
    kind: type
    is_list: bool
    is_nullable: bool
    figure: Figure
    default: object

    @property
    def record(self) -> type | None:
        """The record that it holds, or a list of; ``None``: it holds plain values."""
        return self.kind if is_dataclass(self.kind) else None

    @property
    def part(self) -> type | None:
        """The record that it holds; ``None``: it holds plain values or a list."""
        return None if self.is_list else self.record

    @property
    def is_optional(self) -> bool:
        """Whether JSON leaves it out where it is ``None`` or empty."""
        return self.default in (None, ())


@cache
def fields_of(described: type) -> tuple[RecordField, ...]:
    """Return the fields of a record, in their order.

    Raises:
        InternalError: a field of the record says nothing of itself, or it has a type that reports do not have.
    """
    hints = typing.get_type_hints(described)
    assert is_dataclass(described)
    return tuple(_field(described, held, hints[held.name]) for held in fields(described))


def _field(described: type, held: Field[object], hint: object) -> RecordField:
    said = held.metadata.get(_KEY)
    if not isinstance(said, Figure):
        raise InternalError(f"{described.__name__}.{held.name}: found no figure() against one")
    *rest, last = held.name.split("_")
    if not said.unit and "per" not in rest:
        said = replace(said, unit=_UNITS.get(last, ""))
    if said.heading and not said.tables and getattr(described, _TABLE, ""):
        said = replace(said, tables=(getattr(described, _TABLE),))
    is_list = is_nullable = False
    if typing.get_origin(hint) in (Union, UnionType):
        (hint,) = (part for part in typing.get_args(hint) if part is not NoneType)
        is_nullable = True
    if typing.get_origin(hint) is tuple:
        hint, others = typing.get_args(hint)
        is_list = others is Ellipsis
    kind = typing.get_origin(hint) or hint
    if not isinstance(kind, type):
        raise InternalError(f"figure {held.name!r}: found {hint} against a type of its own")
    return RecordField(held.name, kind, is_list, is_nullable, said, held.default)


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
    derived = []
    for wanted in fields_of(cast("Any", described)):
        if wanted.name in values:
            continue
        if callable(wanted.figure.of):
            derived.append((wanted.name, wanted.figure.of))
            continue
        found = next(filter(lambda value: value is not _NONE, (_found(wanted, source) for source in sources)), _NONE)
        if found is not _NONE:
            values[wanted.name] = found
        elif wanted.default is MISSING:
            kinds = ", ".join(type(source).__name__ for source in sources)
            raise InternalError(f"{described.__name__}.{wanted.name}: found in none of {kinds}")
    others = SimpleNamespace(**values)
    return described(**values, **{name: made(others) for name, made in derived})


def derived_figures(value: object, where: str) -> Iterator[tuple[str, object, object]]:
    """Yield path, value, and value made anew of each figure that is made of others, in a record and all within it."""
    for wanted in fields_of(cast("Any", type(value))):
        held, path = getattr(value, wanted.name), f"{where}.{wanted.name}"
        if callable(wanted.figure.of):
            yield path, held, wanted.figure.of(value)
        elif wanted.record is not None and held is not None:
            parts = [(f"{path}[{at}]", part) for at, part in enumerate(held)] if wanted.is_list else [(path, held)]
            for name, part in parts:
                yield from derived_figures(part, name)


def _found(field: RecordField, source: object) -> object:
    name = field.figure.of if isinstance(field.figure.of, str) and field.figure.of else field.name
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
