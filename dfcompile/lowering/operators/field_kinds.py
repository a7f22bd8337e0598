"""Kinds of fields of canonical operators: which values they hold, and how these are written as JSON."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Literal, TypeAlias, Union, cast, get_args, get_origin

from dfcompile.errors import RegistrationError


@dataclass(frozen=True, slots=True)
class AtLeast:
    """In ``Annotated[int, AtLeast(1)]`` or ``Annotated[tuple[int, ...], AtLeast(1)]``: no integer is smaller."""

    least: int


Extents: TypeAlias = Annotated[tuple[int, ...], AtLeast(1)]
Axes: TypeAlias = Annotated[tuple[int, ...], AtLeast(0)]  # counted from the front
Count: TypeAlias = Annotated[int, AtLeast(1)]
Axis: TypeAlias = Annotated[int, AtLeast(0)]  # counted from the front


def _as_it_is(value: object) -> object:
    return value


@dataclass(frozen=True, slots=True)
class FieldKind:
    """Which values a field holds, and how JSON has them.

    Attributes:
        text: names the values in errors and documents.
        holds: whether the field can have a value.
        write: gives a value that the field holds, as JSON has it.
        read: gives what JSON has as the field would have it; what fits no value of the field as it is.
    """

    text: str
    holds: Callable[[object], bool]
    write: Callable[[object], object] = _as_it_is
    read: Callable[[object], object] = _as_it_is

    def __str__(self) -> str:
        return self.text


# Of exactly these types, so that no truth value is a number.
_SCALARS: Mapping[object, tuple[tuple[type, ...], str]] = {
    bool: ((bool,), "True or False"),
    int: ((int,), "an integer"),
    float: ((int, float), "a number"),
    str: ((str,), "a text"),
}


def _scalar(hint: object, least: int | None) -> FieldKind:
    types, text = _SCALARS[hint]
    if hint is not int or least is None:
        return FieldKind(text, lambda value: type(value) in types)
    return FieldKind(f"{text} of at least {least}", lambda value: type(value) is int and value >= least)


def _member(members: type[Enum]) -> FieldKind:
    """Return the kind of a member of an enumeration, which JSON has by its name."""
    names = members.__members__
    return FieldKind(
        " or ".join(f"{members.__name__}.{name}" for name in names),
        lambda value: isinstance(value, members),
        lambda value: cast("Enum", value).name,
        lambda found: names.get(found, found) if isinstance(found, str) else found,
    )


def _items(kinds: tuple[FieldKind, ...], *, is_any_length: bool) -> FieldKind:
    """Return the kind of a tuple: of any length and all of one kind, or with a kind for each item; JSON has a list."""

    def paired(items: object, of: type[list[object] | tuple[object, ...]]) -> list[tuple[FieldKind, object]] | None:
        if type(items) is not of or not (is_any_length or len(items) == len(kinds)):
            return None
        return list(zip(kinds * len(items) if is_any_length else kinds, items, strict=True))

    def holds(value: object) -> bool:
        pairs = paired(value, tuple)
        return pairs is not None and all(kind.holds(item) for kind, item in pairs)

    def read(found: object) -> object:
        pairs = paired(found, list)
        return found if pairs is None else tuple(kind.read(item) for kind, item in pairs)

    text = f"a tuple, each item {kinds[0]}" if is_any_length else f"({', '.join(map(str, kinds))})"
    return FieldKind(text, holds, lambda value: [kind.write(item) for kind, item in paired(value, tuple) or ()], read)


def kind_of(hint: object, least: int | None = None) -> FieldKind:
    """Return the kind of field that a type annotation asks for.

    Args:
        hint: ``bool``, ``int``, ``float``, ``str``, an enumeration, a ``Literal`` of texts, a tuple of these, or one
            of them ``| None``; integers may be ``Annotated`` with `AtLeast`.
        least: of integers, from an annotation around it.

    Raises:
        RegistrationError: it is none of these, so that it could not be written and read again.
    """
    origin, arguments = get_origin(hint), get_args(hint)
    found: FieldKind | None = None
    if isinstance(hint, type) and hint in _SCALARS:
        found = _scalar(hint, least)
    elif isinstance(hint, type) and issubclass(hint, Enum):
        found = _member(hint)
    elif origin is Annotated:
        found = kind_of(arguments[0], next((each.least for each in arguments[1:] if isinstance(each, AtLeast)), least))
    elif origin is Literal and all(isinstance(word, str) for word in arguments):
        words = " or ".join(map(repr, arguments))
        found = FieldKind(words, lambda value: isinstance(value, str) and value in arguments)
    elif origin in (UnionType, Union) and len(arguments) == 2 and arguments[1] is NoneType:  # X | None
        kind = kind_of(arguments[0], least)
        found = FieldKind(f"None or {kind}", lambda value: value is None or kind.holds(value), kind.write, kind.read)
    elif origin is tuple and arguments[1:] == (...,):
        found = _items((kind_of(arguments[0], least),), is_any_length=True)
    elif origin is tuple:
        found = _items(tuple(kind_of(argument, least) for argument in arguments), is_any_length=False)
    if found is None:
        wanted = "bool, int, float, str, an enumeration, texts of a Literal, or tuples of these"
        raise RegistrationError(f"type {hint}: found against {wanted}")
    return found
