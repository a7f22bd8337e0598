"""What is said of an option once, in the record that holds it; command line, Python API and documents follow.

    @table
    class Options:
        pes: tuple[int, ...] = option(counts, "Numbers of processing elements.", metavar="P[,P…]")

A *table* is a dataclass whose fields are options. An option without a default has to be given.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from types import MappingProxyType
from typing import Any, Final, TypeAlias, TypeVar, dataclass_transform

from msgspec import Struct

from dfcompile.errors import InternalError, nearest

_KEY: Final = "option"

Read: TypeAlias = Callable[[str, Any], Any]  # of how the option is called, and of what a user gives for it
Table = TypeVar("Table")
Made = TypeVar("Made")


class Option(Struct, frozen=True):
    """What is said of one option.

    Attributes:
        read: makes a value of what is given, on the command line or in Python; raises `UserError`.
        help: what it is for.
        more: for documents, which show it behind the help, in Markdown.
        flags: on the command line; empty: the field's name with ``-`` for ``_``.
        metavar: what stands for the value in the help.
        choices: the words that are possible, if no others are.
        complete: names that a shell proposes, or the kind of names that it looks for.
        is_repeatable: whether it may be given several times.
        is_flag: whether it has no value on the command line.
        is_argument: whether it stands on the command line without a flag.
        is_path: whether it names a file or a folder.
        is_pair: whether each value is one of the choices and a folder.
        default_text: how the help shows its default, where that is not the default itself.
        stage: whose option it is, where that stage has a field of the same name.
    """

    read: Read
    help: str
    more: str = ""
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


def option(
    read: Read, text: str = "", *, default: object = MISSING, make: Callable[[], object] | None = None, **said: Any
) -> Any:  # what a field holds is what its annotation says, as for dataclasses.field
    """Return a field of a table.

    Args:
        read: makes a value of what is given.
        text: help.
        default: without it, the option has to be given.
        make: gives the default, where that may be changed.
        said: further attributes of `Option`.
    """
    metadata = {_KEY: Option(read, text, **said)}
    return field(default_factory=make, metadata=metadata) if make else field(default=default, metadata=metadata)


@dataclass_transform(frozen_default=True, field_specifiers=(option,))
def table(described: type[Table]) -> type[Table]:
    """Make a table of a class: a frozen dataclass."""
    return dataclass(frozen=True)(described)


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


@cache
def defaults_of(asked: type) -> Mapping[str, object]:
    """Return what options of a table are that nobody gives; those that have to be given are left out."""
    return MappingProxyType(
        {
            held.name: held.default if held.default_factory is MISSING else held.default_factory()
            for held in fields(asked)
            if held.default is not MISSING or held.default_factory is not MISSING
        }
    )


def flags_of(name: str, said: Option) -> tuple[str, ...]:
    """Return how an option is called on the command line."""
    return said.flags or (f"--{name.replace('_', '-')}",)


def read_options(asked: Callable[..., Table], given: Mapping[str, Any]) -> Table:
    """Return a table of what a user gives; ``None`` and an empty tuple are the default.

    Raises:
        TypeError: an option has another name, or one is missing that has to be given.
        UserError: what is given is not what the option takes.
    """
    assert isinstance(asked, type)
    known, defaults = options_of(asked), defaults_of(asked)
    for name in given:
        if name not in known:
            raise TypeError(f"unexpected option {name!r}{nearest(name, known)}")
    values = {}
    for name, said in known.items():
        value = given.get(name)
        if value is not None and (value != () or name not in defaults):
            values[name] = said.read(name if said.is_argument else flags_of(name, said)[0], value)
        elif name not in defaults:
            raise TypeError(f"missing option {name!r}")
    made: Table = asked(**values)
    return made


def of_stage(options: object, stage: str) -> dict[str, Any]:
    """Return the values of the options of a stage by their names."""
    asked: Any = type(options)  # which is hashable, as mypy does not see of an object's
    return {name: getattr(options, name) for name, said in options_of(asked).items() if said.stage == stage}


def takes(*tables: type) -> Callable[[Callable[..., Made]], Callable[..., Made]]:
    """Give a function that takes any named arguments the signature and the documentation that tables have."""

    def described(function: Callable[..., Made]) -> Callable[..., Made]:
        signature = inspect.signature(function)
        own = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
        lines = []
        for asked in tables:
            defaults = defaults_of(asked)
            for name, said in options_of(asked).items():
                if name not in signature.parameters:
                    default = defaults.get(name, inspect.Parameter.empty)
                    own.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default))
                    lines.append(f"        {name}: {said.help}\n")
        vars(function)["__signature__"] = signature.replace(parameters=own)
        function.__doc__ = (function.__doc__ or "").replace(
            "    Raises:", f"    Options:\n{''.join(lines)}\n    Raises:", 1
        )
        return function

    return described
