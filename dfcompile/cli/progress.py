"""Shows what a command is at, once it takes long: on a terminal one line, in a log file a line every few seconds.

Standard error is what is looked at. A terminal has one line that goes when a stage is over. A file gets a line when a
stage begins, or when it is still on two seconds after the line before. Whatever else it is, a pipe say, gets nothing.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from enum import StrEnum, unique
from threading import Lock, Timer
from typing import TYPE_CHECKING, Final

from dfcompile.errors import UserError
from dfcompile.host import stages
from dfcompile.host.printable import printable

if TYPE_CHECKING:
    from rich.live import Live
    from rich.text import Text

PATIENCE_S = 2.0  # what takes less is not worth a line
REFRESHED_PER_S: Final = 2
PROGRESS: Final = "DFCOMPILE_PROGRESS"  # environment variable: what is shown, whatever standard error is
_LEAST_SHARE = 0.02  # of which a time left is said
_BAR = 20  # columns
_WIDE = 70  # columns of a terminal that has room for a bar


@unique
class Shown(StrEnum):
    """What is shown."""

    LINE = "terminal"
    LOG = "log"
    NOTHING = "none"


def showing_progress() -> AbstractContextManager[None]:
    """Show what the body is at, from its second second on.

    Raises:
        UserError: the environment asks for something else than there is.
    """
    match _shown():
        case Shown.NOTHING:
            return nullcontext()
        case Shown.LOG:
            return _logged()
        case Shown.LINE:
            return _drawn()


@contextmanager
def show_stage(title: str) -> Iterator[None]:
    """Name what the body does.

    Raises:
        UserError: memory or depth gave out; the message names the stage.
    """
    try:
        with stages.stage(title):
            yield
    except MemoryError as error:
        detail = " ".join(str(error).split())
        found = f" ({detail})" if detail else ""
        raise UserError(f"{title}: needs more memory than there is{found}") from error
    except RecursionError as error:
        raise UserError(f"{title}: nested too deeply") from error


def _shown() -> Shown:
    asked = os.environ.get(PROGRESS, "")
    if asked:
        if asked not in tuple(Shown):
            raise UserError(f"{PROGRESS}: found {asked!r} against {', '.join(Shown)}")
        return Shown(asked)
    if sys.stderr.isatty():
        return Shown.LINE
    return Shown.LOG if _is_file() else Shown.NOTHING


def _is_file() -> bool:
    try:
        return stat.S_ISREG(os.fstat(sys.stderr.fileno()).st_mode)
    except (OSError, ValueError):  # closed, or no file stands behind it
        return False


@contextmanager
def _after_patience(call: Callable[[], None]) -> Iterator[None]:
    """Call something when the body has taken long."""
    timer = Timer(PATIENCE_S, call)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


@contextmanager
def _logged() -> Iterator[None]:
    """Write what the command is at: a line per stage, but no more than one in two seconds."""
    began = written = time.perf_counter()
    lock, waiting = Lock(), Timer(0, lambda: None)

    def write(line: str) -> None:
        nonlocal written
        with lock:
            written = time.perf_counter()
            _write(line)

    def begun(title: str) -> None:
        nonlocal waiting
        waiting.cancel()
        now = time.perf_counter()
        line = f"dfcompile: {now - began:7.1f} s  {printable(title)}\n"
        if now >= written + PATIENCE_S:
            write(line)
        else:
            waiting = Timer(written + PATIENCE_S - now, write, (line,))
            waiting.daemon = True
            waiting.start()

    def ended() -> None:
        waiting.cancel()

    with stages.watched_by(stages.Watch(begun, ended)):
        yield


def _write(lines: str) -> None:
    try:
        sys.stderr.write(lines)
        sys.stderr.flush()
    except (OSError, ValueError):  # full or closed: nobody reads it
        return


@contextmanager
def _drawn() -> Iterator[None]:
    """Draw one line on a terminal as long as a stage lasts."""
    line = _Line()
    with _after_patience(line.allow), stages.watched_by(line.watch):
        yield


class _Line:
    """The line on the terminal: what is done, the share of it, and how long the rest will take."""

    def __init__(self) -> None:
        self.watch = stages.Watch(self._begun, self._ended)
        self._live: Live | None = None
        self._is_allowed = False
        self._columns = 0
        self._began = time.perf_counter()
        self._lock = Lock()  # the timer draws as well

    def allow(self) -> None:
        """Draw from now on."""
        with self._lock:
            self._is_allowed = True
            if self.watch.title:
                self._draw()

    def _begun(self, _title: str) -> None:
        with self._lock:
            if self._is_allowed:
                self._draw()

    def _ended(self) -> None:
        with self._lock:
            if self._live is not None:
                self._live.stop()
                self._live = None

    def _draw(self) -> None:
        if self._live is not None:
            return
        from rich.console import Console
        from rich.live import Live

        # Lines that are written in the meantime come above it. What is on standard output is not touched.
        console = Console(stderr=True)
        self._columns = console.width
        self._live = Live(
            console=console, get_renderable=self._text, transient=True,
            refresh_per_second=REFRESHED_PER_S, redirect_stdout=False,
        )  # fmt: skip
        self._live.start(refresh=True)

    def _text(self) -> Text:
        from rich.text import Text

        title, share = self.watch.title, self.watch.share()
        if not title:
            return Text()
        bar = "" if share is None or self._columns < _WIDE else _bar(share)
        words = [word for word in (bar, *self._figures(share)) if word]
        return Text("  ".join([*words, f"{printable(title)} …"]), no_wrap=True, overflow="ellipsis")

    def _figures(self, share: float | None) -> Iterator[str]:
        """Yield the share, the time that is left or has gone, and what else is known."""
        left = self.watch.left_s()
        if share is not None:
            yield f"{100 * share:3.0f} %"
        if share is None or left is None or share < _LEAST_SHARE:
            yield f"{_clock(time.perf_counter() - self._began)} so far"
        else:
            yield f"{_clock(left)} left"
        yield from (work.note for work in self.watch.works)


def _bar(share: float) -> str:
    full = round(_BAR * share)
    return "━" * full + "╌" * (_BAR - full)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
