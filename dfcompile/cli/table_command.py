"""Commands made of tables of options: what the tables say is what the command line has."""

from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

import click

from dfcompile.cli.completion import completion_of
from dfcompile.cli.strict_command import StrictCommand
from dfcompile.options.option import Option, defaults_of, flags_of, options_of, read_options

_FILE = click.Path(path_type=Path)


def table_command(
    name: str, *tables: type, epilog: str | None = None
) -> Callable[[Callable[..., None]], click.Command]:
    """Make a command of a function that takes a value of each table.

    Args:
        name: of the command.
        tables: of its options, in the order of the help.
        epilog: below the help.
    """

    def made(function: Callable[..., None]) -> click.Command:
        def run(**given: object) -> None:
            function(*(read_options(asked, {name: given[name] for name in options_of(asked)}) for asked in tables))

        params = [_parameter(asked, name, said) for asked in tables for name, said in options_of(asked).items()]
        return StrictCommand(name, params=params, callback=run, help=function.__doc__, epilog=epilog)

    return made


def _parameter(asked: type, name: str, said: Option) -> click.Parameter:
    defaults = defaults_of(asked)
    if said.is_argument:
        file = _FILE if said.is_path else None
        count = -1 if said.is_repeatable else 1
        return click.Argument([name], type=file, required=name not in defaults, nargs=count, metavar=said.metavar)
    default = _text(defaults.get(name))
    shown: str | bool = said.default_text or (default is not None and not said.is_flag)
    attributes: dict[str, Any] = {"help": said.help, "metavar": said.metavar, "multiple": said.is_repeatable}
    if said.is_flag:
        attributes |= {"is_flag": True, "default": defaults.get(name)}
    elif default is not None and not said.default_text:
        attributes |= {"default": (default,) if said.is_repeatable else default}
    if said.complete:
        attributes["shell_complete"] = completion_of(said.complete)
    words = click.Choice(list(map(str, said.choices))) if said.choices else None
    return click.Option(
        [*flags_of(name, said), name],
        type=(words, _FILE) if said.is_pair else _FILE if said.is_path else words,
        required=name not in defaults,
        show_default=shown,
        **attributes,
    )


def _text(default: object) -> str | None:
    """Return a default as the command line has it; ``None``: nothing is said."""
    match default:
        case None | () | "" | Mapping():
            return None
        case tuple():
            return ",".join(map(str, default))
        case str() | int() | float() | Enum():
            return str(default)
    return None
