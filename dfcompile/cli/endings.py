"""How a run ends: every failure as one line and an exit status, whatever is left of the streams; how it goes."""

import atexit
import errno
import io
import os
import re
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, MappingProxyType
from typing import Final, TextIO

import click

import dfcompile
from dfcompile.errors import PluginError, UnsupportedOpError, UserError
from dfcompile.host.printable import printable, reason_of

DONE: Final = 0
MENDABLE: Final = 1
BUG: Final = 2
INTERRUPTED: Final = 130
SIGNALLED: Final = 128  # plus the signal's number
ENDING_SIGNALS: Final = (signal.SIGTERM, signal.SIGHUP)
TRACEBACK: Final = "DFCOMPILE_TRACEBACK"  # environment variable for authors of plug-ins
LONGEST_LINE = 300  # characters of a message
LONGEST_NAME = 60  # characters of a name in a message that is too long
# What a machine, not dfcompile, has too little of or forbids.
OUTER_ERRORS: Final = frozenset(
    [
        errno.EACCES, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ELOOP, errno.EMFILE, errno.ENAMETOOLONG, errno.ENFILE,
        errno.ENOMEM, errno.ENOSPC, errno.EPERM, errno.EROFS,
    ]
)  # fmt: skip


class SignalledError(BaseException):
    """The process is told to end; whatever catches errors must not catch this."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def exit_status(run: Callable[[], None]) -> int:
    """Run something and return the exit status; a failure is printed as one line."""
    try:
        open_closed_streams()
        with ending_signals():
            run()
            sys.stdout.flush()
    except click.exceptions.Exit as done:
        return done.exit_code
    except SignalledError as signalled:
        return SIGNALLED + signalled.number
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        leave_stdout()
        return MENDABLE
    except Exception as error:  # noqa: BLE001  # the last resort: whatever it is, the user gets one line
        return _failed(error)
    return DONE


def _failed(error: Exception) -> int:
    """Print one line; return whether the user can mend it."""
    try:
        sys.stdout.flush()
    except OSError:
        leave_stdout()
    match error:
        case click.ClickException():
            message = error.format_message().rstrip(".")
            return _fail(message[:1].lower() + message[1:])
        case PluginError():
            return _blame(error)
        case UnsupportedOpError():
            return _fail(str(error), longest=LONGEST_LINE * error.named)
        case UserError():
            return _fail(str(error))
        case MemoryError():
            text = " ".join(str(error).split())
            detail = f": {text}" if text else ""
            return _fail(f"memory: more is needed than there is{detail} (a smaller model, fewer --pes at once)")
        case RecursionError():
            return _fail("input: nested too deeply (graphs in graphs, functions in functions, lists in lists)")
        case OSError() if error.errno in OUTER_ERRORS:
            where = error.filename if isinstance(error.filename, str) else "output"
            return _fail(f"{where}: {reason_of(error)}")
    return _ask_for_report(error)


def _blame(error: PluginError) -> int:
    """Print one line for the user of a plug-in, and where it happened if its author asks for it."""
    cause = error.__cause__
    if cause is None:
        return _fail(str(error))
    if not os.environ.get(TRACEBACK):
        return _fail(str(error), f" ({TRACEBACK}=1 in the environment shows where)")
    _fail(str(error))
    for line in "".join(traceback.format_exception(cause)).splitlines():
        say_as_it_is(line)
    return MENDABLE


def _fail(message: str, ending: str = "", longest: int = LONGEST_LINE) -> int:
    say(f"dfcompile: error: {message}", ending, longest)
    return MENDABLE


def warn(*messages: object) -> None:
    """Print lines on standard error: what is probably not as it was meant."""
    for message in messages:
        say(f"dfcompile: warning: {message}")


def say(line: str, ending: str = "", longest: int = LONGEST_LINE) -> None:
    """Print a message of one line on standard error; if that is closed or full, nobody reads it.

    A message that is too long is cut in front of its ending, unless `TRACEBACK` asks for all of it: what it quotes at
    length first, then its end.
    """
    text = printable(" ".join(line.split()))
    ending = printable(ending)
    say_as_it_is(text + ending if os.environ.get(TRACEBACK) else _cut(text, longest - len(ending)) + ending)


def _cut(text: str, most: int) -> str:
    if len(text) > most:
        text = re.sub(r"'[^']*'|\S+", _shortened, text)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _shortened(found: re.Match[str]) -> str:
    """Return the begin of what is quoted, or of a word: a path or what a file has in the place of one."""
    text = found.group()
    if len(text) <= LONGEST_NAME:
        return text
    return f"{text[:LONGEST_NAME]}…" + ("'" if text[0] == text[-1] == "'" else ":" * (text[-1] == ":"))


def say_as_it_is(line: str) -> None:
    """Print one line on standard error with its blanks."""
    try:
        print(printable(line), file=sys.stderr, flush=True)  # noqa: T201
    except (OSError, ValueError):
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123  # or Python fails on it once more


def _ask_for_report(error: Exception) -> int:
    text = f"dfcompile {dfcompile.__version__}, python {sys.version}\n{' '.join(sys.argv)}\n"
    text += "".join(traceback.format_exception(error))
    try:
        handle, name = tempfile.mkstemp(prefix="dfcompile-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except OSError as full:
        name = f"its traceback, which cannot be kept: {reason_of(full)}"
    say(f"dfcompile: internal error: {type(error).__name__}: {error}", f" (please report it with {name})")
    return BUG


def leave_stdout() -> None:
    """Send what is still to be written nowhere: Python writes it once more when it exits, and would fail again."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (io.UnsupportedOperation, OSError, ValueError):
        return  # no file stands behind it


