"""Hints for words that were meant as something else."""

import difflib
from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from dfcompile.errors import UserError


def check_first_word(words: Sequence[str], commands: Iterable[str]) -> None:
    """Check that the first word is not a command with a slip of the pen.

    Raises:
        UserError: it is near to a command, and no file.
    """
    if not words or words[0].startswith("-") or "/" in words[0] or Path(words[0]).suffix or Path(words[0]).exists():
        return
    close = difflib.get_close_matches(words[0].lower(), list(commands), n=1)
    if close:
        raise UserError(f"{words[0]!r}: no such command or file (did you mean {close[0]!r}?)")


def unknown_option(
    error: click.NoSuchOption, words: Sequence[str], command: click.Command, model: click.Command
) -> str:
    """Return what to say of an option that a command has not: the nearest one, or whose it is.

    Args:
        error: of click.
        words: of the command line.
        command: that was taken.
        model: the command for models, whose options set-up files do not have.
    """
    own = _names(command)
    message = f"no such option {error.option_name!r}"
    if command is not model and command.name == model.name and error.option_name in _names(model):
        file = next((word for word in words if not word.startswith("-")), "-")
        return (
            f"{message} for a DFModel set-up file, which {file!r} is by its suffix "
            "(a model is a .py or .onnx file, a canonical DAG is given to 'dfcompile schedule')"
        )
    close = [name for name in own if name.startswith(error.option_name)]
    close = close or difflib.get_close_matches(error.option_name, own, n=1)
    return f"{message} (did you mean {close[0]!r}?)" if close else f"{message} (-h lists them)"


def _names(command: click.Command) -> list[str]:
    return [name for param in command.params for name in (*param.opts, *param.secondary_opts) if name.startswith("--")]
