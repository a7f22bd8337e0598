"""The files that this process has read, so that none of them is overwritten: a model's external data, a system's parts.

Python tells an audit hook of every file that is opened [PEP 578]; a hook stays for as long as the process.
"""

import os
import sys
from functools import cache
from pathlib import Path

_ACCESS = os.O_RDONLY | os.O_WRONLY | os.O_RDWR


@cache
def _names() -> dict[str, None]:
    """Return the names of files opened for reading in this run, which grow; the first call begins to note them."""
    names: dict[str, None] = {}

    def note(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open":
            name, _, flags = arguments
            if isinstance(name, str | bytes) and isinstance(flags, int) and flags & _ACCESS == os.O_RDONLY:
                names[os.fsdecode(name)] = None

    sys.addaudithook(note)
    return names


def note_read_files() -> None:
    """Note the files that are opened for reading from now on, and forget those of an earlier run in this process."""
    _names().clear()


def was_read(target: Path) -> bool:
    """Return whether a file was opened for reading, by whatever name or link."""
    try:
        wanted = target.stat()
    except OSError:
        return False
    return any(_is_same(name, wanted) for name in tuple(_names()))


def _is_same(name: str, wanted: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.stat(name), wanted)  # noqa: PTH116  # thousands of names
    except OSError:
        return False
