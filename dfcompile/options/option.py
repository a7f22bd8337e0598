"""Options, each described once in the record that holds it; command line, Python API and documents follow.

    @table
    class Options:
        pes: tuple[int, ...] = option("Numbers of processing elements.", metavar="P[,P…]")

A *table* is a dataclass whose fields are options. The type of a field decides how its option is read and its default,
unless the option says otherwise. An option without a default is required.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from enum import Enum, StrEnum, unique
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType, NoneType
from typing import Any, Final, Literal, TypeAlias, TypeVar, dataclass_transform, get_args, get_origin

from msgspec import Struct

from dfcompile.errors import InternalError, nearest
from dfcompile.options import readers
from dfcompile.options.numbers import count, counts
from dfcompile.options.words import Expand, FixedInput, Granularities, MicroBatches
from dfcompile.records import replace

_KEY: Final = "option"

Read: TypeAlias = Callable[[str, Any], Any]  # of the option's name, for errors, and the value from the user
Table = TypeVar("Table")
Made = TypeVar("Made")

_READERS: Final[Mapping[Any, Read]] = {
    bool: readers.yes_or_no,
    int: count,
    str: readers.text,
    Path: readers.path,
    Expand: readers.expansions,
    Granularities: readers.granularities,
    MicroBatches: readers.micro_batches,
    tuple[int, ...]: counts,
    tuple[str, ...]: readers.texts,
    Mapping[str, int]: readers.dims,
    Mapping[str, tuple[int, ...]]: readers.shapes,
    Mapping[str, FixedInput]: readers.fixed_inputs,
}
_REPEATABLE: Final = (Expand, Granularities, tuple, Mapping)  # types, or origins of types, of repeatable options


@unique
class Group(StrEnum):
    """Headings of the help, in its order."""

    FIRST = "Most used"
    LOWERING = "Lowering"
    INPUTS = "Inputs of the model"
    SCHEDULE = "Schedules"
    MACHINE = "Machine"
    COUNTING = "How it is counted"
    OUTPUT = "Output"
    OTHER = "Other"


class Option(Struct, frozen=True):
    """The description of one option.

    Attributes:
        help: what it is for.
        more: Markdown that documents show after the help.
        read: converts what a user gives, on the command line or in Python; raises `UserError`. By default by type.
        default: value if none is given. By default by type: ``None``, false, empty, or the first of the choices.
        flags: on the command line; by default the field's name with ``-`` for ``_``.
        metavar: stands for the value in the help.
        choices: the only possible words, if they are few; by default the members of an enumeration type.
        complete: names that a shell proposes, or the kind of names that it looks for.
        is_repeatable: whether it may be given several times.
        is_flag: whether it has no value on the command line.
        is_argument: whether it stands on the command line without a flag.
        is_path: whether it names a file or a folder.
        is_pair: whether each value is one of the choices and a folder.
        default_text: what the help shows as its default, if not the default itself.
        stage: the stage whose options have a field of the same name.
        group: heading of the help.
    """

    help: str
    more: str = ""
    read: Read = readers.as_given
    default: object = MISSING
    flags: tuple[str, ...] = ()
    metavar: str | None = None
    choices: tuple[str, ...] = ()
    complete: tuple[str, ...] | str = ()
    is_repeatable: bool = False
    is_flag: bool = False
    is_argument: bool = False
    is_path: bool = False
    is_pair: bool = False
    default_text: str = ""
    stage: str = ""
    group: Group = Group.OTHER


def option(text: str, **further: Any) -> Any:  # fits any annotation, as dataclasses.field does
    """Describe a field of a table.

    Args:
        text: help.
        further: attributes of `Option`.
    """
    return Option(text, **further)


# A function like `option` for each heading of the help; for the last one it is `option`.
first, lowering, inputs, schedules, machine, counting, output, _ = (partial(option, group=group) for group in Group)


@dataclass_transform(frozen_default=True)
def table(plain: type[Table]) -> type[Table]:
    """Turn a class whose fields are options into a table: a frozen dataclass."""
    for name, kind in inspect.get_annotations(plain).items():
        spec = vars(plain).get(name)
        if isinstance(spec, Option):
            setattr(plain, name, _field(_completed(spec, name, kind)))
    return dataclass(frozen=True)(plain)


def _field(spec: Option) -> Any:
    metadata = {_KEY: spec}
    if spec.default is MISSING:
        return field(metadata=metadata)
    return field(default_factory=lambda: spec.default, metadata=metadata)


def _completed(spec: Option, name: str, kind: Any) -> Option:
    """Return an option, completed by the name and the type of its field."""
    members = [member for member in get_args(kind) if member is not NoneType]
    is_optional = NoneType in get_args(kind)
    if is_optional and len(members) == 1:
        kind = members[0]
    choices: tuple[Any, ...] = tuple(kind) if isinstance(kind, type) and issubclass(kind, Enum) else spec.choices
    read, default = spec.read, spec.default
    if read is readers.as_given:
        read = readers.word(choices) if choices and not spec.is_pair else _READERS.get(kind, read)
    if default is MISSING:
        by_type: Mapping[Any, object] = {bool: False, Mapping: MappingProxyType({})}
        first = choices[0] if choices else by_type.get(get_origin(kind) or kind, MISSING)
        default = None if is_optional else first
    is_path = spec.is_path or kind is Path
    return replace(
        spec,
        read=read,
        default=default,
        flags=spec.flags or (f"--{name.replace('_', '-')}",),
        metavar="FILE" if is_path and spec.metavar is None and not spec.is_argument else spec.metavar,
        choices=choices,
        is_repeatable=spec.is_repeatable or (get_origin(kind) or kind) in _REPEATABLE,
        is_flag=kind is bool,
        is_path=is_path,
    )


@cache
def options_of(kind: type) -> Mapping[str, Option]:
    """Return the options of a kind of table by the names of their fields, in their order."""
    options = {}
    for column in fields(kind):
        spec = column.metadata.get(_KEY)
        if not isinstance(spec, Option):
            raise InternalError(f"{kind.__name__}.{column.name}: found no option() against one")
        options[column.name] = spec
    return MappingProxyType(options)


def defaults_of(kind: type) -> Mapping[str, object]:
    """Return the defaults of a table's options, by name, without the required ones."""
    return {name: spec.default for name, spec in options_of(kind).items() if spec.default is not MISSING}


