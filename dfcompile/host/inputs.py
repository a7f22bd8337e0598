"""Reads files of the user up to a size, JSON in them, and knows what was read, so that none of it is overwritten.

Standard input is ``-``. Python tells an audit hook of every file that is opened [PEP 578]; a hook stays for as long as
the process.
"""

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import source_from_cache
from math import isfinite
from pathlib import Path
from typing import NoReturn

from dfcompile.errors import UserError
from dfcompile.host.printable import reason_of

_ACCESS = os.O_RDONLY | os.O_WRONLY | os.O_RDWR
STANDARD_INPUT = "-"
LARGEST_BYTES = 2**30  # of a text: a DAG of ten million nodes, a family per line
_PIECE = 2**20


@cache
def _names() -> dict[str, None]:
    """Return the names of files opened for reading in this run, which grow; the first call begins to note them."""
    names: dict[str, None] = {}

    def note(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open":
            name, _, flags = arguments
            if isinstance(name, str | bytes) and isinstance(flags, int) and flags & _ACCESS == os.O_RDONLY:
                path = os.fsdecode(name)
                with contextlib.suppress(OSError):  # of a folder that is gone, which nothing can be written to either
                    names[path if path[:1] == os.sep else os.path.abspath(path)] = None  # noqa: PTH100  # not of links

    sys.addaudithook(note)
    return names


def note_read_files() -> None:
    """Note the files that are opened for reading from now on, and forget those of an earlier run in this process."""
    _names().clear()


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


def read_bytes(path: Path, most: int = LARGEST_BYTES) -> bytes:
    """Return what a file, a pipe or standard input (``-``) holds.

    Raises:
        OSError: it cannot be read.
        UserError: it holds more than ``most`` bytes, as a device that never ends does.
    """
    if str(path) == STANDARD_INPUT:
        _names()["/dev/stdin"] = None  # which may be a file
        return _read(sys.stdin.buffer.read, str(path), most)
    with path.open("rb") as file:
        return _read(file.read, str(path), most)


def read_text(path: Path, most: int = LARGEST_BYTES) -> str:
    r"""Return the UTF-8 text that a file, a pipe or standard input (``-``) holds, with ``\n`` at line ends.

    Raises:
        OSError: it cannot be read.
        UnicodeDecodeError: it is no UTF-8 text.
        UserError: as `read_bytes`.
    """
    return decoded(read_bytes(path, most))


def readable_bytes(path: Path, where: str, most: int) -> bytes:
    """Return what a file, a pipe or standard input holds; ``where`` names it in errors.

    Raises:
        UserError: it cannot be read, or holds more.
    """
    try:
        return read_bytes(path, most)
    except OSError as error:
        raise UserError(f"{where}: cannot be read: {reason_of(error)}") from error


def readable_text(path: Path, where: str, most: int) -> str:
    """Return the text that a file, a pipe or standard input holds.

    Raises:
        UserError: as `readable_bytes`, or it is no UTF-8 text.
    """
    try:
        return decoded(readable_bytes(path, where, most))
    except UnicodeDecodeError as error:
        raise UserError(f"{where}: cannot be read: not a text file") from error


def decoded(data: bytes) -> str:
    r"""Return UTF-8 bytes as a text with ``\n`` at line ends.

    Raises:
        UnicodeDecodeError: they are no UTF-8 text.
    """
    return data.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")


def _read(read: Callable[[int], bytes], where: str, most: int) -> bytes:
    pieces, size = [], 0
    while piece := read(_PIECE):
        pieces.append(piece)
        size += len(piece)
        if size > most:
            raise UserError(f"{where}: found more than {most} bytes against at most that many")
    return b"".join(pieces)


def parsed_json(text: str) -> object:
    """Return the value of a JSON text as the standard has it, without NaN and infinities [RFC 8259, section 6].

    Raises:
        ValueError: it is no JSON, or has a number that no float or integer of Python holds.
        RecursionError: it is nested too deeply.
    """
    return json.loads(text, parse_float=_finite, parse_constant=_refused)


def _finite(digits: str) -> float:
    value = float(digits)
    if not isfinite(value):
        _refused(digits)
    return value


def _refused(word: str) -> NoReturn:
    raise ValueError(f"found {word[:20]} against a finite number")
