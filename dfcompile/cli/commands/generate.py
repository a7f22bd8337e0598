"""``dfcompile generate``: one sub-command per generator, made from the table of generators when it is needed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dfcompile.cli.progress import show_stage
from dfcompile.cli.table_command import HELP_NAMES, STANDARD_STREAM, StrictCommand
from dfcompile.errors import UserError
from dfcompile.host.outputs import check_target, write_text

if TYPE_CHECKING:
    from dfcompile.generators.catalogue import AnyGenerator, Setting

SUFFIXES = {".json": "json"}  # every other one is text


class GeneratorGroup(click.Group):
    """The generators as sub-commands; the table is read at the first look at it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all generators."""
        del ctx
        from dfcompile.generators.catalogue import GENERATORS

        return list(GENERATORS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        """Return the command of a generator.

        Raises:
            UserError: there is none of that name.
        """
        del ctx
        from dfcompile.generators.catalogue import find_generator

        return _command(find_generator(cmd_name))


@click.group(name="generate", cls=GeneratorGroup, invoke_without_command=True, context_settings=HELP_NAMES)
@click.pass_context
def generate(context: click.Context) -> None:
    """Write a graph: a canonical DAG for `dfcompile schedule`, or a workload for DFModel."""
    if context.invoked_subcommand is None:
        from dfcompile.generators.catalogue import GENERATORS

        raise UserError(f"generate: found no generator against one of {', '.join(GENERATORS)}")


def _command(generator: AnyGenerator) -> click.Command:
    def write(output: Path | None, form: str | None = None, **arguments: int | str | None) -> None:
        target = None if output == STANDARD_STREAM else output
        check_target(target)
        given = {name: value for name, value in arguments.items() if value is not None}
        with show_stage(f"generating {generator.name}"):
            made = generator.write(given, form or _usual_form(generator, target))
        write_text(made, target)

    options = [_option(setting) for setting in generator.settings]
    if len(generator.formats) > 1:
        form, help_text = click.Choice(generator.formats), "By default as the file's suffix says."
        options.append(click.Option(["--format", "form"], type=form, help=help_text))
    file, help_text = click.Path(path_type=Path), "Write there, not to stdout (-)."
    options.append(click.Option(["-o", "--output"], type=file, metavar="FILE", help=help_text))
    text = f"{generator.text[:1].upper()}{generator.text[1:]} ({generator.makes})."
    return StrictCommand(generator.name, params=list(options), callback=write, help=text, short_help=generator.text)


def _usual_form(generator: AnyGenerator, target: Path | None) -> str:
    form = SUFFIXES.get(target.suffix.lower()) if target else None
    return form if form in generator.formats else generator.formats[0]


def _option(setting: Setting) -> click.Option:
    plain: click.ParamType[object] = click.STRING if setting.is_word else click.INT
    kind: click.ParamType[object] = click.Choice(setting.choices) if setting.choices else plain
    words = [f"--{setting.name.replace('_', '-')}", setting.name]
    text = f"{setting.text[:1].upper()}{setting.text[1:]}."
    if setting.default is None:  # to click, None would be a default like any other
        return click.Option(words, type=kind, required=setting.is_required, help=text)
    return click.Option(words, type=kind, default=setting.default, show_default=True, help=text)
