"""Commands that take an option once, unless it may be repeated, and that have ``-h``."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click

from dfcompile.host.outputs import check_overwritten
from dfcompile.host.read_files import note_read_files

STANDARD_STREAM = Path("-")  # standard input or output, as a file's name
# What is written, by the names of parameters; whatever else names a file reads it.
WRITTEN = frozenset({"cache", "emissions", "gantt", "html", "output", "save", "save_choice", "svg", "trace"})
_NAME = 4096  # bytes of a path that Linux takes
KEPT = frozenset({"cache"})  # which is read as well
HELP_NAMES = {"help_option_names": ["-h", "--help"]}


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
