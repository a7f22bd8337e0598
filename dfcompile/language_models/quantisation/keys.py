"""Mappings of a configuration, read by the keys that a format has: none is passed over, at any depth.

The fields of a record are the keys of a mapping. A field of type ``object`` is a key that changes no figure here: how a
checkpoint was made, or is loaded.
"""

from collections.abc import Mapping
from types import NoneType, UnionType
from typing import TypeVar, get_args, get_origin

from msgspec import Struct, structs

from dfcompile.errors import UserError
from dfcompile.language_models.quantisation.place import Place

Keys = TypeVar("Keys", bound=Struct)
_WORDS: Mapping[object, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    NoneType: "null",
    tuple: "a list",
    Mapping: "a mapping",
}


def read(kind: type[Keys], found: object, place: Place) -> Keys:
    """Return a mapping as a record.

    Raises:
        UserError: a key that the record has not, one that is missing, or a value of another type; the message has its
            whole path.
    """
    if not isinstance(found, Mapping):
        raise place.wrong(found, "a mapping")
    fields = {field.encode_name: field for field in structs.fields(kind)}
    for key in found:
        if key not in fields:
            hint = place.nearest(str(key), fields)
            raise UserError(f"{place.where}: unknown key '{place.inside(key).path}'{hint}")
    for name, field in fields.items():
        if field.required and name not in found:
            raise UserError(f"{place.where}: key '{place.inside(name).path}' is missing")
    return kind(
        **{fields[key].name: _value(fields[key].type, value, place.inside(key)) for key, value in found.items()}
    )


def _value(hint: object, value: object, place: Place) -> object:
    options = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    for option in options:
        origin = get_origin(option)
        if option is object or (isinstance(option, type) and origin is None and type(value) is option):
            return value
        if option is float and type(value) is int:
            return float(value)
        if isinstance(value, Mapping) and isinstance(option, type) and issubclass(option, Struct):
            return read(option, value, place)
        if isinstance(value, Mapping) and origin is Mapping:
            return {key: _value(get_args(option)[1], one, place.inside(key)) for key, one in value.items()}
        if isinstance(value, list) and origin is tuple:
            return tuple(_value(get_args(option)[0], one, place.inside(number)) for number, one in enumerate(value))
    raise place.wrong(value, " or ".join(dict.fromkeys(map(_word, options))))


def _word(option: object) -> str:
    return _WORDS.get(get_origin(option) or option, "a mapping")
