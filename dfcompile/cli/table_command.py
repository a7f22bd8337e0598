"""Commands made of tables of options, which take an option once unless it may be repeated, and which have ``-h``."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING
from enum import Enum
from pathlib import Path
from typing import Any

import click

from dfcompile.cli.completion import completion_of
from dfcompile.host.inputs import note_read_files
from dfcompile.host.outputs import check_overwritten
from dfcompile.options.option import Group, Option, options_of, read_options

STANDARD_STREAM = Path("-")  # standard input or output, as a file's name
# What is written, by the names of parameters; whatever else names a file reads it.
WRITTEN = frozenset({"cache", "emissions", "gantt", "html", "output", "save_choice", "svg", "trace"})
_NAME = 4096  # bytes of a path that Linux takes
KEPT = frozenset({"cache"})  # which is read as well
HELP_NAMES = {"help_option_names": ["-h", "--help"]}
BRIEF = "brief"  # key of a context's `meta` whose help shows the options that are used most, and no others
_FILE = click.Path(path_type=Path)


class GroupedOption(click.Option):
    """An option of a table, which the help shows under a heading."""

    def __init__(self, words: list[str], group: Group, **attributes: Any) -> None:
        super().__init__(words, **attributes)
        self.group = group


class StrictCommand(click.Command):
    """A command to which an option that takes one value is not given two: none of them would be meant."""

    def __init__(self, name: str | None, **attributes: object) -> None:
        settings = attributes.pop("context_settings", None)
        assert settings is None or isinstance(settings, dict)
        super().__init__(name, context_settings={**HELP_NAMES, **(settings or {})}, **attributes)  # type: ignore[arg-type]  # click's own

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words of a command line.

        Raises:
            UsageError: an option is given twice, or what click finds.
        """
        if not ctx.resilient_parsing:
            _, _, given = self.make_parser(ctx).parse_args(list(args))
            for option, count in Counter(param for param in given if isinstance(param, click.Option)).items():
                if count > 1 and not option.multiple:
                    raise click.UsageError(f"option '{option.opts[-1]}' is given twice against once", ctx)
        return super().parse_args(ctx, args)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the help, the commands before the options."""
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        self.format_epilog(ctx, formatter)
        self.format_options(ctx, formatter)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under the headings of their groups."""
        records: dict[Group, list[tuple[str, str]]] = {group: [] for group in Group}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
            if record is not None:
                records[param.group if isinstance(param, GroupedOption) else Group.OTHER].append(record)
        shown = {group: rows for group, rows in records.items() if rows}
        for group, rows in shown.items():
            if group is Group.FIRST or not ctx.meta.get(BRIEF):
                with formatter.section(group.value if len(shown) > 1 else "Options"):
                    formatter.write_dl(rows)

    def invoke(self, ctx: click.Context) -> object:
        """Run the command.

        Raises:
            UserError: an output would overwrite an input.
        """
        note_read_files()
        files = {
            name: [path for path in _files(value) if path != STANDARD_STREAM] for name, value in ctx.params.items()
        }
        for name in WRITTEN & files.keys():
            read = [path for other in files if other not in WRITTEN - KEPT and other != name for path in files[other]]
            check_overwritten(files[name], read)
        return super().invoke(ctx)


def _files(value: object) -> Iterator[Path]:
    """Yield the files that a value of a parameter names, also as one of a list, or behind an equals sign."""
    match value:
        case Path():
            yield value
        case str():
            words = (part for word in value.split(",") for part in (word, *word.split("=")[1:]))
            yield from (Path(word) for word in (value, *words) if word and "\0" not in word and len(word) < _NAME)
        case tuple():
            for part in value:
                yield from _files(part)


def table_command(
    name: str, *tables: type, epilog: str | None = None
) -> Callable[[Callable[..., None]], click.Command]:
    """Make a command of a function that takes a value of each table.

    Args:
        name: of the command.
        tables: of its options, in the order of the help.
        epilog: above the options: the other commands.
    """

    def made(function: Callable[..., None]) -> click.Command:
        def run(**given: object) -> None:
            function(*(read_options(asked, {name: given[name] for name in options_of(asked)}) for asked in tables))

        params = [_parameter(name, said) for asked in tables for name, said in options_of(asked).items()]
        return StrictCommand(name, params=params, callback=run, help=function.__doc__, epilog=epilog)

    return made


def _parameter(name: str, said: Option) -> click.Parameter:
    is_required, usual = said.default is MISSING, None if said.default is MISSING else said.default
    if said.is_argument:
        file, count = _FILE if said.is_path else None, -1 if said.is_repeatable else 1
        return click.Argument([name], type=file, required=is_required, nargs=count, metavar=said.metavar)
    default = _text(usual)
    shown: str | bool = said.default_text or (default is not None and not said.is_flag)
    attributes: dict[str, Any] = {"help": said.help, "metavar": said.metavar, "multiple": said.is_repeatable}
    if said.is_flag:
        attributes |= {"is_flag": True, "default": usual}
    elif default is not None and not said.default_text:
        attributes |= {"default": (default,) if said.is_repeatable else default}
    if said.complete:
        attributes["shell_complete"] = completion_of(said.complete)
    words = click.Choice(list(map(str, said.choices))) if said.choices else None
    return GroupedOption(
        [*said.flags, name],
        said.group,
        type=(words, _FILE) if said.is_pair else _FILE if said.is_path else words,
        required=is_required,
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
