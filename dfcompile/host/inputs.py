"""Reads files of the user, or standard input as ``-``, up to a size that is stated."""

import sys
from collections.abc import Callable
from pathlib import Path

from dfcompile.errors import UserError
from dfcompile.host.read_files import note_standard_input

STANDARD_INPUT = "-"
LARGEST_BYTES = 2**30  # of a text: a DAG of ten million nodes, a family per line
_PIECE = 2**20


def read_bytes(path: Path, most: int = LARGEST_BYTES) -> bytes:
    """Return what a file, a pipe or standard input (``-``) holds.

    Raises:
        OSError: it cannot be read.
        UserError: it holds more than ``most`` bytes, as a device that never ends does.
    """
    if str(path) == STANDARD_INPUT:
        note_standard_input()
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
