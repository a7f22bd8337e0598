"""The command line: finds the command that was asked for, and runs it.

Nothing heavy is imported here: ``dfcompile --help`` must answer at once. The commands import the driver when they run.
"""

import gc
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Final

import click

from dfcompile.cli.commands.bounds import bounds
from dfcompile.cli.commands.compare import compare
from dfcompile.cli.commands.compile_model import compile_model
from dfcompile.cli.commands.design import is_design_call, solve_design_file
from dfcompile.cli.commands.explore import explore
from dfcompile.cli.commands.generate import generate
from dfcompile.cli.commands.lists import list_expansions, list_ops, list_passes, list_plugins, list_systems
from dfcompile.cli.commands.llm import llm
from dfcompile.cli.commands.schedule import schedule_dag_file
from dfcompile.cli.completion import PROGRAM, complete, completed
from dfcompile.cli.endings import exit_status
from dfcompile.cli.hints import check_first_word, unknown_option
from dfcompile.cli.leaving import leaving
from dfcompile.cli.pages import said_command
from dfcompile.cli.progress import showing_progress
from dfcompile.errors import UserError

# New objects (some 100 MB, hardly any of it garbage), and rounds of the generations before.
COLLECTED_AFTER = (2_000_000, 50, 10)
# NumPy's products are small here: a second thread spends more time waiting for the first than it computes.
THREADS_OF_PRODUCTS = ("OPENBLAS_NUM_THREADS", "1")
COMMANDS: Final[Mapping[str, click.Command]] = {
    str(command.name): command
    for command in (
        list_expansions, list_passes, list_ops, list_systems, list_plugins, generate, schedule_dag_file, explore,
        bounds,
        llm, compare,
    )
}  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 0, 1 (the user can mend it), 2 (a bug), or 128 + the signal that ended it."""
    if arguments is not None:
        return exit_status(lambda: _run(list(arguments)))
    # A process of our own: nearly all that is made stays, and looking for garbage takes a tenth.
    gc.set_threshold(*COLLECTED_AFTER)
    os.environ.setdefault(*THREADS_OF_PRODUCTS)  # before NumPy is there; the user's own number stays
    leave_with = leaving()
    return leave_with(exit_status(lambda: _run(sys.argv[1:])))


def _run(words: list[str]) -> None:
    instruction = completed()
    if instruction is not None:
        complete(instruction, COMMANDS, _default_command)
        return
    command, prefix = _default_command(words), PROGRAM
    if words and words[0] in COMMANDS:
        command, prefix = COMMANDS[words[0]], f"{PROGRAM} {words.pop(0)}"
    else:
        check_first_word(words, COMMANDS)
    try:
        with command.make_context(prefix, list(words), obj=said_command(prefix, words)) as context, showing_progress():
            command.invoke(context)
    except click.NoSuchOption as error:
        named = error.ctx.command if error.ctx is not None else command
        raise UserError(unknown_option(error, words, named, compile_model)) from error


def _default_command(words: Sequence[str]) -> click.Command:
    return solve_design_file if is_design_call(words) else compile_model
