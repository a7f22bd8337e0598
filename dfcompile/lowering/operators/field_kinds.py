"""Kinds of fields of canonical operators: which values they hold, and how these are written as JSON."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Literal, TypeAlias, Union, get_args, get_origin

from dfcompile.errors import RegistrationError
from dfcompile.frontend import AttributeValue


@dataclass(frozen=True, slots=True)
class AtLeast:
    """In ``Annotated[int, AtLeast(1)]`` or ``Annotated[tuple[int, ...], AtLeast(1)]``: no integer is smaller."""

    least: int


Extents: TypeAlias = Annotated[tuple[int, ...], AtLeast(1)]
Axes: TypeAlias = Annotated[tuple[int, ...], AtLeast(0)]  # counted from the front
Count: TypeAlias = Annotated[int, AtLeast(1)]
Axis: TypeAlias = Annotated[int, AtLeast(0)]  # counted from the front


class FieldKind:
    """Which values a field holds; its text names them in errors and documents."""

    __slots__ = ()

    def holds(self, value: object) -> bool:
        """Whether the field can have this value."""
        raise NotImplementedError

    def write(self, value: object) -> AttributeValue:
        """Return a value that the field holds, as JSON has it."""
        assert isinstance(value, int | float | str)
        return value

    def read(self, found: object) -> object:
        """Return what JSON has as the field would have it; what fits no value of the field as it is."""
        return found


@dataclass(frozen=True, slots=True)
class Scalar(FieldKind):
    """A truth value, an integer, a number or a text; of exactly that type, so that no truth value is a number."""

    types: tuple[type, ...]
    text: str
    least: int | None = None

    def holds(self, value: object) -> bool:
        """Whether the field can have this value."""
        if type(value) not in self.types:
            return False
        return self.least is None or (isinstance(value, int) and value >= self.least)

    def __str__(self) -> str:
        return self.text if self.least is None else f"{self.text} of at least {self.least}"


_SCALARS = {
    bool: Scalar((bool,), "True or False"),
    int: Scalar((int,), "an integer"),
    float: Scalar((int, float), "a number"),
    str: Scalar((str,), "a text"),
}


@dataclass(frozen=True, slots=True)
class Member(FieldKind):
    """A member of an enumeration, written by its name."""

    members: type[Enum]

    def holds(self, value: object) -> bool:
        """Whether the field can have this value."""
        return isinstance(value, self.members)

    def write(self, value: object) -> AttributeValue:
        """Return the name of the member."""
        assert isinstance(value, Enum)
        return value.name

    def read(self, found: object) -> object:
        """Return the member of a name."""
        return self.members.__members__.get(found, found) if isinstance(found, str) else found

    def __str__(self) -> str:
        return " or ".join(f"{self.members.__name__}.{name}" for name in self.members.__members__)


@dataclass(frozen=True, slots=True)
class Word(FieldKind):
    """One of a few texts."""

    words: tuple[str, ...]

    def holds(self, value: object) -> bool:
        """Whether the field can have this value."""
        return isinstance(value, str) and value in self.words

    def __str__(self) -> str:
        return " or ".join(map(repr, self.words))


@dataclass(frozen=True, slots=True)
class Items(FieldKind):
    """A tuple: of any length and all of one kind, or with a kind for each item."""

    kinds: tuple[FieldKind, ...]
    is_any_length: bool

    def _kinds_of(self, items: Sequence[object]) -> tuple[FieldKind, ...]:
        return self.kinds * len(items) if self.is_any_length else self.kinds

    def holds(self, value: object) -> bool:
        """Whether the field can have this value."""
        if type(value) is not tuple or len(value) != len(kinds := self._kinds_of(value)):
            return False
        return all(kind.holds(item) for kind, item in zip(kinds, value, strict=True))

    def write(self, value: object) -> AttributeValue:
        """Return the items as a list."""
        assert isinstance(value, tuple)
        return [kind.write(item) for kind, item in zip(self._kinds_of(value), value, strict=True)]

    def read(self, found: object) -> object:
        """Return a list as a tuple."""
        if not isinstance(found, list) or len(found) != len(kinds := self._kinds_of(found)):
            return found
        return tuple(kind.read(item) for kind, item in zip(kinds, found, strict=True))

    def __str__(self) -> str:
        return f"a tuple, each item {self.kinds[0]}" if self.is_any_length else f"({', '.join(map(str, self.kinds))})"


@dataclass(frozen=True, slots=True)
class Maybe(FieldKind):
    """A value or none; none is not written."""

    kind: FieldKind

    def holds(self, value: object) -> bool:
        """Whether the field can have this value."""
        return value is None or self.kind.holds(value)

    def write(self, value: object) -> AttributeValue:
        """Return a value that is there."""
        return self.kind.write(value)

    def read(self, found: object) -> object:
        """Return what JSON has as the field would have it."""
        return self.kind.read(found)

    def __str__(self) -> str:
        return f"None or {self.kind}"


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
        found = Scalar((int,), "an integer", least) if hint is int else _SCALARS[hint]
    elif isinstance(hint, type) and issubclass(hint, Enum):
        found = Member(hint)
    elif origin is Annotated:
        found = kind_of(arguments[0], next((each.least for each in arguments[1:] if isinstance(each, AtLeast)), least))
    elif origin is Literal and all(isinstance(word, str) for word in arguments):
        found = Word(arguments)
    elif origin in (UnionType, Union) and len(arguments) == 2 and arguments[1] is NoneType:  # X | None
        found = Maybe(kind_of(arguments[0], least))
    elif origin is tuple and arguments[1:] == (...,):
        found = Items((kind_of(arguments[0], least),), is_any_length=True)
    elif origin is tuple:
        found = Items(tuple(kind_of(argument, least) for argument in arguments), is_any_length=False)
    if found is None:
        wanted = "bool, int, float, str, an enumeration, texts of a Literal, or tuples of these"
        raise RegistrationError(f"type {hint}: found against {wanted}")
    return found
