"""The process goes at once, after all that was asked for at its end, with its status and all that it printed."""

import subprocess
import sys

import pytest

# What is asked for before `leaving` is called would come after it: only where the interpreter ends as ever.
PROCESS = """
import atexit, sys
from dfcompile.cli.endings import leaving

atexit.register(print, "as ever")
leave_with = leaving()
atexit.register(print, "asked for")
"""


def ended(body: str) -> tuple[int, str]:
    """Run a process to its end; return its status and what it printed."""
    done = subprocess.run([sys.executable, "-c", PROCESS + body], capture_output=True, text=True, check=False)

    assert done.stderr == ""
    return done.returncode, done.stdout


@pytest.mark.parametrize("status", [0, 130])
def test_all_that_was_asked_for_is_done_and_then_the_process_is_gone(status: int) -> None:
    assert ended(f"print('last'); sys.exit(leave_with({status}))") == (status, "last\nasked for\n")


def test_threads_are_waited_for() -> None:
    thread = "import threading, time; threading.Thread(target=lambda: (time.sleep(0.2), print('thread'))).start()"

    assert ended(f"{thread}; sys.exit(leave_with(1))") == (1, "thread\nasked for\n")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("sys.exit(3)", 3),
        ("sys.settrace(lambda *_: None); sys.exit(leave_with(1))", 1),
        ("sys.setprofile(lambda *_: None); sys.exit(leave_with(1))", 1),
    ],
)
def test_the_interpreter_ends_as_ever_without_a_status_or_where_somebody_watches(body: str, status: int) -> None:
    assert ended(body) == (status, "asked for\nas ever\n")


def test_a_forked_child_ends_as_ever() -> None:
    child = "import os\nleave_with(7)\nif os.fork() == 0:\n    sys.exit(0)\nos.wait()\nsys.exit(1)"

    assert ended(child) == (7, "asked for\nas ever\nasked for\n")


def test_the_command_goes_at_once() -> None:
    code = (
        "import atexit, sys; from dfcompile.cli.main import main; atexit.register(print, 'as ever'); sys.exit(main())"
    )
    done = subprocess.run([sys.executable, "-c", code, "--version"], capture_output=True, text=True, check=False)

    assert (done.returncode, "as ever" in done.stdout, done.stderr) == (0, False, "")
