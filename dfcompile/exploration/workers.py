"""Where jobs run: in this process, in local processes or on a Dask cluster, with the same outcomes."""

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

_WATCH_PERIOD_S = 1.0  # between two checks of a worker that its parent is alive
_PATIENCE_S = 20  # wait for an answer of a cluster
_RESTARTS = 2  # of the pool in one batch; with the next death the same job has probably killed a worker each time

Run = Callable[[Job], tuple[Outcome, ...]]
Finished = tuple[int, tuple[Outcome, ...]]  # number of a job in its batch, its outcomes


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
        """Do nothing: no other process was started."""


class LocalProcesses:
    """Runs jobs in processes of this machine; if one dies, all are started again."""

    def __init__(self, count: int, run: Run = run_job) -> None:
        """Start the processes: they import what jobs need while the first jobs are made.

        Args:
            count: of processes.
            run: function that runs a job in a process.
        """
        self._count, self._run = count, run
        self._pool: ProcessPoolExecutor | None = None
        with _shielded_from_interrupts():
            for _ in range(count):
                self._started().submit(processors)

    def run(self, jobs: Sequence[Job]) -> Iterator[Finished]:
        """Yield the outcomes of jobs as they finish.

        Raises:
            UserError: workers died once more than they are restarted.
        """
        if len(jobs) <= 1:  # processes would gain nothing
            yield from InThisProcess().run(jobs)
            return
        left = dict.fromkeys(range(len(jobs)))
        for _ in range(_RESTARTS + 1):
            try:
                with _shielded_from_interrupts():
                    futures = {self._started().submit(self._run, jobs[number]): number for number in left}
                for future in as_completed(futures):
                    outcomes = future.result()
                    del left[futures[future]]
                    yield futures[future], outcomes
            except BrokenProcessPool:
                self.close()
            if not left:
                return
        job = jobs[next(iter(left))]
        raise UserError(
            f"worker: died {_RESTARTS + 1} times on a lowering of {len(job.graph.scopes)} map scopes on {job.pes} "
            "processing elements (memory may have given out: --jobs 1 takes less)"
        )

    def _started(self) -> ProcessPoolExecutor:
        if self._pool is None:
            # Spawned, not forked: a fork copies locks of threads that libraries have started, but not the threads.
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
    """Block interrupts in the body, so that processes started there never receive one, not even while they start.

    A terminal sends Ctrl-C to all processes, and each would print a traceback. This process gets it after the body.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # otherwise the first spawn starts it in the body, and it unblocks interrupts
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_with_parent(parent: int) -> None:
    """Make this worker exit when its parent is gone, even if the parent was killed; the worker ignores interrupts.

    Args:
        parent: process ID of the parent.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_WATCH_PERIOD_S)
        os._exit(1)

    Thread(target=watch, daemon=True).start()


class DaskCluster:
    """Runs jobs on the workers of a Dask scheduler, which gives the jobs of a worker that dies to others."""

    def __init__(self, address: str, patience_s: float = _PATIENCE_S) -> None:
        """Connect to a scheduler.

        Args:
            address: of the scheduler, such as ``tcp://host:8786``.
            patience_s: seconds to wait for its answer.

        Raises:
            UserError: ``distributed`` is not installed, or the scheduler does not answer in time.
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
        """Yield the outcomes of jobs as they finish.

        Raises:
            UserError: several workers died on one job, or none are left.
        """
        from distributed import KilledWorker, as_completed
        from distributed.client import FutureCancelledError

        try:
            self._client.wait_for_workers(1, timeout=_PATIENCE_S)
            futures = {
                self._client.submit(run_if_same_sources, job, job.lowering, pure=False): number
                for number, job in enumerate(jobs)
            }
            with self._client.as_current():  # `as_completed` takes the current client; this one is not the default
                completed = as_completed(list(futures))
            for future in completed:
                yield futures[future], future.result()
        except KilledWorker as error:
            raise UserError(f"--cluster {self._address}: workers died again and again on one job") from error
        except (TimeoutError, FutureCancelledError, OSError) as error:
            reason = " ".join(str(error).split())
            raise UserError(f"--cluster {self._address}: no worker is left: {reason}") from error

    def close(self) -> None:
        """Disconnect; the cluster goes on."""
        self._client.close()


Workers = InThisProcess | LocalProcesses | DaskCluster


def run_if_same_sources(job: Job, lowering: str) -> tuple[Outcome, ...]:
    """Run a job if the sources of dfcompile are the same here as where the job was made.

    Args:
        job: to run.
        lowering: the job's hash where it was made, which includes the sources.

    Raises:
        UserError: the sources differ: results of several versions must not be mixed.
    """
    if job.lowering != lowering:
        raise UserError("--cluster: a worker has other sources of dfcompile than this process (install the same there)")
    return run_job(job)
