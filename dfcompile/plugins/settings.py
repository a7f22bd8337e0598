"""Settings of a plug-in: the fields of a frozen dataclass, or the keyword-only parameters of a function; passes."""

import dataclasses
import inspect
import math
import re
import typing
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Self, TypeAlias

from msgspec import Struct, field

from dfcompile.errors import RegistrationError, UserError, nearest
from dfcompile.plugins.kind import name_of
from dfcompile.records import replace

SettingValue = int | bool | str | float

EXPECTED: Mapping[type, str] = {int: "an integer", bool: "true or false", str: "a text", float: "a number"}
_CALL = re.compile(r"(?P<name>[^{}]*)(?:\{(?P<settings>[^{}]*)\})?")


class Setting(Struct, frozen=True):
    """A named value that the user may give, as in ``fuse{max=8}``.

    Attributes:
        name: as the user writes it; ``-`` stands for ``_``.
        type: ``int``, ``bool``, ``str`` or ``float``.
        default: what holds if it is not given; ``None``: it has to be given.
    """

    name: str
    type: type[SettingValue]
    default: SettingValue | None

    def __str__(self) -> str:
        return f"{self.name}={'…' if self.default is None else written(self.default)}"

    def value(self, text: str, where: str) -> SettingValue:
        """Return the value that a text stands for.

        Raises:
            UserError: it stands for none of this type.
        """
        found = _read(self.type, text.strip())
        if found is None:
            raise UserError(f"{where}: option {self.name!r}: found {text.strip()!r} against {EXPECTED[self.type]}")
        return found


class Call(Struct, frozen=True):
    """A plug-in that the user names with settings.

    Attributes:
        name: of the plug-in.
        settings: texts by name, as given.
    """

    name: str
    settings: Mapping[str, str]


def written(value: SettingValue) -> str:
    """Return a value as the user writes it.

    >>> written(True), written(8), written("a")
    ('true', '8', 'a')
    """
    return str(value).lower() if isinstance(value, bool) else str(value)


def parse_call(text: str, where: str) -> Call:
    """Read a name with settings, such as ``fuse{max=8}``.

    Args:
        text: as given.
        where: it was given, for errors.

    Raises:
        UserError: another form, or a setting twice.

    >>> parse_call("fuse{max=8, deep=true}", "--passes")
    Call(name='fuse', settings={'max': '8', 'deep': 'true'})
    """
    match = _CALL.fullmatch(text.strip())
    if match is None or not match["name"].strip():
        raise UserError(f"{where}: found {text.strip()!r} against NAME or NAME{{OPTION=VALUE,…}}")
    name, settings = match["name"].strip(), dict[str, str]()
    for part in (match["settings"] or "").split(",") if (match["settings"] or "").strip() else ():
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            raise UserError(f"{where} {name}: found {part.strip()!r} against OPTION=VALUE")
        if key.strip() in settings:
            raise UserError(f"{where} {name}: option {key.strip()!r} is given twice")
        settings[key.strip()] = value.strip()
    return Call(name, settings)


def values_of(call: Call, settings: tuple[Setting, ...], where: str) -> dict[str, SettingValue]:
    """Return the values that a call gives, by the names that Python has for them.

    Raises:
        UserError: a setting that does not exist, that is of another type, or that is missing.
    """
    known = {setting.name: setting for setting in settings}
    place = f"{where} {call.name}"
    for name in call.settings:
        if name not in known:
            hint = nearest(name, known) or " (it has none)"
            raise UserError(f"{place}: no option {name!r}{hint}")
    for name, setting in known.items():
        if setting.default is None and name not in call.settings:
            raise UserError(f"{place}: option {name!r} is missing ({name}={EXPECTED[setting.type]})")
    return {name.replace("-", "_"): known[name].value(text, place) for name, text in call.settings.items()}


def call_with(part: Callable[..., object], value: object, settings: Mapping[str, SettingValue]) -> object:
    """Call a function with a value and settings, or an instance of a dataclass, made with the settings, with it."""
    if isinstance(part, type):
        made: Callable[[object], object] = part(**settings)
        return made(value)
    return part(value, **settings)


def settings_of(part: Callable[..., object], what: str) -> tuple[Setting, ...]:
    """Return the settings of a dataclass (its fields) or a function (its keyword-only parameters).

    Raises:
        RegistrationError: one is of another type than ``int``, ``bool``, ``str`` and ``float``.
    """
    declared = _fields(part) if dataclasses.is_dataclass(part) else _keywords(part)
    found = []
    for name, type_, default in declared:
        if type_ not in EXPECTED:
            shown = getattr(type_, "__name__", str(type_))
            raise RegistrationError(f"{what}: option {name!r}: type {shown} against int, bool, str or float")
        if default is not None and not isinstance(default, type_ if type_ is not float else int | float):
            raise RegistrationError(f"{what}: option {name!r}: default {default!r} against {EXPECTED[type_]}")
        found.append(Setting(name.replace("_", "-"), type_, default))
    return tuple(found)


Declared = tuple[str, "type[SettingValue]", "SettingValue | None"]


def _fields(part: Callable[..., object]) -> Iterator[Declared]:
    assert isinstance(part, type)
    types = typing.get_type_hints(part)
    for own in dataclasses.fields(part):
        yield own.name, types[own.name], None if own.default is dataclasses.MISSING else own.default


def _keywords(part: Callable[..., object]) -> Iterator[Declared]:
    for name, parameter in inspect.signature(part, eval_str=True).parameters.items():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            default = None if parameter.default is inspect.Parameter.empty else parameter.default
            yield name, parameter.annotation, default


def _read(type_: type[SettingValue], text: str) -> SettingValue | None:
    if type_ is str:
        return text
    if type_ is bool:
        return {"true": True, "false": False}.get(text)
    if type_ is int:
        return int(text) if re.fullmatch(r"[+-]?[0-9]{1,18}", text) else None
    with suppress(ValueError):
        if math.isfinite(number := float(text)):
            return number
    return None


Rewrite: TypeAlias = Callable[..., object]


class Pass(Struct, frozen=True):
    """A named rewrite; a value, found by the collector.

    Attributes:
        name: as the user writes it in ``--passes``.
        rewrite: the function or frozen dataclass that was decorated; the function, or an instance of the class, takes
            what is rewritten and returns the same kind of thing: its argument itself if nothing changed.
        source: citation key of where it comes from.
        module: where it is defined.
        settings: options that the user may give.
        values: of the options that are given, by the names that Python has for them.
    """

    name: str
    rewrite: Rewrite
    source: str
    module: str
    settings: tuple[Setting, ...] = ()
    values: Mapping[str, SettingValue] = field(default_factory=lambda: MappingProxyType({}))

    def __str__(self) -> str:
        return self.name

    @property
    def summary(self) -> str:
        """First line of the docstring."""
        return (self.rewrite.__doc__ or "").strip().partition("\n")[0]

    @property
    def origin(self) -> str:
        """Module and name of the function, such as ``mylab.memory_only.memory_only``."""
        return f"{self.module}.{name_of(self.rewrite)}"

    def given(self, call: Call, where: str) -> Self:
        """Return the pass with the options of a call.

        Raises:
            UserError: an option does not exist, is of another type, or is missing.
        """
        return replace(self, values=MappingProxyType(values_of(call, self.settings, where)))
