"""Reads files of the user, or standard input as ``-``, up to a size that is stated, and JSON in them."""

import json
import sys
from collections.abc import Callable
from math import isfinite
from pathlib import Path
from typing import NoReturn

from dfcompile.errors import UserError
from dfcompile.host.read_files import note_standard_input
from dfcompile.host.reasons import reason_of

Pairs = list[tuple[str, object]]

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


def parsed_json(text: str, pairs: Callable[[Pairs], object] | None = None) -> object:
    """Return the value of a JSON text.

    Args:
        text: JSON as the standard has it, without NaN and infinities [RFC 8259, section 6].
        pairs: makes the value of an object of its keys and values; by default a dictionary.

    Raises:
        ValueError: it is no JSON, or has a number that no float or integer of Python holds.
        RecursionError: it is nested too deeply.
    """
    return json.loads(text, object_pairs_hook=pairs, parse_float=_finite, parse_constant=_refused)


def _finite(digits: str) -> float:
    value = float(digits)
    if not isfinite(value):
        _refused(digits)
    return value


def _refused(word: str) -> NoReturn:
    raise ValueError(f"found {word[:20]} against a finite number")
