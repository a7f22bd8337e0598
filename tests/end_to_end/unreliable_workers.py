"""What workers do in tests: a module of its own, as each of them imports it."""

import os
import signal
import time
from pathlib import Path

from dfcompile.exploration.job import Job, Outcome, run_job

MARK = "DFCOMPILE_TEST_DEATH"  # variable that names a folder


def die(_job: Job) -> tuple[Outcome, ...]:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def die_once(job: Job) -> tuple[Outcome, ...]:
    blocked = " ".join(signal.Signals(number).name for number in signal.pthread_sigmask(signal.SIG_BLOCK, []))
    mark = Path(os.environ[MARK], "died")
    if job.pes == 2 and not mark.exists():
        mark.write_text(blocked)
        os.kill(os.getpid(), signal.SIGKILL)
    Path(os.environ[MARK], str(job.pes)).write_text(blocked)
    return run_job(job)


def tell_and_wait(job: Job) -> tuple[Outcome, ...]:
    Path(os.environ[MARK], str(os.getpid())).write_text("")
    time.sleep(600)
    return run_job(job)
