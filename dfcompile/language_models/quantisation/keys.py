"""Mappings of a configuration, read by the keys that a format has: none is passed over, at any depth."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import NoneType, UnionType
from typing import ClassVar, TypeVar, get_args, get_origin

from msgspec import Struct, structs

from dfcompile.errors import UserError, nearest

Entry = TypeVar("Entry")
_LONGEST = 60  # characters of a key or a value that an error shows
_MOST_WORDS = 8
_WORDS: Mapping[object, str] = {
    bool: "true or false",
    int: "a whole number",
    str: "a text",
    NoneType: "null",
    tuple: "a list",
    Mapping: "a mapping",
}


class Place(Struct, frozen=True):
    """Where a value stands.

    Attributes:
        where: the configuration's file.
        path: the keys that lead to the value, with dots between them.
    """

    where: str
    path: str = "quantization_config"

    def inside(self, key: object) -> "Place":
        """Return the place of a key of the mapping that stands here."""
        return Place(self.where, f"{self.path}.{_cut(str(key))}")

    def wrong(self, found: object, expected: str) -> UserError:
        """Return the error that another value is expected."""
        return UserError(f"{self.where}: key '{self.path}': found {_cut(repr(found))} against {expected}")

    def unknown(self, found: str, known: Iterable[str]) -> UserError:
        """Return the error that a word is none of those that are known; a few are shown, or the nearest one."""
        words = tuple(known)
        shown = ", ".join(words if len(words) <= _MOST_WORDS else (*words[:_MOST_WORDS], "…"))
        return self.wrong(found, f"{shown}{self.nearest(found, words)}")

    def check(self, word: str | None, known: Collection[str]) -> None:
        """Check that a word, if there is one, is known.

        Raises:
            UserError: it is not.
        """
        if word is not None and word not in known:
            raise self.unknown(word, known)

    def known(self, word: str, table: Mapping[str, Entry], spelled: str | None = None) -> Entry:
        """Return what a word stands for in a table, there perhaps under another spelling.

        Raises:
            UserError: it is not there.
        """
        entry = table.get(word if spelled is None else spelled)
        if entry is None:
            raise self.unknown(word, table)
        return entry

    @staticmethod
    def nearest(word: str, known: Iterable[str]) -> str:
        """Return the nearest word as a hint, if there is one: messages stay short, so that paths in them stay whole."""
        hint = nearest(word, known)
        return hint if "did you mean" in hint else ""

    def unmodelled(self, what: str) -> UserError:
        """Return the error that a key says what has no figures here."""
        hint = "--dtype says what each class is in, once the key is removed"
        return UserError(f"{self.where}: key '{self.path}': {what}: not modelled ({hint})")


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


class Keys(Struct, frozen=True, kw_only=True):
    """A mapping, which knows where it stands: the other fields of a record are its keys.

    Attributes:
        harmless: further keys, with blanks between them, that change no figure here: how a checkpoint was made, or is
            loaded. Their values may be anything.
        place: of the mapping.
    """

    harmless: ClassVar[str] = ""
    place: Place

    def inside(self, key: object) -> Place:
        """Return the place of a key."""
        return self.place.inside(key)

    def wrong(self, key: str, expected: str) -> UserError:
        """Return the error that another value of a key is expected."""
        return self.inside(key).wrong(getattr(self, key), expected)

    def require(self, key: str, words: Sequence[str]) -> None:
        """Check that a key has one of a few words.

        Raises:
            UserError: it has another one.
        """
        if getattr(self, key) not in words:
            raise self.wrong(key, " or ".join(words))

    def refuse(self, *keys: str, what: str) -> None:
        """Check that keys have their defaults.

        Raises:
            UserError: one has another value, of which ``what`` comes that has no figures here.
        """
        defaults = {field.name: field.default for field in structs.fields(type(self))}
        for key in keys:
            if getattr(self, key) != defaults[key]:
                raise self.inside(key).unmodelled(what)


Kind = TypeVar("Kind", bound=Keys)


def read(kind: type[Kind], found: object, place: Place) -> Kind:
    """Return a mapping as a record.

    Raises:
        UserError: a key that the record has not, one that is missing, or a value of another type; the message has its
            whole path.
    """
    if not isinstance(found, Mapping):
        raise place.wrong(found, "a mapping")
    fields = fields_of(kind)
    harmless = {word for base in kind.__mro__ if issubclass(base, Keys) for word in base.harmless.split()}
    for key in found:
        if key not in fields and key not in harmless:
            hint = place.nearest(str(key), (*fields, *harmless))
            raise UserError(f"{place.where}: unknown key '{place.inside(key).path}'{hint}")
    for name, field in fields.items():
        if field.required and name not in found:
            raise UserError(f"{place.where}: key '{place.inside(name).path}' is missing")
    values = {
        fields[key].name: value_of(fields[key].type, value, place.inside(key))
        for key, value in found.items()
        if key in fields
    }
    return kind(place=place, **values)


def fields_of(kind: type[Keys]) -> Mapping[str, structs.FieldInfo]:
    """Return the fields that are keys, by the names of the keys."""
    return {field.encode_name: field for field in structs.fields(kind) if field.name != "place"}


def value_of(hint: object, value: object, place: Place) -> object:
    """Return a value of a type; mappings become records.

    Raises:
        UserError: it is of another type.
    """
    options = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    for option in options:
        origin = get_origin(option)
        if option is object or (isinstance(option, type) and origin is None and type(value) is option):
            return value
        if isinstance(value, Mapping) and isinstance(option, type) and issubclass(option, Keys):
            return read(option, value, place)
        if isinstance(value, Mapping) and origin is Mapping:
            return {key: value_of(get_args(option)[1], one, place.inside(key)) for key, one in value.items()}
        if isinstance(value, list) and origin is tuple:
            return tuple(value_of(get_args(option)[0], one, place.inside(number)) for number, one in enumerate(value))
    words = (_WORDS.get(get_origin(option) or option, "a mapping") for option in options)
    raise place.wrong(value, " or ".join(dict.fromkeys(words)))
