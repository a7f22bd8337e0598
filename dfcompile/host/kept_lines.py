"""A file of texts by name that several runs share, a line each with its checksum: damage is said and left out.

No byte of the file is believed: it is read up to a size, and nothing in it names another file.
"""

import errno
import fcntl
import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dfcompile.errors import UserError
from dfcompile.host.inputs import was_read
from dfcompile.host.outputs import OVERWRITES_INPUT, replacing
from dfcompile.host.printable import reason_of

LARGEST_BYTES = 2**28  # of the file; one that has grown beyond is begun anew
_PATIENCE_S = 60.0  # for another run that is writing
_PAUSE_S = 0.01
_MODE = 0o666  # as open() makes files, but for what the user's mask takes
_DIGITS = 64  # of a checksum

Warn = Callable[[str], None]


class KeptLines:
    """Texts by name. A line is whole or damaged; of several lines of one name the last counts."""

    def __init__(self, path: Path, warn: Warn) -> None:
        """Read the file, or make it.

        Args:
            path: of it; what is there and no regular file is not touched, and nothing is kept.
            warn: is told of damage, once.

        Raises:
            UserError: the file cannot be read or written, or is an input of this run.
        """
        self._path, self._warn = path, warn
        self._texts: dict[bytes, bytes] = {}
        self._file, self._end = -1, 0  # that is open, and up to where it was read
        self._is_kept = True
        with self._named():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._is_kept = _is_regular_or_new(path)
        if not self._is_kept:
            self._say("found no regular file: it stays as it is, and nothing is kept")
        elif was_read(path):
            raise UserError(OVERWRITES_INPUT.format(str(path)))
        else:
            self._read_on()

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def get(self, name: str) -> bytes | None:
        """Return a text, ``None`` if there is none; also one that another run has put there since."""
        is_settled = name.encode() in self._texts or not self._is_kept
        if not is_settled and (not self._is_in_place() or os.fstat(self._file).st_size != self._end):
            self._read_on()
        return self._texts.get(name.encode())

    def put(self, name: str, text: bytes) -> None:
        """Keep a text.

        Args:
            name: of it, without blanks.
            text: without line ends.

        Raises:
            UserError: the file cannot be written.
        """
        if self._texts.get(name.encode()) == text:
            return
        self._texts[name.encode()] = text
        if self._is_kept:
            with self._locked():
                self._catch_up()
                self._end += _append(self._file, _line(name.encode() + b" " + text))

    def refuse(self, name: str, fate: str) -> None:
        """Forget a text that is whole, but not what it should be, and say so.

        Args:
            name: of it.
            fate: what happens now.
        """
        self._say(f"entry {name[:20]}…{name[-8:]} is not what it should be: {fate}")
        self._texts.pop(name.encode(), None)

    def _read_on(self) -> None:
        with self._locked():
            self._catch_up()

    def _catch_up(self) -> None:
        """Read what was added to the file; what is damaged is taken out of it."""
        size = os.fstat(self._file).st_size
        if size > LARGEST_BYTES:
            self._set_aside(f"has more than {LARGEST_BYTES} bytes")
            return
        if size < self._end:
            self._end = 0
        found, damaged = _whole_lines(_read(self._file, self._end, size))
        if damaged and not found and not self._end:
            self._set_aside("is no cache, or a damaged one")
            return
        self._end = size
        for content in found:
            name, _, text = content.partition(b" ")
            self._texts[name] = text
        if damaged:
            self._say(f"{damaged} {'entry is' if damaged == 1 else 'entries are'} damaged: computed anew")
            # A new file in the place of this one, which whoever waits for it finds.
            with replacing(self._path.resolve(), stat.S_IMODE(os.fstat(self._file).st_mode)) as file:
                self._end = file.write(b"".join(_line(name + b" " + text) for name, text in self._texts.items()))
            self._open()

    def _set_aside(self, reason: str) -> None:
        """Move the file, or the link that leads to it, out of the way, and begin a new one."""
        names = (f"{self._path.name}.damaged{f'-{number}' * (number > 1)}" for number in range(1, 10**6))
        other = next(each for name in names if not os.path.lexists(each := self._path.with_name(name)))
        self._say(f"{reason}: kept as {other.name!r}, begun anew")
        self._path.rename(other)
        self._open()
        self._end = 0

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Have the file for this run alone within the body."""
        with self._named():
            deadline = time.monotonic() + _PATIENCE_S
            while True:
                if self._file < 0 or not self._is_in_place():
                    self._open()
                    self._end = 0
                _lock(self._file, deadline)
                if self._is_in_place():  # another run may have written it anew before this one had it
                    break
            try:
                yield
            finally:
                fcntl.flock(self._file, fcntl.LOCK_UN)

    def _open(self) -> None:
        self.close()
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, _MODE)

    def _is_in_place(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self._file), self._path.stat())
        except FileNotFoundError:
            return False

    def _say(self, line: str) -> None:
        self._warn(f"cache {str(self._path)!r}: {line}")

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise UserError(f"cache {str(self._path)!r}: {reason_of(error)} (--cache FILE names another)") from error


def _is_regular_or_new(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        return not path.is_symlink()  # to nowhere
    except OSError as error:
        if error.errno == errno.ELOOP:  # links that lead to each other
            return False
        raise


def _lock(file: int, deadline: float) -> None:
    """Wait until no other run has the lock of a file.

    Raises:
        OSError: one has it for too long, or there are no locks.
    """
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE_S)
        else:
            return


def _read(file: int, begin: int, end: int) -> bytes:
    """Return the bytes of a part of a file, fewer where it ends."""
    pieces = []
    while begin < end and (piece := os.pread(file, end - begin, begin)):
        pieces.append(piece)
        begin += len(piece)
    return b"".join(pieces)


def _append(file: int, content: bytes) -> int:
    """Write to the end of a file, and return how many bytes these are."""
    os.lseek(file, 0, os.SEEK_END)
    left = memoryview(content)
    while left:
        left = left[os.write(file, left) :]
    return len(content)


def _line(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode() + b" " + content + b"\n"


def _whole_lines(lines: bytes) -> tuple[list[bytes], int]:
    """Return what whole lines hold, and how many are damaged, such as half of one that a killed run has left."""
    *rows, rest = lines.split(b"\n")
    found = [row[_DIGITS + 1 :] for row in rows if row + b"\n" == _line(row[_DIGITS + 1 :])]
    return found, len(rows) - len(found) + bool(rest)
