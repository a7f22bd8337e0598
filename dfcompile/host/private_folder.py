"""What a run leaves nothing of: folders of this user alone that nobody can foresee, and child processes."""

import atexit
import contextlib
import os
import shutil
import signal
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path

from dfcompile.errors import UserError
from dfcompile.host.printable import reason_of


@contextmanager
def ending_with_us() -> Iterator[None]:
    """End every process that the body started, and theirs, if the body is left by an interrupt or a signal.

    Libraries start them and keep no handle; only Linux tells whose children they are, elsewhere they end on their own.
    """
    before = frozenset(_descendants(os.getpid()))
    try:
        yield
    except BaseException as error:
        if not isinstance(error, Exception):
            for process in _descendants(os.getpid()):
                if process not in before:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(process, signal.SIGKILL)
        raise


def _descendants(process: int) -> Iterator[int]:
    try:
        lists = [path.read_text() for path in Path(f"/proc/{process}/task").glob("*/children")]
    except OSError:
        return  # it has ended, or there is no /proc
    for child in (int(word) for text in lists for word in text.split()):
        yield from _descendants(child)
        yield child


PATIENCE = 20  # times; a compiler that is being ended may still write
PAUSE_S = 0.05


@contextmanager
def private_folder() -> Iterator[Path]:
    """Give a folder that nobody else can read, write or replace; it is removed afterwards, also by an exception.

    Raises:
        UserError: TMPDIR is full, cannot be written, or others could exchange what is in it.
    """
    folder = _made()
    try:
        yield folder
    finally:
        _remove(folder)


@contextmanager
def in_private_folder() -> Iterator[Path]:
    """Give a private folder that is the current one within the body, for what writes to the current folder.

    Raises:
        UserError: as `private_folder`.
    """
    here = os.open(".", os.O_RDONLY)
    with ExitStack() as undo:
        undo.callback(os.close, here)
        folder = undo.enter_context(private_folder())
        undo.callback(os.fchdir, here)
        os.chdir(folder)
        yield folder


@cache
def process_folder() -> Path:
    """Return a private folder that lasts as long as this process.

    Raises:
        UserError: as `private_folder`.
    """
    folder = _made()
    owner = os.getpid()
    atexit.register(lambda: _remove(folder) if os.getpid() == owner else None)  # not at the end of a forked child
    return folder


def require_private(folder: Path) -> None:
    """Check that a folder belongs to this user and that nobody else can change or exchange what is in it.

    Raises:
        UserError: another owner, permissions for others, a link, or a folder around it in which others may rename.
    """
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise UserError(f"folder {str(folder)!r}: found one that others can change against a private one")
    around = folder.parent.stat()
    if around.st_uid not in (0, os.geteuid()) or (around.st_mode & 0o022 and not around.st_mode & stat.S_ISVTX):
        raise UserError(
            f"folder {str(folder.parent)!r}: found one in which others can exchange folders against a safe one "
            "(set TMPDIR to a folder of yours)"
        )


def _made() -> Path:
    try:
        folder = Path(tempfile.mkdtemp(prefix="dfcompile-")).resolve()  # mode 0700, fails if the name is taken
    except OSError as error:
        raise UserError(f"temporary folder: {reason_of(error)} (set TMPDIR)") from error
    with ExitStack() as undo:
        undo.callback(lambda: shutil.rmtree(folder, ignore_errors=True))
        require_private(folder)
        undo.pop_all()
    return folder


def _remove(folder: Path) -> None:
    for _ in range(PATIENCE):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(PAUSE_S)
