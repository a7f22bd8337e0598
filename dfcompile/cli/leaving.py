"""How the process goes: without taking apart what it holds, which would take a tenth of its time."""

import atexit
import os
import sys
from collections.abc import Callable


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