def open_closed_streams() -> None:
    """Give closed standard streams a file, so that no file of ours gets their number; a narrow encoding loses nothing.

    Raises:
        UserError: standard output is closed.
    """
    closed = [number for number in range(3) if not _is_open(number)]
    for _ in closed:
        os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
    # Python has None for a stream that was closed when it began.
    streams: MappingProxyType[str, TextIO | None] = MappingProxyType({"stdout": sys.stdout, "stderr": sys.stderr})
    for name, stream in streams.items():
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123  # as long as the process
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if 1 in closed:
        raise UserError("standard output: closed against open (to throw it away: > /dev/null)")


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


@contextmanager
def ending_signals() -> Iterator[None]:
    """Turn signals that end a process into an exception within the body, so that what it made is removed.

    A signal that is ignored (``nohup``) stays so. Only the main thread can do this.
    """
    ours: list[signal.Signals] = []
    interrupt = signal.getsignal(signal.SIGINT)
    for number in ENDING_SIGNALS:
        if signal.getsignal(number) == signal.SIG_DFL:
            try:
                signal.signal(number, _end)
                ours.append(number)
            except ValueError:  # not the main thread
                break
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)
        if ours and interrupt is not None:
            signal.signal(signal.SIGINT, interrupt)


def _end(number: int, _frame: FrameType | None) -> None:
    for ending in (*ENDING_SIGNALS, signal.SIGINT):
        signal.signal(ending, signal.SIG_IGN)  # once is enough: cleaning up is not to be cut short
    raise SignalledError(number)


def leaving() -> Callable[[int], int]:
    """Have the process go at its end as soon as all is done that was asked for; return what takes its exit status.

    To be called before anything else asks for something at the end of the process: that is done in reverse order
    (folders removed, threads joined), so this one comes last. Models and libraries hold millions of objects that nobody
    needs any more; the system takes their memory back at once. Where no status was given, or a debugger, a profiler or
    a measurement of coverage watches, the interpreter ends as ever.
    """
    owner = os.getpid()
    given: list[int] = []

    def leave() -> None:
        if not given or os.getpid() != owner or sys.gettrace() is not None or sys.getprofile() is not None:
            return
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except (OSError, ValueError):  # the interpreter will try once more, and say it
            return
        os._exit(given[0])

    atexit.register(leave)

    def take(status: int) -> int:
        given.append(status)
        return status

    return take
