"""The page that --html writes, and pictures of a schedule."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dfcompile.cli.progress import show_stage
from dfcompile.errors import InternalError
from dfcompile.host.outputs import write_text
from dfcompile.options import Pictures

if TYPE_CHECKING:  # the commands are looked at without what they run
    from dfcompile.api.runs import ScheduleResult, Shown


def said_command(prefix: str, words: Sequence[str]) -> str:
    """Return the command that was given, as a shell reads it."""
    return shlex.join((*prefix.split(), *words))


def with_options(command: str, options: Sequence[str]) -> str:
    """Return a command with more options, as a shell reads it.

    >>> with_options("dfcompile --pes 4 -- -odd.py", ["--expand", "auto"])
    'dfcompile --pes 4 --expand auto -- -odd.py'
    """
    words = shlex.split(command)
    end = words.index("--") if "--" in words else len(words)
    return shlex.join((*words[:end], *options, *words[end:]))


def write_page(target: Path | None, run: Shown, written: Sequence[Path] = (), said: Sequence[str] = ()) -> None:
    """Write the page of a report, if one is asked for.

    Args:
        target: the file; ``None``: nobody asked.
        run: that has the report, and what else the page shows.
        written: other files of this run; the page refers to them.
        said: options that the command did not have, and that it would need to do the same under other defaults.
    """
    if target is None:
        return
    from dfcompile.page.provenance import links_of

    command: object = click.get_current_context().obj
    if not isinstance(command, str):
        raise InternalError(f"page: found a {type(command).__name__} against the command that was given")
    with show_stage("making the page"):
        page = run.page(with_options(command, said), links_of(tuple(written), target))
    write_text(page, target)


def schedule_pictures(found: ScheduleResult, asked: Pictures) -> Mapping[Path, str]:
    """Return the trace and the Gantt chart of a schedule, by file, as far as they are asked for."""
    pictures = ((asked.trace, found.trace), (asked.gantt, lambda: found.gantt().svg))
    return {target: draw() for target, draw in pictures if target is not None}
