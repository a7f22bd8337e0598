"""What is said of an option once, in the record that holds it; command line, Python API and documents follow.

    @table
    class Options:
        pes: tuple[int, ...] = option("Numbers of processing elements.", metavar="P[,P…]")

A *table* is a dataclass whose fields are options. How an option is read, and what it is by default, follows from its
type where nothing else is said. An option without a default has to be given.
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

Read: TypeAlias = Callable[[str, Any], Any]  # of how the option is called, and of what a user gives for it
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
_OF_SEVERAL: Final = (Expand, Granularities, tuple, Mapping)  # types, or origins of types, of what is given repeatedly


@unique
class Group(StrEnum):
    """Under which heading the help shows an option, in the order of the help."""

    FIRST = "Most used"
    LOWERING = "Lowering"
    INPUTS = "Inputs of the model"
    SCHEDULE = "Schedules"
    MACHINE = "Machine"
    COUNTING = "How it is counted"
    OUTPUT = "Output"
    OTHER = "Other"


class Option(Struct, frozen=True):
    """What is said of one option.

    Attributes:
        help: what it is for.
        more: for documents, which show it behind the help, in Markdown.
        read: makes a value of what is given, on the command line or in Python; raises `UserError`. Else by its type.
        default: what it is if nobody gives it. Else by its type: nothing, false, or the first of the choices.
        flags: on the command line; by default the field's name with ``-`` for ``_``.
        metavar: what stands for the value in the help.
        choices: the words that are possible, if no others are; those of an enumeration follow from its type.
        complete: names that a shell proposes, or the kind of names that it looks for.
        is_repeatable: whether it may be given several times.
        is_flag: whether it has no value on the command line.
        is_argument: whether it stands on the command line without a flag.
        is_path: whether it names a file or a folder.
        is_pair: whether each value is one of the choices and a folder.
        default_text: how the help shows its default, where that is not the default itself.
        stage: whose option it is, where that stage has a field of the same name.
        group: under which heading the help shows it.
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


def option(text: str, **said: Any) -> Any:  # what a field holds is what its annotation says, as for dataclasses.field
    """Return a field of a table.

    Args:
        text: help.
        said: further attributes of `Option`.
    """
    return Option(text, **said)


# An option under each heading of the help.
first, lowering, inputs, schedules, machine, counting, output, _ = (partial(option, group=group) for group in Group)


@dataclass_transform(frozen_default=True)
def table(described: type[Table]) -> type[Table]:
    """Make a table of a class: a frozen dataclass."""
    for name, kind in inspect.get_annotations(described).items():
        said = vars(described).get(name)
        if isinstance(said, Option):
            setattr(described, name, _field(_completed(said, name, kind)))
    return dataclass(frozen=True)(described)


def _field(said: Option) -> Any:
    metadata = {_KEY: said}
    if said.default is MISSING:
        return field(metadata=metadata)
    return field(default_factory=lambda: said.default, metadata=metadata)


def _completed(said: Option, name: str, kind: Any) -> Option:
    """Return an option with what follows from the name and the type of its field."""
    others = [one for one in get_args(kind) if one is not NoneType]
    is_optional = NoneType in get_args(kind)
    if is_optional and len(others) == 1:
        kind = others[0]
    choices: tuple[Any, ...] = tuple(kind) if isinstance(kind, type) and issubclass(kind, Enum) else said.choices
    read, default = said.read, said.default
    if read is readers.as_given:
        read = readers.word(choices) if choices and not said.is_pair else _READERS.get(kind, read)
    if default is MISSING:
        by_type: Mapping[Any, object] = {bool: False, Mapping: MappingProxyType({})}
        first = choices[0] if choices else by_type.get(get_origin(kind) or kind, MISSING)
        default = None if is_optional else first
    is_path = said.is_path or kind is Path
    return replace(
        said,
        read=read,
        default=default,
        flags=said.flags or (f"--{name.replace('_', '-')}",),
        metavar="FILE" if is_path and said.metavar is None and not said.is_argument else said.metavar,
        choices=choices,
        is_repeatable=said.is_repeatable or (get_origin(kind) or kind) in _OF_SEVERAL,
        is_flag=kind is bool,
        is_path=is_path,
    )


@cache
def options_of(asked: type) -> Mapping[str, Option]:
    """Return the options of a table by the names of their fields, in their order."""
    found = {}
    for held in fields(asked):
        said = held.metadata.get(_KEY)
        if not isinstance(said, Option):
            raise InternalError(f"{asked.__name__}.{held.name}: found no option() against one")
        found[held.name] = said
    return MappingProxyType(found)


def defaults_of(asked: type) -> Mapping[str, object]:
    """Return what options of a table are that nobody gives; those that have to be given are left out."""
    return {name: said.default for name, said in options_of(asked).items() if said.default is not MISSING}


def read_options(asked: Callable[..., Table], given: Mapping[str, Any]) -> Table:
    """Return a table of what a user gives; ``None`` and an empty tuple are the default.

    Raises:
        TypeError: an option has another name, or one is missing that has to be given.
        UserError: what is given is not what the option takes.
    """
    assert isinstance(asked, type)
    known = options_of(asked)
    for name in given:
        if name not in known:
            raise TypeError(f"unexpected option {name!r}{nearest(name, known)}")
    values = {}
    for name, said in known.items():
        value = given.get(name)
        if value is not None and (value != () or said.default is MISSING):
            values[name] = said.read(name if said.is_argument else said.flags[0], value)
        elif said.default is MISSING:
            raise TypeError(f"missing option {name!r}")
    made: Table = asked(**values)
    return made


def of_stage(options: object, stage: str) -> dict[str, Any]:
    """Return the values of the options of a stage by their names."""
    asked: Any = type(options)  # which is hashable, as mypy does not see of an object's
    return {name: getattr(options, name) for name, said in options_of(asked).items() if said.stage == stage}


def _annotation(said: Option) -> Any:
    """Return the type of what a user gives for an option: one of its words, or what its reader takes."""
    if said.choices and not said.is_pair:
        return Literal[tuple(map(str, said.choices))]
    return list(inspect.signature(said.read).parameters.values())[1].annotation


def _as_a_user_gives(default: object) -> object:
    """Return a default as what its reader takes: words and plain values."""
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


def takes(asked: type) -> Callable[[Callable[..., Made]], Callable[..., Made]]:
    """Give a function that takes any named arguments the signature and the documentation that a table has."""

    def described(function: Callable[..., Made]) -> Callable[..., Made]:
        signature, defaults = inspect.signature(function), defaults_of(asked)
        own = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
        further = {name: said for name, said in options_of(asked).items() if name not in signature.parameters}
        for name, said in further.items():
            default = _as_a_user_gives(defaults.get(name, inspect.Parameter.empty))
            given = _annotation(said) if default is not None else _annotation(said) | None
            own.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=given))
        lines = "".join(f"        {name}: {said.help}\n" for name, said in further.items())
        vars(function)["__signature__"] = signature.replace(parameters=own)
        function.__doc__ = (function.__doc__ or "").replace("    Raises:", f"    Options:\n{lines}\n    Raises:", 1)
        return function

    return described
