"""Completion of commands, options and names in a shell: ``eval "$(_DFCOMPILE_COMPLETE=bash_source dfcompile)"``."""

import os
from collections.abc import Callable, Iterable, Mapping

import click
from click.shell_completion import CompletionItem, shell_complete

from dfcompile.errors import UserError
from dfcompile.expansion_names import WORDS

PROGRAM = "dfcompile"
VARIABLE = "_DFCOMPILE_COMPLETE"

CommandOf = Callable[[list[str]], click.Command]


def completed() -> str | None:
    """Return what the shell asks for, None if no shell asks: ``bash_source``, and the like."""
    return os.environ.get(VARIABLE) or None


def complete(instruction: str, commands: Mapping[str, click.Command], default: CommandOf) -> None:
    """Print a shell's script, or what may stand at the cursor.

    Args:
        instruction: as `completed` returns it.
        commands: by name.
        default: the command for a line that begins with none of them.

    Raises:
        UserError: of an unknown shell.
    """
    status = shell_complete(_Commands(commands, default), {}, PROGRAM, VARIABLE, instruction)
    if status:
        raise UserError(f"{VARIABLE}: found {instruction!r} against bash_source, zsh_source or fish_source")


class _Commands(click.Group):
    """The commands as click's completion sees them; a line that names none of them is the default command's."""

    def __init__(self, commands: Mapping[str, click.Command], default: CommandOf) -> None:
        super().__init__(PROGRAM, commands=dict(commands), context_settings={"ignore_unknown_options": True})
        self._default = default

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] in self.commands:
            return super().resolve_command(ctx, args)
        return PROGRAM, self._default(args), args

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        default = self._default([])
        found = click.Group.shell_complete(self, ctx, incomplete)
        found += click.Command.shell_complete(default, ctx, incomplete)
        files_of_user = [] if incomplete.startswith("-") else [CompletionItem(incomplete, type="file")]
        return [*{item.value: item for item in found}.values(), *files_of_user]


def completion_of(kind: str | tuple[str, ...]) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """Return what completes a word of a kind of names, or of a list of these names."""

    def complete_word(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        match kind:
            case "system":
                from dfcompile.dfmodel_backend import named_systems

                return [*_starting(incomplete, named_systems().by_name), CompletionItem(incomplete, type="file")]
            case "device":
                from dfcompile.dfmodel_backend import named_systems
                from dfcompile.language_models.machines.finding import shipped_devices

                names = [*shipped_devices(), *named_systems().by_name]
                return [*_starting(incomplete, names), CompletionItem(incomplete, type="file")]
            case "configuration":
                from dfcompile.language_models.configuration.reading import shipped_names

                return [*_starting(incomplete, shipped_names()), CompletionItem(incomplete, type="file")]
            case "solver":
                from dfcompile.dfmodel_backend import fusion_solvers

                return _starting(incomplete, fusion_solvers().by_name)
            case "expansion":
                return _expansions(incomplete)
            case "lowering":
                return [*_starting(incomplete, WORDS), *_expansions(incomplete)]
        return _last(incomplete, kind)

    return complete_word


def _starting(word: str, names: Iterable[str], before: str = "") -> list[CompletionItem]:
    return [CompletionItem(f"{before}{name}") for name in names if name.startswith(word)]


def _last(listed: str, names: Iterable[str], before: str = "") -> list[CompletionItem]:
    """Return what the last name of a list may become."""
    others, comma, word = listed.rpartition(",")
    return _starting(word, names, f"{before}{others}{comma}")


def _expansions(incomplete: str) -> list[CompletionItem]:
    """Return the operator types that have expansions, or the expansions of the one that was typed."""
    from dfcompile.lowering import registered_expansions

    origin, colon, rest = incomplete.rpartition(":")
    op_type, equals, typed = rest.partition("=")
    table = registered_expansions().by_operator
    if not equals:
        return _starting(op_type, [f"{name}=" for name in sorted({name for _, name in table})], f"{origin}{colon}")
    names = sorted({name for (_, known), named in table.items() if known == op_type for name in named})
    return _last(typed, names, f"{origin}{colon}{op_type}=")
