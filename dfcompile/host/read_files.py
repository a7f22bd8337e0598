"""The files that this process has read, so that none of them is overwritten: a model's external data, a system's parts.

Python tells an audit hook of every file that is opened [PEP 578]; a hook stays for as long as the process.
"""

import contextlib
import os
import sys
from collections.abc import Iterator
from functools import cache
from importlib.util import source_from_cache
from pathlib import Path

_STANDARD_INPUT = "/dev/stdin"
_ACCESS = os.O_RDONLY | os.O_WRONLY | os.O_RDWR


@cache
def _names() -> dict[str, None]:
    """Return the names of files opened for reading in this run, which grow; the first call begins to note them."""
    names: dict[str, None] = {}

    def note(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open":
            name, _, flags = arguments
            if isinstance(name, str | bytes) and isinstance(flags, int) and flags & _ACCESS == os.O_RDONLY:
                with contextlib.suppress(OSError):  # of a folder that is gone, which nothing can be written to either
                    names[os.path.abspath(os.fsdecode(name))] = None  # noqa: PTH100  # which pathlib makes of links too

    sys.addaudithook(note)
    return names


def note_read_files() -> None:
    """Note the files that are opened for reading from now on, and forget those of an earlier run in this process."""
    _names().clear()


def note_standard_input() -> None:
    """Note that standard input was read, which may be a file."""
    _names()[_STANDARD_INPUT] = None


def was_read(target: Path) -> bool:
    """Return whether a file, or one in a folder, was opened for reading, by whatever name or link."""
    inside = target.rglob("*") if target.is_dir() else ()
    wanted = {_identity(str(file)) for file in (target, *inside)} - {None}
    return bool(wanted) and any(_identity(name) in wanted for name in _opened())


def _opened() -> Iterator[str]:
    """Yield the names of files that were opened, also of modules of which only what was compiled of them was."""
    for name in tuple(_names()):
        yield name
        if name.endswith(".pyc"):
            with contextlib.suppress(ValueError):
                yield source_from_cache(name)


def _identity(name: str) -> tuple[int, int] | None:
    try:
        found = os.stat(name)  # noqa: PTH116  # thousands of names
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino
