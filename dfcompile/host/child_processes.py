"""Child processes: compilers and solvers that outlive the run that started them are ended."""

import contextlib
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


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