def read_options(kind: Callable[..., Table], given: Mapping[str, Any]) -> Table:
    """Return a table with the values that a user gives; ``None`` and an empty tuple mean the default.

    Raises:
        TypeError: an option is unknown, or a required one is missing.
        UserError: an option does not take the value given for it.
    """
    assert isinstance(kind, type)
    known = options_of(kind)
    for name in given:
        if name not in known:
            raise TypeError(f"unexpected option {name!r}{nearest(name, known)}")
    values = {}
    for name, spec in known.items():
        value = given.get(name)
        if value is not None and (value != () or spec.default is MISSING):
            values[name] = spec.read(name if spec.is_argument else spec.flags[0], value)
        elif spec.default is MISSING:
            raise TypeError(f"missing option {name!r}")
    read: Table = kind(**values)
    return read


def of_stage(options: object, stage: str) -> dict[str, Any]:
    """Return the values that a table has for the options of a stage, by name."""
    kind: Any = type(options)  # for mypy, which takes the type of an object for unhashable
    return {name: getattr(options, name) for name, spec in options_of(kind).items() if spec.stage == stage}


def _annotation(spec: Option) -> Any:
    """Return the type that the Python API shows for an option: one of its words, or what its reader takes."""
    if spec.choices and not spec.is_pair:
        return Literal[tuple(map(str, spec.choices))]
    return list(inspect.signature(spec.read).parameters.values())[1].annotation


def _as_a_user_gives(default: object) -> object:
    """Return a default as a user would give it: words and plain values, not what a reader makes of them."""
    match default:
        case StrEnum() | MicroBatches():
            return str(default)
        case Expand():
            return default.rest
        case Granularities():
            return default.own
        case Mapping():
            return dict(default)
    return default


def takes(kind: type) -> Callable[[Callable[..., Made]], Callable[..., Made]]:
    """Decorator: a function with ``**options`` shows a table's options in its signature and docstring."""

    def documented(function: Callable[..., Made]) -> Callable[..., Made]:
        signature, defaults = inspect.signature(function), defaults_of(kind)
        shown = [item for item in signature.parameters.values() if item.kind is not item.VAR_KEYWORD]
        added = {name: spec for name, spec in options_of(kind).items() if name not in signature.parameters}
        for name, spec in added.items():
            default = _as_a_user_gives(defaults.get(name, inspect.Parameter.empty))
            accepts = _annotation(spec) if default is not None else _annotation(spec) | None
            shown.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=accepts))
        lines = "".join(f"        {name}: {spec.help}\n" for name, spec in added.items())
        vars(function)["__signature__"] = signature.replace(parameters=shown)
        function.__doc__ = (function.__doc__ or "").replace("    Raises:", f"    Options:\n{lines}\n    Raises:", 1)
        return function

    return documented
