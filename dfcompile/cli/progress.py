"""Shows on a terminal which stage is at work; silent for short stages and where nobody watches."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer

from dfcompile.errors import UserError
from dfcompile.host.printable import printable

PATIENCE_S = 2.0


@contextmanager
def show_stage(title: str) -> Iterator[None]:
    """Show ``title`` with a spinner on stderr while the body runs, from its second second on.

    Raises:
        UserError: memory or depth gave out; the message names the stage.
    """
    with _named_failure(title):
        if not sys.stderr.isatty():
            yield
            return
        with _spinner(title):
            yield


@contextmanager
def _named_failure(title: str) -> Iterator[None]:
    """Say in which stage memory or depth gave out.

    Raises:
        UserError: one of them did.
    """
    try:
        yield
    except MemoryError as error:
        detail = " ".join(str(error).split())
        found = f" ({detail})" if detail else ""
        raise UserError(f"{title}: needs more memory than there is{found}") from error
    except RecursionError as error:
        raise UserError(f"{title}: nested too deeply") from error


@contextmanager
def _spinner(title: str) -> Iterator[None]:
    from rich.console import Console
    from rich.text import Text

    status = Console(stderr=True).status(Text(f"{printable(title)} …"))
    timer = Timer(PATIENCE_S, status.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        status.stop()


Notify = Callable[[int, int, float], None]  # tries made, at most, gap


@contextmanager
def showing_tries() -> Iterator[Notify]:
    """Give what shows tries, the gap and the time that is left on a terminal; where nobody watches it shows nothing."""
    if not sys.stderr.isatty():
        yield lambda _tries, _most, _gap: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[gap]}"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("exploring", total=None, gap="")

        def notify(tries: int, most: int, gap: float) -> None:
            bar.update(task, completed=min(tries, most), total=most, gap=f"gap {100 * gap:.1f} %")

        yield notify
