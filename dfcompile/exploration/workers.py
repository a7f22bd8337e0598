"""Where jobs run: in this process, in local ones, or on a cluster; the outcomes are the same."""

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context, resource_tracker
from threading import Thread

from dfcompile.errors import UserError
from dfcompile.exploration.job import Job, Outcome, run_job

_WATCHED_S = 1.0  # how often a worker looks whether its parent is there
_PATIENCE_S = 20  # for an answer of a cluster
_DEATHS = 2  # of workers in one batch: the same job may have killed both

Run = Callable[[Job], tuple[Outcome, ...]]
Finished = tuple[int, tuple[Outcome, ...]]  # number of a job in its batch, what it takes


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class InThisProcess:
    """Runs jobs one after another."""

    def run(self, jobs: Sequence[Job]) -> Iterator[Finished]:
        """Yield the outcomes of jobs in their order."""
        for number, job in enumerate(jobs):
            yield number, run_job(job)

    def close(self) -> None:
        """There is nothing to end."""


class LocalProcesses:
    """Runs jobs in processes of this machine; one that dies is started again."""

    def __init__(self, count: int, run: Run = run_job) -> None:
        """Say how many; they start with the first jobs.

        Args:
            count: of processes.
            run: what they do with a job.
        """
        self._count, self._run = count, run
        self._pool: ProcessPoolExecutor | None = None

    def run(self, jobs: Sequence[Job]) -> Iterator[Finished]:
        """Yield the outcomes of jobs as they come.

        Raises:
            UserError: workers died again and again.
        """
        if len(jobs) <= 1:  # nothing to be won
            yield from InThisProcess().run(jobs)
            return
        left = dict.fromkeys(range(len(jobs)))
        for _ in range(_DEATHS + 1):
            with _shielded_from_interrupts():
                futures = {self._started().submit(self._run, jobs[number]): number for number in left}
            try:
                for future in as_completed(futures):
                    found = future.result()
                    del left[futures[future]]
                    yield futures[future], found
            except BrokenProcessPool:
                self.close()
            if not left:
                return
        job = jobs[next(iter(left))]
        raise UserError(
            f"worker: died {_DEATHS + 1} times on a lowering of {len(job.graph.scopes)} map scopes on {job.pes} "
            "processing elements (memory may have given out: --jobs 1 takes less)"
        )

    def _started(self) -> ProcessPoolExecutor:
        if self._pool is None:
            # A new interpreter: forking this one would copy threads that libraries have started.
            self._pool = ProcessPoolExecutor(
                self._count, mp_context=get_context("spawn"), initializer=end_with_parent, initargs=(os.getpid(),)
            )
        return self._pool

    def close(self) -> None:
        """End the processes."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None


@contextmanager
def _shielded_from_interrupts() -> Iterator[None]:
    """Start processes that an interrupt does not reach, not even before they have told so themselves.

    A terminal sends it to all of them, and each would print where it was. This process gets it after the body.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # the first process starts it else, and it lets interrupts through
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_with_parent(parent: int) -> None:
    """Let a worker end when its parent has, also by a signal that nobody can handle; an interrupt is the parent's.

    Args:
        parent: number of the process.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_WATCHED_S)
        os._exit(1)

    Thread(target=watch, daemon=True).start()


class DaskCluster:
    """Runs jobs on the workers of a scheduler. Dask runs the jobs of a worker that dies on others."""

    def __init__(self, address: str, patience_s: float = _PATIENCE_S) -> None:
        """Connect to a scheduler.

        Args:
            address: of it, such as ``tcp://host:8786``.
            patience_s: after which nobody is there.

        Raises:
            UserError: ``distributed`` is not installed, or nobody answers.
        """
        try:
            from distributed import Client
        except ImportError as error:
            raise UserError("--cluster: 'distributed' is not installed (pip install 'dfcompile[cluster]')") from error
        self._address = address
        try:
            self._client = Client(address, timeout=patience_s, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            reason = " ".join(str(error).split())
            raise UserError(f"--cluster {address}: does not answer: {reason}") from error

    def run(self, jobs: Sequence[Job]) -> Iterator[Finished]:
        """Yield the outcomes of jobs as they come.

        Raises:
            UserError: workers died again and again, or none are left.
        """
        from distributed import KilledWorker, as_completed
        from distributed.client import FutureCancelledError

        try:
            self._client.wait_for_workers(1, timeout=_PATIENCE_S)
            futures = {
                self._client.submit(run_same, job, job.lowering, pure=False): number for number, job in enumerate(jobs)
            }
            with self._client.as_current():  # what waits for futures asks for the client of the process
                completed = as_completed(list(futures))
            for future in completed:
                yield futures[future], future.result()
        except KilledWorker as error:
            raise UserError(f"--cluster {self._address}: workers died again and again on one job") from error
        except (TimeoutError, FutureCancelledError, OSError) as error:
            reason = " ".join(str(error).split())
            raise UserError(f"--cluster {self._address}: no worker is left: {reason}") from error

    def close(self) -> None:
        """Leave the cluster as it is."""
        self._client.close()


Workers = InThisProcess | LocalProcesses | DaskCluster


def run_same(job: Job, lowering: str) -> tuple[Outcome, ...]:
    """Run a job where the sources are those that it was made with.

    Args:
        job: to run.
        lowering: its hash, sources included, where it was made.

    Raises:
        UserError: they are not, so that its outcome could not be told from one of ours.
    """
    if job.lowering != lowering:
        raise UserError("--cluster: a worker has other sources of dfcompile than this process (install the same there)")
    return run_job(job)
