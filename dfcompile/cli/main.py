"""The command line: finds the command that was asked for, and runs it.

Nothing heavy is imported here: ``dfcompile --help`` must answer at once. The commands import the driver when they run.
"""

import difflib
import gc
import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import click

from dfcompile.cli.commands.compile_model import compile_model
from dfcompile.cli.commands.design import is_design_call, solve_design_file
from dfcompile.cli.completion import PROGRAM, complete, completed
from dfcompile.cli.endings import exit_status, leaving
from dfcompile.cli.pages import said_command
from dfcompile.cli.progress import showing_progress
from dfcompile.cli.table_command import BRIEF
from dfcompile.errors import UserError, nearest
from dfcompile.host.garbage import COLLECTED_AFTER
from dfcompile.host.outputs import write_text

# NumPy's products are small here: a second thread spends more time waiting for the first than it computes.
THREADS_OF_PRODUCTS = ("OPENBLAS_NUM_THREADS", "1")
HELP = "help"
# Where each command is; its options are read when it is asked for.
COMMANDS: Final[Mapping[str, str]] = {
    "schedule": "schedule.schedule_dag_file", "generate": "generate.generate", "explore": "explore.explore",
    "bounds": "bounds.bounds", "rtl": "rtl.rtl", "compare": "compare.compare", "llm": "llm.llm",
    "configs": "lists.list_configs", "systems": "lists.list_systems", "expansions": "lists.list_expansions",
    "ops": "lists.list_ops", "passes": "lists.list_passes", "plugins": "lists.list_plugins",
}  # fmt: skip


def command_of(name: str) -> click.Command:
    """Return the command of a name."""
    module, _, attribute = COMMANDS[name].partition(".")
    found: click.Command = getattr(importlib.import_module(f"dfcompile.cli.commands.{module}"), attribute)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 0, 1 (the user can mend it), 2 (a bug), or 128 + the signal that ended it."""
    if arguments is not None:
        return exit_status(lambda: _run(list(arguments)))
    gc.set_threshold(*COLLECTED_AFTER)  # to the end, too: this process is ours
    os.environ.setdefault(*THREADS_OF_PRODUCTS)  # before NumPy is there; the user's own number stays
    leave_with = leaving()
    return leave_with(exit_status(lambda: _run(sys.argv[1:])))


def _run(words: list[str]) -> None:
    instruction = completed()
    if instruction is not None:
        complete(instruction, {name: command_of(name) for name in COMMANDS}, _default_command)
        return
    if words[:1] in ([], [HELP]):
        _show_help(words[1:])
        return
    command, prefix = _default_command(words), PROGRAM
    if words[0] in COMMANDS:
        command, prefix = command_of(words[0]), f"{PROGRAM} {words.pop(0)}"
    else:
        _check_first_word(words)
    try:
        with command.make_context(prefix, list(words), obj=said_command(prefix, words)) as context, showing_progress():
            command.invoke(context)
    except click.NoSuchOption as error:
        named = error.ctx.command if error.ctx is not None else command
        raise UserError(_unknown_option(error, words, named)) from error


def _show_help(words: Sequence[str]) -> None:
    """Print what the program is for and how its commands are called, or the help of one command.

    Raises:
        UserError: there is no such command.
    """
    for word in words:
        if word not in COMMANDS:
            raise UserError(f"{word!r}: no such command{nearest(word, COMMANDS)}")
    named = command_of(words[0]) if words else compile_model
    with named.make_context(" ".join((PROGRAM, *words[:1])), [], resilient_parsing=True) as context:
        context.meta[BRIEF] = not words
        write_text(f"{named.get_help(context)}\n", None)


def _default_command(words: Sequence[str]) -> click.Command:
    return solve_design_file if is_design_call(words) else compile_model


def _check_first_word(words: Sequence[str]) -> None:
    """Check that the first word is not a command with a slip of the pen.

    Raises:
        UserError: it is near to a command, and no file.
    """
    if not words or words[0].startswith("-") or "/" in words[0] or Path(words[0]).suffix or Path(words[0]).exists():
        return
    close = difflib.get_close_matches(words[0].lower(), list(COMMANDS), n=1)
    if close:
        raise UserError(f"{words[0]!r}: no such command or file (did you mean {close[0]!r}?)")


def _unknown_option(error: click.NoSuchOption, words: Sequence[str], command: click.Command) -> str:
    """Return what to say of an option that a command has not: the nearest one, or that it is one of models."""
    own, message = _names(command), f"no such option {error.option_name!r}"
    if command is solve_design_file and error.option_name in _names(compile_model):
        file = next((word for word in words if not word.startswith("-")), "-")
        return (
            f"{message} for a DFModel set-up file, which {file!r} is by its suffix "
            "(a model is a .py or .onnx file, a canonical DAG is given to 'dfcompile schedule')"
        )
    longer = [name for name in own if name.startswith(error.option_name)]
    close = longer or difflib.get_close_matches(error.option_name, own, n=1)
    return f"{message} (did you mean {close[0]!r}?)" if close else f"{message} (-h lists them)"


def _names(command: click.Command) -> list[str]:
    return [name for param in command.params for name in (*param.opts, *param.secondary_opts) if name.startswith("--")]
