"""Jobs on a Dask cluster; the one adapter of ``distributed``."""

from collections.abc import Iterator, Sequence

from dfcompile.errors import UserError
from dfcompile.exploration.job import Job, Outcome, run_job
from dfcompile.exploration.workers import Finished

_PATIENCE_S = 20


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
