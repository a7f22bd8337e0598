"""Commands that take an option once, unless it may be repeated, and that have ``-h``."""

from collections import Counter
from pathlib import Path

import click

STANDARD_STREAM = Path("-")  # standard input or output, as a file's name
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


def joined(values: tuple[str, ...]) -> str:
    """Return what several options of one name list together, as one of them would have it."""
    return ",".join(values)


def target_of(output: Path | None) -> Path | None:
    """Return the file to write to; none for standard output, which ``-`` names as well."""
    return None if output == STANDARD_STREAM else output
