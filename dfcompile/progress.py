"""Shows on a terminal which stage is at work; silent for short stages and where nobody watches."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer

PATIENCE_S = 2.0


@contextmanager
def show_stage(title: str) -> Iterator[None]:
    """Show ``title`` with a spinner on stderr while the body runs, from its second second on."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    status = Console(stderr=True).status(f"{title} …")
    timer = Timer(PATIENCE_S, status.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        status.stop()
